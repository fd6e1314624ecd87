"""Mail is written with what caused it, waits in the queue, and arrives where EMAIL_URL says."""

from __future__ import annotations

import re
import socketserver
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.db import transaction
from django.test import Client
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from klerai.env import BadSetting, Environment
from klerai.mail import Console, Folder, MailSettings, Nowhere, Smtp, deliver, mail_settings, require_delivery
from klerai.models import OutgoingMail
from tests.people import deliver_waiting_mail, new_email

QUEUE = "klerai.mail_queue.QueuedBackend"


def parse(value: str, *, local: bool = False) -> MailSettings:
    return mail_settings(Environment({"EMAIL_URL": value}), local=local, folder=Path("/data/mail"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("smtp://mail.example", Smtp("mail.example", 25, "", "", "smtp")),
        ("smtp+tls://me%40x.org:p%3Aw@mail.example", Smtp("mail.example", 587, "me@x.org", "p:w", "smtp+tls")),
        ("smtps://u:p@mail.example:2465/", Smtp("mail.example", 2465, "u", "p", "smtps")),
        ("file:///var/mail%20box", Folder(Path("/var/mail box"))),
        ("console:", Console()),
        ("", Nowhere()),
    ],
)
def test_email_url_has_these_forms(value: str, expected: MailSettings) -> None:
    assert parse(value) == expected


def test_local_mode_needs_no_email_url() -> None:
    assert parse("", local=True) == Folder(Path("/data/mail"))
    assert parse("console:", local=True) == Console()


@pytest.mark.parametrize(
    "value",
    [
        "mail.example",
        "smtp://",
        "smtp://:25",
        "smtp://host:port",
        "smtp://host:99999",
        "smtp://host/path",
        "smtp://host?ssl=1",
        "http://host",
        "file://relative",
        "file:relative",
        "console://x",
        "gmail",
    ],
)
def test_nonsense_is_refused_by_name_and_without_repeating_it(value: str) -> None:
    with pytest.raises(BadSetting, match=r"^EMAIL_URL ") as refused:
        parse(value)
    assert value not in str(refused.value) or value in "smtp://user:password@host:25"


def test_a_password_in_email_url_is_in_no_repr_and_no_complaint() -> None:
    assert "hunter2" not in repr(parse("smtps://u:hunter2@mail.example"))
    with pytest.raises(BadSetting) as refused:
        parse("smtp://u:hunter2@mail.example/wrong")
    assert "hunter2" not in str(refused.value)


def test_what_serves_needs_mail_and_what_checks_does_not() -> None:
    with pytest.raises(BadSetting, match="EMAIL_URL is missing"):
        require_delivery(parse(""))
    require_delivery(parse("console:"))


@pytest.fixture
def mailbox(settings: Settings, tmp_path: Path) -> Path:
    settings.EMAIL_BACKEND = QUEUE
    settings.DELIVERY = Folder(tmp_path / "mail")
    return tmp_path / "mail"


def send(to: str, body: str = "Words.", subject: str = "A subject") -> None:
    EmailMessage(subject, body, to=[to]).send()


def test_mail_of_a_transaction_that_rolls_back_is_never_delivered(mailbox: Path) -> None:
    kept, lost = new_email(), new_email()
    send(kept)
    with transaction.atomic():
        send(lost)
        transaction.set_rollback(True)
    assert (deliver_waiting_mail(kept), deliver_waiting_mail(lost)) == (1, 0)


def test_the_queue_names_the_mail_and_never_holds_its_words(mailbox: Path) -> None:
    to, secret = new_email(), uuid.uuid4().hex
    send(to, f"http://testserver/accounts/password/reset/key/{secret}/")
    mail = OutgoingMail.objects.get(message__to=[to])
    assert ProcrastinateJob.objects.filter(args__mail_id=str(mail.pk)).count() == 1
    assert not ProcrastinateJob.objects.filter(args__icontains=secret).exists()
    deliver_waiting_mail(to)
    assert not OutgoingMail.objects.filter(pk=mail.pk).exists(), "no link stays behind"


async def test_the_worker_delivers_what_waits(mailbox: Path) -> None:
    to = new_email()
    await sync_to_async(send)(to, "Grüße 🙂\nhttps://example.org/", "Überschrift")
    worker = app.with_connector(app.connector.get_worker_connector())
    async with worker.open_async():
        await worker.run_worker_async(queues=["mail"], wait=False, install_signal_handlers=False, listen_notify=False)
    found = [file for file in mailbox.glob("*.eml") if to.encode() in file.read_bytes()]
    assert len(found) == 1
    assert found[0].stat().st_mode & 0o777 == 0o600
    assert not list(mailbox.glob("*.partial"))


def test_delivering_twice_leaves_one_file(tmp_path: Path) -> None:
    mail_id = uuid.uuid4()
    for _ in range(2):
        deliver(EmailMessage("S", "B", "a@example.org", ["b@example.org"]), Folder(tmp_path), id=mail_id)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_line_break_in_a_header_sends_nothing(mailbox: Path) -> None:
    to = new_email()
    with pytest.raises(ValueError, match="newlines"):
        send(to, subject="Hello\nBcc: evil@example.org")
    assert deliver_waiting_mail(to) == 0


def test_only_plain_text_is_sent(mailbox: Path) -> None:
    message = EmailMultiAlternatives("S", "B", to=[new_email()])
    message.attach_alternative("<p>B</p>", "text/html")
    with pytest.raises(ValueError, match="plain text"):
        message.send()


class MailServer(socketserver.StreamRequestHandler):
    """Just enough SMTP: greets, takes everything, keeps what it was given."""

    def handle(self) -> None:
        assert isinstance(self.server, Listener)
        self.wfile.write(b"220 fake\r\n")
        while line := self.rfile.readline():
            word = line.split()[0].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                self.server.received.append(b"".join(iter(self.rfile.readline, b".\r\n")))
            self.wfile.write(b"250 fake\r\n" if word != b"QUIT" else b"221 bye\r\n")


class Listener(socketserver.ThreadingTCPServer):
    daemon_threads = False
    received: list[bytes]


@pytest.fixture
def smtp_server() -> Iterator[Listener]:
    with Listener(("127.0.0.1", 0), MailServer) as server:
        server.received = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_mail_goes_out_by_smtp(settings: Settings, smtp_server: Listener) -> None:
    settings.EMAIL_BACKEND = QUEUE
    settings.DELIVERY = parse(f"smtp://127.0.0.1:{smtp_server.server_address[1]}")
    to = new_email()
    send(to, "Words.")
    deliver_waiting_mail(to)
    assert len(smtp_server.received) == 1
    assert to.encode() in smtp_server.received[0]
    assert b"Words." in smtp_server.received[0]


def test_a_mail_server_that_is_away_leaves_the_mail_waiting(settings: Settings) -> None:
    settings.EMAIL_BACKEND = QUEUE
    settings.DELIVERY = parse("smtp://127.0.0.1:9")
    to = new_email()
    send(to)
    with pytest.raises(OSError, match="refused"):
        deliver_waiting_mail(to)
    assert OutgoingMail.objects.filter(message__to=[to]).count() == 1


def read_local(settings: Settings, **client: str) -> tuple[int, str]:
    settings.ROOT_URLCONF = "tests.probes"
    answer = Client().get("/local/mail/", **client)  # type: ignore[arg-type]  # WSGI variables, not parameters
    return answer.status_code, answer.content.decode()


def test_local_mail_is_shown_as_text_newest_first(settings: Settings, mailbox: Path) -> None:
    settings.LOCAL_MODE = True
    older, newer = new_email("older"), new_email("newer")
    send(older, "<script>alert(1)</script> see https://example.org/a?b=1&c=2 now")
    deliver_waiting_mail(older)
    send(newer)
    deliver_waiting_mail(newer)
    status, page = read_local(settings)
    assert status == 200
    assert 0 < page.index(newer) < page.index(older)
    assert "<script>alert" not in page
    assert re.search(r'<a href="https://example\.org/a\?b=1&amp;c=2"[^>]*>', page)


def test_local_mail_is_for_this_machine_in_local_mode_only(settings: Settings, mailbox: Path) -> None:
    settings.LOCAL_MODE = True
    assert read_local(settings, REMOTE_ADDR="192.168.1.9")[0] == 404
    assert read_local(settings, HTTP_X_FORWARDED_FOR="127.0.0.1")[0] == 404
    assert read_local(settings, REMOTE_ADDR="::1")[0] == 200
    settings.LOCAL_MODE = False
    assert read_local(settings)[0] == 404
