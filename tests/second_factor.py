"""What a person with an authenticator app does: sets it up, reads codes, signs in with one."""

from __future__ import annotations

import re
import time
from typing import Any

from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core.cache import cache
from django.test import Client

from klerai.accounts.models import Person
from tests.front_door import log_in
from tests.people import PASSWORD

ON, OFF = "/accounts/second-factor/on/", "/accounts/second-factor/off/"
CODE, CONFIRM = "/accounts/second-factor/code/", "/accounts/second-factor/confirm/"
CODES, NEW_CODES, CODES_FILE = (f"/accounts/second-factor/codes/{rest}" for rest in ("", "new/", "file/"))
REAUTHENTICATE = "/accounts/reauthenticate/"
STEP_SECONDS = 30


def code_of(secret: str, *, seconds: float = 3) -> str:
    """What the app shows now, with so much time left to type it."""
    left = STEP_SECONDS - time.time() % STEP_SECONDS
    if left < seconds:
        time.sleep(left)
    return format_hotp_value(hotp_value(secret, int(time.time()) // STEP_SECONDS))


def fresh_code_of(person: Person, secret: str, *, seconds: float = 3) -> str:
    """As if the next half minute had come: a code works once, and a test has no time to wait for another."""
    code = code_of(secret, seconds=seconds)
    cache.delete(f"allauth.mfa.totp.used?user={person.pk}&code={code}")
    return code


def wrong_code(secret: str) -> str:
    return f"{(int(code_of(secret)) + 1) % 10**6:06}"


def confirm_password(browser: Client, then: str) -> Any:
    return browser.post(REAUTHENTICATE, {"password": PASSWORD, "next": then})


def confirm_code(browser: Client, code: str, then: str) -> Any:
    return browser.post(CONFIRM, {"code": code, "next": then})


def turn_on(browser: Client) -> tuple[str, list[str]]:
    """The app's key and the recovery codes, as the pages show them."""
    confirm_password(browser, ON)
    secret = key_on(browser.get(ON))
    answer = browser.post(ON, {"code": code_of(secret)})
    assert answer["Location"] == CODES, answer.content.decode()
    return secret, codes_on(browser.get(CODES))


def key_on(page: Any) -> str:
    found = re.search(r'id="totp-key"[^>]*>(.*?)</code>', page.content.decode())
    assert found, page.content.decode()
    return re.sub(r"<[^>]*>", "", found[1])


def codes_on(page: Any) -> list[str]:
    return re.findall(r"^(?:<pre[^>]*>)?(\d{8})$", page.content.decode(), re.M)


def sign_in_with_code(person: Person, secret: str) -> Client:
    browser = Client()
    assert log_in(browser, person.email)["Location"] == CODE
    assert browser.post(CODE, {"code": fresh_code_of(person, secret)}).status_code == 302
    return browser
