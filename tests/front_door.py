"""What a person does at the front door: reads mail, follows a link, logs in."""

from __future__ import annotations

import re
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

from django.test import Client
from pytest_django import Settings

from klerai.mail import Folder
from tests.people import PASSWORD, deliver_waiting_mail

SIGNUP, LOGIN, RESET = "/accounts/signup/", "/accounts/login/", "/accounts/password/reset/"


def mail_into(folder: Path, settings: Settings) -> Path:
    """The product's own mail backend, which Django swaps for another in tests, with files at its end."""
    settings.EMAIL_BACKEND = "klerai.mail_queue.QueuedBackend"
    settings.DELIVERY = Folder(folder)
    return folder


def last_mail(mailbox: Path, to: str) -> tuple[str, str]:
    """Subject and text of the newest file for `to`, after the worker had its turn."""
    deliver_waiting_mail(to)
    for file in sorted(mailbox.glob("*.eml"), reverse=True):
        message = message_from_bytes(file.read_bytes(), policy=policy.default)
        if message["To"] == to:
            return str(message["Subject"]), message.get_content()
    raise AssertionError(f"no mail for {to}")


def link_in(text: str) -> str:
    found = re.search(r"http://testserver(/\S+)", text)
    assert found, text
    return found[1]


def log_in(client: Client, email: str, password: str = PASSWORD, **more: str) -> Any:
    return client.post(LOGIN, {"login": email, "password": password, **more})


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def without_secrets(page: Any) -> str:
    text = page.content.decode()
    return re.sub(r'(csrfmiddlewaretoken" value|nonce|content)="[^"]*"', "", text)
