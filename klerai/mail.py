"""Where mail goes: read from EMAIL_URL, delivered by SMTP, to the terminal, or into files."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from email import policy
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import SplitResult, unquote, urlsplit
from uuid import UUID

from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.backends.console import EmailBackend as ConsoleBackend
from django.core.mail.backends.smtp import EmailBackend as SmtpBackend
from django.core.mail.message import EmailMessage

from klerai.env import BadSetting, Environment

FORMS = "smtp://user:password@host:25, smtp+tls://…:587, smtps://…:465, file:///folder or console:"
SMTP_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
SMTP_TIMEOUT_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Smtp:
    host: str
    port: int
    user: str
    password: str
    encryption: str

    def __repr__(self) -> str:
        return f"Smtp({self.host}:{self.port})"


@dataclass(frozen=True, slots=True)
class Folder:
    path: Path


@dataclass(frozen=True, slots=True)
class Console:
    pass


@dataclass(frozen=True, slots=True)
class Nowhere:
    """No EMAIL_URL outside local mode: fine for `check` and `migrate`, not for serving."""


MailSettings = Smtp | Folder | Console | Nowhere


def mail_settings(env: Environment, *, local: bool, folder: Path) -> MailSettings:
    """What EMAIL_URL says; `folder` is where local mode puts mail when it says nothing."""
    value = env.secret("EMAIL_URL")
    if not value:
        return Folder(folder) if local else Nowhere()
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise BadSetting("EMAIL_URL", f"is not an address. It has one of these forms: {FORMS}.") from error
    is_bare = not (parts.query or parts.fragment)
    match parts.scheme:
        case "console" if is_bare and not parts.netloc and not parts.path:
            return Console()
        case "file" if is_bare and not parts.netloc and parts.path.startswith("/"):
            return Folder(Path(unquote(parts.path)))
        case "smtp" | "smtp+tls" | "smtps" if is_bare and parts.hostname and parts.path in ("", "/"):
            return _smtp(parts, port)
    raise BadSetting("EMAIL_URL", f"is of no known form. It has one of these: {FORMS}.")


def require_delivery(settings: MailSettings) -> None:
    """For processes that serve: without mail nobody could confirm an address or get back in."""
    if isinstance(settings, Nowhere):
        raise BadSetting("EMAIL_URL", f"is missing. It is required outside local mode, in one of these forms: {FORMS}.")


def deliver(message: EmailMessage, settings: MailSettings, *, id: UUID) -> None:
    """Hand `message` over; raises OSError (which includes SMTP's errors) when that failed.

    Delivering the same `id` into a folder twice leaves one file.
    """
    match settings:
        case Folder(path):
            _write(message, path, id)
        case Console():
            _send(ConsoleBackend(stream=sys.stderr), message)
        case Smtp():
            _send(_smtp_backend(settings), message)
        case Nowhere():
            require_delivery(settings)
        case _:
            assert_never(settings)


def forget_delivered(address: str, settings: MailSettings) -> None:
    """Where mail is delivered into a folder, delete what lies there for the address."""
    if not isinstance(settings, Folder):
        return
    for file in settings.path.glob("*.eml"):
        with file.open("rb") as source:
            headers = BytesHeaderParser(policy=policy.default).parse(source)
        if address in {to.addr_spec.lower() for to in getattr(headers["To"], "addresses", ())}:
            file.unlink(missing_ok=True)


def _smtp(parts: SplitResult, port: int | None) -> Smtp:
    return Smtp(
        host=parts.hostname or "",
        port=port or SMTP_PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        encryption=parts.scheme,
    )


def _smtp_backend(settings: Smtp) -> SmtpBackend:
    return SmtpBackend(
        host=settings.host,
        port=settings.port,
        username=settings.user,
        password=settings.password,
        use_tls=settings.encryption == "smtp+tls",
        use_ssl=settings.encryption == "smtps",
        timeout=SMTP_TIMEOUT_SECONDS,
    )


def _send(backend: BaseEmailBackend, message: EmailMessage) -> None:
    backend.send_messages([message])


def _write(message: EmailMessage, folder: Path, id: UUID) -> None:
    content = message.message().as_bytes()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for earlier in folder.glob(f"*-{id}.eml"):
        earlier.unlink()
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{id}"
    partial = folder / f"{name}.partial"
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(content)
    partial.rename(folder / f"{name}.eml")


def as_json(message: EmailMessage) -> dict[str, Any]:
    """The parts of a plain text message; ours have no others, and a queue should not carry files.

    Raises ValueError for what could never be delivered, such as a subject with a line break.
    """
    if message.attachments or getattr(message, "alternatives", None):
        raise ValueError("Only plain text mail is sent.")
    message.message()
    return {
        "subject": str(message.subject),
        "body": str(message.body),
        "from_email": message.from_email,
        "to": list(message.to),
        "cc": list(message.cc),
        "bcc": list(message.bcc),
        "reply_to": list(message.reply_to),
        "headers": {name: str(value) for name, value in message.extra_headers.items()},
    }


def from_json(parts: dict[str, Any]) -> EmailMessage:
    return EmailMessage(**parts)
