"""Taking everything along: one ZIP, written in pieces, for its owner alone and for a week."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from allauth.mfa.models import Authenticator
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import AsyncClient, Client
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from chat.export import making
from chat.export.archive import Archive, Pieces
from chat.export.belongings import file_name
from klerai.accounts.errors import ExportGone, ExportTooLarge
from klerai.accounts.exports import add_piece, ask_for_export, begin_export, forget_expired
from klerai.accounts.models import Export, ExportPiece, Person
from tests.account_rows import SECRET, Belongings, make_belongings
from tests.front_door import last_mail, log_in, mail_into
from tests.people import PASSWORD, make_alice, make_charlie, sign_in

ASK, PROGRESS = "/settings/export/", "/settings/export/progress/"


def fresh_browser(person: Person) -> Client:
    """Signed in, with the password given once more just now."""
    browser = Client(REMOTE_ADDR="203.0.113.7")
    assert log_in(browser, person.email)["Location"] == "/"
    assert browser.post("/accounts/reauthenticate/", {"password": PASSWORD}).status_code == 302
    return browser


def fetched(browser: Client, address: str) -> tuple[int, bytes, str]:
    """As a browser gets it from the server of production: status, body, and what it is saved as."""
    client = AsyncClient()
    client.cookies = browser.cookies

    async def fetch() -> tuple[int, bytes, str]:
        response = await client.get(address)
        streamed = getattr(response, "streaming", False)
        body = b"".join([piece async for piece in response]) if streamed else response.content
        return response.status_code, body, response.get("Content-Disposition", "")

    return async_to_sync(fetch)()


def made_for(person: Person) -> Export:
    """What the button and the worker do together."""
    assert sign_in(person).post(ASK)["Location"] == "/settings/#export"
    export = Export.objects.get(person=person)
    assert ProcrastinateJob.objects.filter(task_name="make_export", args__export_id=str(export.pk)).count() == 1
    making.make_export(export.pk)
    export.refresh_from_db()
    return export


def archive_of(export: Export) -> zipfile.ZipFile:
    _, body, name = fetched(fresh_browser(export.person), f"{ASK}{export.pk}/")
    assert len(body) == export.bytes
    assert name == f'attachment; filename="klerai-{export.asked_at:%Y-%m-%d}.zip"'
    found = zipfile.ZipFile(io.BytesIO(body))
    assert found.testzip() is None
    return found


@pytest.fixture(scope="module")
def exported() -> tuple[Person, Belongings, zipfile.ZipFile]:
    alice = make_alice()
    hers = make_belongings(alice)
    make_belongings(make_charlie())
    Export.objects.filter(person=alice).delete()
    Authenticator.objects.filter(user=alice).delete()  # so that a password is enough to download
    return alice, hers, archive_of(made_for(alice))


def test_every_part_is_in_the_archive(exported: tuple[Person, Belongings, zipfile.ZipFile]) -> None:
    alice, hers, archive = exported
    name = f"harbour-{alice.pk}.md"
    stem = f"conversations/{hers.conversation.created_at:%Y-%m-%d}-the-harbour-{str(hers.conversation.pk)[:8]}"
    wanted = {"README.txt", "profile.json", "api_keys.json", "sessions.json", "web_results.json", "ledger.csv"}
    wanted |= {"purchases.json", "knowledge/knowledge_bases.json", f"{stem}.json", f"{stem}.md"}
    wanted |= {f"knowledge/default_kb/originals/{name}", f"knowledge/default_kb/texts/{name}.txt"}
    assert wanted <= set(archive.namelist())
    assert len(archive.namelist()) == len(wanted) + 2, "the second conversation, twice, and nothing of Charlie's"


def test_a_conversation_has_both_tracks_citations_and_receipt(
    exported: tuple[Person, Belongings, zipfile.ZipFile],
) -> None:
    _, _, archive = exported
    (name,) = [name for name in archive.namelist() if name.endswith(".json") and "the-harbour" in name]
    (question,) = json.loads(archive.read(name))["questions"]
    tracks = {item["id"]: (item["full"], item["summarised"]) for item in question["items"]}
    assert tracks["q1-t1"] == (f"{SECRET} tool, in full", "tool in short")
    assert question["citations"][0]["url"] == "https://example.org/"
    assert question["receipt"]["credits"] == 5
    told = archive.read(name.replace(".json", ".md")).decode()
    assert f"> {SECRET} query, in full" in told
    assert "- [1] The harbour, https://example.org/" in told


def test_the_originals_the_ledger_and_the_rest_say_what_is_true(
    exported: tuple[Person, Belongings, zipfile.ZipFile],
) -> None:
    alice, _, archive = exported
    original = archive.read(f"knowledge/default_kb/originals/harbour-{alice.pk}.md").decode()
    assert original == f"# Harbour\n\n{SECRET} of {alice.pk}.\n"
    assert json.loads(archive.read("profile.json"))["email"] == alice.email
    assert json.loads(archive.read("web_results.json"))[0]["keywords"] == [
        "AAPL stock price",
        "harbour blue",
        "lapis stone",
    ]
    lines = archive.read("ledger.csv").decode().splitlines()
    assert lines[0].startswith("number,created_at,kind,run_id,what,")
    assert any(",grant,,A pack,0,500," in line for line in lines)
    assert json.loads(archive.read("purchases.json"))["payments"][0]["cents"] == 2000


def test_no_secret_is_in_the_archive(exported: tuple[Person, Belongings, zipfile.ZipFile]) -> None:
    alice, hers, archive = exported
    whole = b"".join(archive.read(name) for name in archive.namelist())
    alice.refresh_from_db()
    for secret in (hers.key_text, alice.password, alice.api_keys.get().digest):
        assert secret.encode() not in whole


def test_a_mail_says_when_it_is_ready_and_until_when(settings: Settings, tmp_path: Path) -> None:
    mailbox = mail_into(tmp_path, settings)
    alice = make_alice()
    export = made_for(alice)
    subject, text = last_mail(mailbox, alice.email)
    assert subject == "Your KlerAI export is ready"
    assert "/settings/#export" in text
    assert export.expires_at is not None
    assert f"{export.expires_at:%Y, %H:%M}" in text


def test_the_page_shows_how_far_it_is_and_then_the_way_to_it() -> None:
    alice = make_alice()
    browser = sign_in(alice)
    browser.post(ASK)
    assert "Being made: 0 of ? parts." in browser.get("/settings/").content.decode()
    export = begin_export(Export.objects.get(person=alice).pk, total=8)
    Export.objects.filter(pk=export.pk).update(done=3)
    assert "Being made: 3 of 8 parts." in browser.get(PROGRESS).content.decode()
    making.make_export(export.pk)
    assert f'href="{ASK}{export.pk}/"' in browser.get(PROGRESS).content.decode()


def test_there_is_one_at_a_time_and_a_new_one_replaces_the_old() -> None:
    alice = make_alice()
    browser = sign_in(alice)
    browser.post(ASK)
    first = Export.objects.get(person=alice)
    assert "one at a time" in browser.post(ASK, follow=True).content.decode()
    assert Export.objects.get(person=alice) == first
    making.make_export(first.pk)
    browser.post(ASK)
    assert Export.objects.get(person=alice) != first
    assert not ExportPiece.objects.filter(export=first.pk).exists()


def test_downloading_asks_for_the_password_once_more() -> None:
    alice = make_alice()
    export = made_for(alice)
    stale = Client(REMOTE_ADDR="203.0.113.7")
    log_in(stale, alice.email)
    response = stale.get(f"{ASK}{export.pk}/")
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/reauthenticate/")


def test_a_stranger_gets_what_a_missing_one_gives() -> None:
    export = made_for(make_alice())
    charlie = fresh_browser(make_charlie())
    theirs, none = fetched(charlie, f"{ASK}{export.pk}/"), fetched(charlie, f"{ASK}{uuid.uuid4()}/")
    assert theirs[0] == none[0] == 404
    assert Client().get(f"{ASK}{export.pk}/")["Location"].startswith("/accounts/login/")
    assert str(export.pk) not in charlie.get(PROGRESS).content.decode()


def test_after_a_week_it_cannot_be_downloaded_and_is_deleted() -> None:
    alice = make_alice()
    export = made_for(alice)
    assert export.expires_at is not None
    assert timedelta(days=6, hours=23) < export.expires_at - timezone.now() <= timedelta(days=7)
    Export.objects.filter(pk=export.pk).update(expires_at=timezone.now())
    assert fetched(fresh_browser(alice), f"{ASK}{export.pk}/")[0] == 404
    assert forget_expired() >= 1
    assert not Export.objects.filter(pk=export.pk).exists()


def test_an_attempt_that_broke_off_is_begun_anew_and_can_write_no_more() -> None:
    alice = make_alice()
    asked = ask_for_export(alice)
    broken = begin_export(asked.pk, total=2)
    add_piece(broken, 0, b"half")
    making.make_export(asked.pk)
    with pytest.raises(ExportGone):
        add_piece(broken, 1, b"late")
    assert archive_of(Export.objects.get(pk=asked.pk)).namelist()


def test_one_whose_person_has_left_is_let_go() -> None:
    making.make_export(uuid.uuid4())
    alice = make_alice()
    held = begin_export(ask_for_export(alice).pk, total=1)
    alice.delete()
    with pytest.raises(ExportGone):
        add_piece(held, 0, b"late")


def test_one_that_is_given_up_says_so_and_can_be_asked_for_again() -> None:
    alice = make_alice()
    browser = sign_in(alice)
    browser.post(ASK)
    export = begin_export(Export.objects.get(person=alice).pk, total=1)
    making.give_up(export.pk)
    assert "The export could not be made. Something went wrong on our side" in browser.get(PROGRESS).content.decode()
    browser.post(ASK)
    assert Export.objects.get(person=alice).state == Export.State.WAITING


def test_a_large_part_passes_through_in_pieces_of_one_size() -> None:
    kept: list[bytes] = []

    def keep(position: int, data: bytes) -> None:
        assert position == len(kept)
        kept.append(data)

    pieces = Pieces(keep, piece_bytes=1_000, most_bytes=10**6)
    with Archive(pieces, made_at=timezone.now()) as archive:
        archive.add("noise.bin", (uuid.uuid4().bytes for _ in range(2_000)))
        archive.add("Noise.bin", ["again"])
    assert {len(piece) for piece in kept[:-1]} == {1_000}
    found = zipfile.ZipFile(io.BytesIO(b"".join(kept)))
    assert [(each.filename, each.file_size) for each in found.infolist()] == [("noise.bin", 32_000), ("Noise-2.bin", 5)]


def test_a_file_that_would_be_too_large_is_not_made() -> None:
    pieces = Pieces(lambda position, data: None, piece_bytes=100, most_bytes=1_000)
    with pytest.raises(ExportTooLarge), Archive(pieces, made_at=timezone.now()) as archive:
        archive.add("noise.bin", (uuid.uuid4().bytes for _ in range(200)))


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("../../etc/passwd", "_.._etc_passwd"),
        ("a\x00b:c.txt", "a_b_c.txt"),
        ("...", "document"),
        ("x" * 300, "x" * 120),
    ],
)
def test_a_name_in_the_archive_leads_nowhere(given: str, safe: str) -> None:
    assert file_name(given) == safe


def test_one_conversation_is_saved_as_markdown_or_json_by_its_owner_alone() -> None:
    alice = make_alice()
    hers = make_belongings(alice)
    there, stranger = sign_in(alice), sign_in(make_charlie())
    status, body, name = fetched(there, f"/chat/{hers.conversation.pk}/export.md")
    assert (status, name) == (200, 'attachment; filename="the-harbour.md"')
    assert body.decode().startswith("# =The harbour\n")
    assert json.loads(fetched(there, f"/chat/{hers.conversation.pk}/export.json")[1])["title"] == "=The harbour"
    assert fetched(there, f"/chat/{hers.conversation.pk}/export.exe")[0] == 404
    assert fetched(stranger, f"/chat/{hers.conversation.pk}/export.md")[0] == 404
    assert connection.in_atomic_block is False
