"""Staff outside local mode: in with a code that was given in this very session, and told what to do without."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client
from pytest_django import Settings

from klerai.accounts.models import Person
from tests.front_door import log_in
from tests.people import make_alice, make_person, sign_in
from tests.second_factor import (
    CODE,
    CONFIRM,
    OFF,
    ON,
    confirm_code,
    fresh_code_of,
    sign_in_with_code,
    turn_on,
    wrong_code,
)

PAGES = ["/admin/", "/admin/accounts/person/", "/admin/accounts/apikey/", "/admin/jsi18n/"]


@pytest.fixture(autouse=True)
def deployed(settings: Settings) -> None:
    settings.LOCAL_MODE = False


@pytest.fixture
def boss() -> Person:
    return make_person("boss", is_admin=True)


def opens(browser: Client, address: str = "/admin/") -> bool:
    return browser.get(address).status_code == 200


def refusal(browser: Client, address: str = "/admin/") -> Any:
    answer = browser.get(address, follow=True)
    assert answer.status_code == 403
    return answer.content.decode()


def test_a_code_at_sign_in_opens_the_admin(boss: Person) -> None:
    secret, _ = turn_on(sign_in(boss))
    browser = sign_in_with_code(boss, secret)
    assert all(opens(browser, address) for address in PAGES)


def test_without_a_second_factor_staff_are_told_to_set_one_up_and_the_way_leads_in(boss: Person) -> None:
    browser = Client()
    log_in(browser, boss.email)
    for address in PAGES:
        page = refusal(browser, address)
        assert "Staff need a second factor here, and this account has none." in page
        assert f'href="{ON}"' in page
    secret, _ = turn_on(browser)
    page = refusal(browser)
    assert "this session was opened without it" in page
    assert f'href="{CONFIRM}?next=%2Fadmin%2F"' in page
    answer = browser.post(CONFIRM, {"code": fresh_code_of(boss, secret), "next": "/admin/"})
    assert answer["Location"] == "/admin/"
    assert opens(browser)


def test_one_that_was_set_up_in_another_session_does_not_open_this_one(boss: Person) -> None:
    here = Client()
    log_in(here, boss.email)
    secret, _ = turn_on(sign_in(boss))
    assert "this session was opened without it" in refusal(here)
    assert opens(sign_in_with_code(boss, secret))
    assert not opens(here), "nor does a code that was given elsewhere"


def test_neither_a_wrong_code_nor_a_recovery_code_is_enough(boss: Person) -> None:
    secret, codes = turn_on(sign_in(boss))
    browser = Client()
    log_in(browser, boss.email)
    assert browser.post(CODE, {"code": codes[0]}).status_code == 302
    assert "Give a code of your app" in refusal(browser)
    for code in (wrong_code(secret), codes[0], codes[1]):
        browser.post(CONFIRM, {"code": code, "next": "/admin/"})
        assert not opens(browser)


def test_turning_it_off_closes_the_admin_and_a_new_one_wants_its_own_code(boss: Person) -> None:
    secret, _ = turn_on(sign_in(boss))
    browser = sign_in_with_code(boss, secret)
    confirm_code(browser, fresh_code_of(boss, secret), OFF)
    browser.post(OFF)
    assert not Authenticator.objects.filter(user=boss).exists()
    assert "this account has none" in refusal(browser)
    turn_on(browser)
    assert not opens(browser), "the code given at sign-in was one of another app"


def test_people_who_are_not_staff_stay_out_whatever_they_give() -> None:
    alice = make_alice()
    secret, _ = turn_on(sign_in(alice))
    assert "for the people who run this server" in refusal(sign_in_with_code(alice, secret))


def test_strangers_come_back_to_where_they_wanted_after_both_steps(boss: Person) -> None:
    secret, _ = turn_on(sign_in(boss))
    browser = Client()
    assert browser.get("/admin/accounts/person/", follow=True).redirect_chain[-1][0].startswith("/accounts/login/")
    log_in(browser, boss.email, next="/admin/accounts/person/")
    answer = browser.post(CODE, {"code": fresh_code_of(boss, secret)})
    assert answer["Location"] == "/admin/accounts/person/"
    assert opens(browser, answer["Location"])


def test_the_way_in_never_leads_to_another_site(boss: Person) -> None:
    secret, _ = turn_on(sign_in(boss))
    browser = sign_in(boss)
    evil = "https://evil.example/"
    assert browser.post(CONFIRM, {"code": fresh_code_of(boss, secret), "next": evil})["Location"] == "/"


def test_in_local_mode_staff_need_none(settings: Settings, boss: Person) -> None:
    settings.LOCAL_MODE = True
    assert all(opens(sign_in(boss), address) for address in PAGES)


def test_the_admin_lists_neither_keys_of_apps_nor_sessions(settings: Settings, boss: Person) -> None:
    settings.LOCAL_MODE = True
    browser = sign_in(boss)
    for address in ("/admin/mfa/authenticator/", "/admin/usersessions/usersession/"):
        assert browser.get(address).status_code == 404
