"""Setting up a second factor, signing in with it and changing the e-mail, in a browser and without barriers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from klerai.accounts.email_change import link_key, pending_change
from klerai.accounts.models import Person
from tests.browser.conftest import OpenVisit
from tests.browser.visit import Visit
from tests.people import PASSWORD, make_person, sign_in
from tests.second_factor import CODE, CODES, CONFIRM, NEW_CODES, OFF, ON, code_of, fresh_code_of

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

TO_TYPE = 10  # seconds a busy machine may take from the code to the answer
WIDTHS = (1280, 390, 320)
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Mobile/15E148 Safari/604.1"


def make_robin() -> Person:
    """Somebody whose password the product itself can check: the tests' own hashes are made to be fast."""
    person = make_person("robin")
    hasher = PBKDF2PasswordHasher()
    person.password = hasher.encode(PASSWORD, hasher.salt())
    person.save(update_fields=["password"])
    return person


def signed_in_elsewhere(person: Person) -> None:
    key = sign_in(person).session.session_key
    address = "2001:db8:85a3:8d3:1319:8a2e:370:7348"
    UserSession.objects.create(user=person, session_key=key, user_agent=PHONE, ip=address)


def judge(there: Visit) -> list[str]:
    """What is wrong with the page that is open, on every screen."""
    wrong = []
    for width in WIDTHS:
        there.page.set_viewport_size({"width": width, "height": 844})
        found = there.barriers()
        if there.is_wider_than_the_window():
            found.append("wider than the window")
        wrong += [f"{there.page.url} at {width}: {each}" for each in found]
    return wrong


def confirm_password(there: Visit) -> None:
    there.page.get_by_label("Password").fill(PASSWORD)
    there.page.get_by_role("button", name="Confirm").click()


def copy_by_keyboard(there: Visit) -> None:
    there.page.wait_for_load_state()  # by then the page's script is there
    there.page.get_by_role("button", name="Copy").press("Enter")
    there.page.locator("[data-copied]").wait_for()


def give_password(there: Visit, person: Person) -> None:
    there.open("/accounts/login/")
    there.page.get_by_label("E-mail").fill(person.email)
    there.page.get_by_label("Password").fill(PASSWORD)
    there.page.get_by_role("button", name="Sign in").click()
    there.page.wait_for_url(f"**{CODE}")


def give_code(there: Visit, code: str) -> None:
    there.page.get_by_label("Code", exact=True).fill(code)
    there.page.locator("main .button-primary").click()


@pytest.mark.thorough
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_of_signing_in_have_no_barriers(visit: OpenVisit, theme: Literal["light", "dark"]) -> None:
    robin = make_robin()
    signed_in_elsewhere(robin)
    there = visit(robin, color_scheme=theme)
    there.open("/accounts/email/")
    wrong = judge(there)
    confirm_password(there)
    there.page.get_by_label("New e-mail").fill("a-rather-long-new-address@department-of-long-names.example.org")
    wrong += judge(there)
    there.page.get_by_role("button", name="Send the link").click()
    there.page.wait_for_url("**/settings/")
    wrong += judge(there)
    change = pending_change(robin)
    assert change
    there.open(ON)
    wrong += judge(there)
    give_code(there, "000000")
    there.page.get_by_text("That is not the code").wait_for()
    wrong += judge(there)
    give_code(there, code_of(there.page.locator("#totp-key").inner_text(), seconds=TO_TYPE))
    there.page.wait_for_url(f"**{CODES}")
    wrong += judge(there)
    for path in (CODES, NEW_CODES, OFF, CONFIRM, f"/accounts/email/confirm/{link_key(change)}/", "/settings/"):
        there.open(path)
        wrong += judge(there)
    elsewhere = visit(None, color_scheme=theme)
    give_password(elsewhere, robin)
    wrong += judge(elsewhere)
    assert not wrong


@pytest.mark.thorough
def test_setting_up_and_signing_in_work_without_script(visit: OpenVisit) -> None:
    robin = make_robin()
    there = visit(robin, java_script_enabled=False)
    there.open("/settings/")
    there.page.get_by_role("link", name="Set up a second factor").click()
    confirm_password(there)
    assert there.page.get_by_role("img", name="The key as a QR code").is_visible()
    assert not there.page.get_by_role("button", name="Copy").is_visible()
    secret = there.page.locator("#totp-key").inner_text()
    give_code(there, code_of(secret, seconds=TO_TYPE))
    there.page.get_by_role("heading", name="Keep your recovery codes").wait_for()
    codes = there.page.locator("#codes").inner_text().split()
    with there.page.expect_download() as download:
        there.page.get_by_role("button", name="Download").click()
    assert Path(download.value.path()).read_text().split()[-10:] == codes

    for kept in (codes[0], None):
        elsewhere = visit(None, java_script_enabled=False)
        give_password(elsewhere, robin)
        give_code(elsewhere, kept or fresh_code_of(robin, secret, seconds=TO_TYPE))
        elsewhere.page.get_by_role("textbox", name="Message").wait_for()


@pytest.mark.thorough
def test_recovery_codes_are_copied_and_other_devices_signed_out_by_keyboard_alone(visit: OpenVisit) -> None:
    robin = make_robin()
    signed_in_elsewhere(robin)
    there = visit(robin, permissions=["clipboard-read", "clipboard-write"])
    there.open(ON)
    confirm_password(there)
    copy_by_keyboard(there)
    secret = there.page.evaluate("navigator.clipboard.readText()")
    there.page.get_by_label("Code", exact=True).fill(code_of(secret, seconds=TO_TYPE))
    there.page.keyboard.press("Enter")
    there.page.wait_for_url(f"**{CODES}")
    copy_by_keyboard(there)
    assert len(there.page.evaluate("navigator.clipboard.readText()").split()) == 10
    there.page.get_by_role("link", name="I have kept them").press("Enter")
    there.page.get_by_role("button", name="Sign out Safari on an iPhone").press("Enter")
    there.page.get_by_text("That device is signed out.").wait_for()
    assert not there.page.get_by_role("button", name="Sign out everywhere else").is_visible()
