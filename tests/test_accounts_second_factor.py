"""A second factor: set up with an app, asked for at every sign-in, and never readable afterwards."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from allauth.mfa.models import Authenticator
from django.db import connection
from django.test import Client
from pytest_django import Settings

from klerai.accounts.models import Person
from tests.front_door import is_signed_in, last_mail, log_in, mail_into
from tests.people import PASSWORD, make_alice, make_charlie, make_person, sign_in
from tests.second_factor import (
    CODE,
    CODES,
    CODES_FILE,
    CONFIRM,
    NEW_CODES,
    OFF,
    ON,
    code_of,
    codes_on,
    confirm_code,
    confirm_password,
    fresh_code_of,
    key_on,
    sign_in_with_code,
    turn_on,
    wrong_code,
)


@pytest.fixture
def mailbox(settings: Settings, tmp_path: Path) -> Path:
    return mail_into(tmp_path, settings)


def at_the_second_step(person: Person) -> Client:
    browser = Client()
    answer = log_in(browser, person.email)
    assert (answer.status_code, answer["Location"]) == (302, CODE)
    return browser


def offer(person: Person, code: str) -> bool:
    """Whether `code` completes a sign-in."""
    browser = at_the_second_step(person)
    browser.post(CODE, {"code": code})
    return is_signed_in(browser)


def test_a_person_sets_it_up_and_signs_in_with_a_code_ever_after() -> None:
    alice = make_alice()
    secret, codes = turn_on(sign_in(alice))
    assert len(set(codes)) == 10

    browser = at_the_second_step(alice)
    assert not is_signed_in(browser), "the password alone must not be enough"
    assert browser.get("/settings/")["Location"].startswith("/accounts/login/")
    page = browser.get(CODE).content.decode()
    assert "Enter the code from your app" in page
    assert secret not in page
    wrong = browser.post(CODE, {"code": wrong_code(secret)}).content.decode()
    assert "That is not the code" in wrong
    assert not is_signed_in(browser)
    assert browser.post(CODE, {"code": fresh_code_of(alice, secret)})["Location"] == "/"
    assert is_signed_in(browser)


def test_the_second_step_keeps_where_the_person_wanted_to_go() -> None:
    alice = make_alice()
    secret, _ = turn_on(sign_in(alice))
    browser = Client()
    log_in(browser, alice.email, next="/billing/")
    assert browser.post(CODE, {"code": fresh_code_of(alice, secret)})["Location"] == "/billing/"


def test_somebody_without_a_password_given_sees_no_second_step() -> None:
    assert Client().get(CODE)["Location"] == "/accounts/login/"


@pytest.mark.parametrize("form", [{}, {"code": ""}, {"credential": "{}"}, {"code": "\x00"}, {"code": "x" * 10_000}])
def test_nonsense_at_the_second_step_is_a_wrong_code(form: dict[str, str]) -> None:
    alice = make_alice()
    turn_on(sign_in(alice))
    browser = at_the_second_step(alice)
    page = browser.post(CODE, form)
    assert page.status_code == 200
    assert 'aria-invalid="true"' in page.content.decode()
    assert not is_signed_in(browser)


def test_starting_again_forgets_the_password_that_was_given() -> None:
    alice = make_alice()
    turn_on(sign_in(alice))
    browser = at_the_second_step(alice)
    assert browser.post("/accounts/logout/", {"next": "/accounts/login/"})["Location"] == "/accounts/login/"
    assert browser.get(CODE)["Location"] == "/accounts/login/"
    assert "Sign in" in browser.get("/accounts/login/").content.decode()


def test_a_code_of_the_app_works_once() -> None:
    alice = make_alice()
    secret, _ = turn_on(sign_in(alice))
    code = fresh_code_of(alice, secret)
    assert offer(alice, code)
    assert not offer(alice, code)


def test_a_recovery_code_works_once_however_it_is_spaced() -> None:
    alice = make_alice()
    _, codes = turn_on(sign_in(alice))
    first, second = codes[:2]
    assert offer(alice, first)
    for again in (first, f" {first} ", f"{first[:4]} {first[4:]}", f"{first[:4]}-{first[4:]}", "\t".join(first)):
        assert not offer(alice, again)
    assert offer(alice, f" {second[:4]} {second[4:]} "), "copied with a space it is still the code"
    assert not offer(alice, second)


def test_a_recovery_code_offered_twice_at_the_same_moment_signs_in_once() -> None:
    alice = make_alice()
    _, codes = turn_on(sign_in(alice))
    browsers = [at_the_second_step(alice) for _ in range(4)]

    def enter(browser: Client) -> bool:
        browser.post(CODE, {"code": codes[0]})
        connection.close()
        return is_signed_in(browser)

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(enter, browsers)) == 1


def test_a_strangers_codes_open_nothing() -> None:
    alice, charlie = make_alice(), make_charlie()
    turn_on(sign_in(alice))
    secret, codes = turn_on(sign_in(charlie))
    assert not offer(alice, fresh_code_of(charlie, secret))
    assert not offer(alice, codes[0])


def test_the_key_and_the_codes_are_in_cipher_in_the_database() -> None:
    alice = make_alice()
    secret, codes = turn_on(sign_in(alice))
    stored = " ".join(str(row.data) for row in Authenticator.objects.filter(user=alice))
    for text in (secret, *codes):
        assert text not in stored
    assert stored.count("gAAAA") == 2, "a Fernet token for the key, and one for what the codes are made from"


def test_the_codes_are_shown_once_and_the_key_never_again() -> None:
    alice = make_alice()
    browser = sign_in(alice)
    secret, codes = turn_on(browser)
    pages = [browser.get(address) for address in (CODES, "/settings/", ON, OFF, NEW_CODES)]
    assert "were shown already" in pages[0].content.decode()
    assert pages[2]["Location"] == OFF
    for page in pages:
        assert all(text not in page.content.decode() for text in (secret, *codes))


def test_the_codes_come_as_a_file_to_the_page_that_shows_them_and_to_nobody_else() -> None:
    alice = make_alice()
    browser = sign_in(alice)
    _, codes = turn_on(browser)
    file = browser.post(CODES_FILE, {"codes": " ".join(codes)})
    assert file["Content-Disposition"] == 'attachment; filename="klerai-recovery-codes.txt"'
    assert file.content.decode().split()[-10:] == codes
    assert browser.post(CODES_FILE, {"codes": codes[0]}).status_code == 404
    assert browser.get(CODES_FILE).status_code == 405
    assert sign_in(make_charlie()).post(CODES_FILE, {"codes": " ".join(codes)}).status_code == 404
    assert Client().post(CODES_FILE, {"codes": " ".join(codes)})["Location"].startswith("/accounts/login/")


def test_new_codes_end_the_old_ones() -> None:
    alice = make_alice()
    browser = sign_in(alice)
    _, old = turn_on(browser)
    assert browser.post(NEW_CODES)["Location"] == CODES
    new = codes_on(browser.get(CODES))
    assert len(new) == 10
    assert not set(new) & set(old)
    assert not offer(alice, old[0])
    assert offer(alice, new[0])


def test_turning_it_on_wants_the_password_once_more() -> None:
    browser = sign_in(make_alice())
    assert browser.get(ON)["Location"].startswith("/accounts/reauthenticate/")
    turn_on(browser)


def test_an_open_session_and_the_password_cannot_take_it_away() -> None:
    alice = make_alice()
    secret, codes = turn_on(sign_in(alice))
    thief = sign_in(alice)
    for address in (OFF, CODES, NEW_CODES, "/accounts/email/"):
        assert thief.get(address)["Location"].startswith(CONFIRM)
        confirm_password(thief, address)
        thief.post(address)
    assert Authenticator.objects.filter(user=alice).count() == 2
    assert confirm_code(thief, wrong_code(secret), OFF).status_code == 200
    assert confirm_code(thief, codes[0], OFF)["Location"] == OFF, "who has a recovery code may: the app can be lost"
    assert thief.post(OFF)["Location"] == "/accounts/second-factor/"


def test_turned_off_the_password_is_enough_again(mailbox: Path) -> None:
    alice = make_alice()
    browser = sign_in(alice)
    turn_on(browser)
    assert last_mail(mailbox, alice.email)[0] == "The second factor is on"
    confirm_password(browser, OFF)
    assert browser.post(OFF)["Location"] == "/accounts/second-factor/"
    assert not Authenticator.objects.filter(user=alice).exists()
    assert log_in(Client(), alice.email)["Location"] == "/"
    subject, text = last_mail(mailbox, alice.email)
    assert subject == "The second factor is off"
    assert "http://testserver/accounts/password/reset/" in text


def test_a_wrong_first_code_turns_nothing_on_and_keeps_the_key() -> None:
    alice = make_alice()
    browser = sign_in(alice)
    confirm_password(browser, ON)
    secret = key_on(browser.get(ON))
    page = browser.post(ON, {"code": wrong_code(secret)})
    assert "That is not the code" in page.content.decode()
    assert key_on(page) == secret
    assert not Authenticator.objects.filter(user=alice).exists()
    assert browser.post(ON, {"code": code_of(secret)})["Location"] == CODES


def test_a_new_password_by_mail_does_not_skip_the_second_factor(mailbox: Path) -> None:
    alice = make_alice()
    turn_on(sign_in(alice))
    Client().post("/accounts/password/reset/", {"email": alice.email})
    link = re.search(r"http://testserver(/accounts/password/reset/key/\S+)", last_mail(mailbox, alice.email)[1])
    assert link
    browser = Client()
    browser.post(browser.get(link[1])["Location"], {"password1": "new-kettle-2024"})
    assert not is_signed_in(browser)
    assert log_in(browser, alice.email, "new-kettle-2024")["Location"] == CODE


def test_the_pages_draw_the_code_in_themselves_without_script_or_style() -> None:
    alice = make_alice()
    browser = sign_in(alice)
    confirm_password(browser, ON)
    pages = [browser.get(ON)]
    assert '<svg class="qr-code"' in pages[0].content.decode()
    turn_on(browser)
    pages += [browser.get(address) for address in (CODES, OFF, NEW_CODES)]
    pages.append(at_the_second_step(alice).get(CODE))
    for page in pages:
        text = page.content.decode()
        assert page.status_code == 200
        assert "no-store" in page["Cache-Control"]
        assert not re.search(r"<style|\sstyle=|data:|<script(?![^>]*\bsrc=)|<[^<>]*\son[a-z]+=", text)
        assert "unsafe" not in page["Content-Security-Policy"]


def test_signing_in_by_code_needs_the_right_password_first() -> None:
    alice = make_alice()
    secret, _ = turn_on(sign_in(alice))
    browser = Client()
    log_in(browser, alice.email, "wrong-password-9")
    assert browser.post(CODE, {"code": fresh_code_of(alice, secret)})["Location"] == "/accounts/login/"
    assert not is_signed_in(browser)
    assert is_signed_in(sign_in_with_code(alice, secret))
    assert PASSWORD not in browser.get("/accounts/login/").content.decode()


def test_an_operator_frees_somebody_who_lost_app_and_codes_and_the_person_is_told(
    mailbox: Path, settings: Settings
) -> None:
    settings.LOCAL_MODE = True
    alice, charlie = make_alice(), make_charlie()
    for person in (alice, charlie):
        turn_on(sign_in(person))
    boss = sign_in(make_person("boss", is_admin=True))
    form = {"action": "remove_second_factor", "_selected_action": [str(alice.pk), boss.session["_auth_user_id"]]}
    assert "Second factors removed: 1." in boss.post("/admin/accounts/person/", form, follow=True).content.decode()
    assert log_in(Client(), alice.email)["Location"] == "/"
    assert log_in(Client(), charlie.email)["Location"] == CODE
    assert last_mail(mailbox, alice.email)[0] == "The second factor is off"
