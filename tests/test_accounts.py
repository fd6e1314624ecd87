"""People come in: sign-up, confirmation, login, logout, all through the pages."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from allauth.account.models import EmailAddress
from django.db import IntegrityError, connection
from django.test import Client
from pytest_django import Settings

from klerai.accounts.models import Person
from tests.front_door import LOGIN, RESET, SIGNUP, is_signed_in, last_mail, link_in, log_in, mail_into, without_secrets
from tests.people import PASSWORD, make_alice, make_person, make_unverified, new_email, sign_in, suspend


@pytest.fixture
def mailbox(settings: Settings, tmp_path: Path) -> Path:
    return mail_into(tmp_path, settings)


def test_a_person_signs_up_confirms_by_mail_and_logs_in_anywhere(mailbox: Path) -> None:
    email, browser = new_email(), Client()

    answer = browser.post(SIGNUP, {"email": email, "password1": PASSWORD, "time_zone": "Europe/Berlin"})
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/confirm-email/")
    assert not is_signed_in(browser)
    assert "Check your mail" in browser.get(answer["Location"]).content.decode()
    person = Person.objects.get(email=email)
    assert not person.is_verified
    assert person.time_zone == "Europe/Berlin"

    subject, text = last_mail(mailbox, email)
    assert subject == "Confirm your address"
    link = link_in(text)
    page = browser.get(link)
    assert email in page.content.decode()
    assert not Person.objects.get(email=email).is_verified, "opening the link must not be enough: scanners do that"
    assert browser.post(link)["Location"] == "/"
    assert is_signed_in(browser)
    assert Person.objects.get(email=email).is_verified

    elsewhere = Client()
    assert log_in(elsewhere, email.upper())["Location"] == "/"
    assert is_signed_in(elsewhere)


def test_confirming_in_another_browser_does_not_sign_that_browser_in(mailbox: Path) -> None:
    email = new_email()
    Client().post(SIGNUP, {"email": email, "password1": PASSWORD})
    phone = Client()
    assert phone.post(link_in(last_mail(mailbox, email)[1]))["Location"] == LOGIN
    assert not is_signed_in(phone)
    assert Person.objects.get(email=email).is_verified


def test_an_unverified_person_cannot_log_in_and_gets_the_link_again(mailbox: Path) -> None:
    person, browser = make_unverified(), Client()
    assert log_in(browser, person.email)["Location"] == "/accounts/confirm-email/"
    assert not is_signed_in(browser)
    assert "/accounts/confirm-email/" in last_mail(mailbox, person.email)[1]


def test_signing_up_with_a_taken_address_looks_the_same_and_tells_its_owner(mailbox: Path) -> None:
    alice = make_alice()
    fresh = new_email()
    answers = {}
    for email in (alice.email, fresh):
        browser = Client()
        answer = browser.post(SIGNUP, {"email": email, "password1": PASSWORD})
        page = browser.get(answer["Location"])
        answers[email] = (answer.status_code, answer["Location"], without_secrets(page))
    assert answers[alice.email] == answers[fresh]
    assert Person.objects.filter(email=alice.email).count() == 1
    assert "has one already" in last_mail(mailbox, alice.email)[1]


def test_errors_stand_under_their_field_and_are_tied_to_it() -> None:
    page = Client().post(SIGNUP, {"email": "nonsense", "password1": "12345"}).content.decode()
    for name in ("email", "password1"):
        field = re.search(rf'<input[^>]*name="{name}"[^>]*>', page)
        assert field
        assert 'aria-invalid="true"' in field[0]
        described = re.search(r'aria-describedby="([^"]*)"', field[0])
        assert described
        for part in described[1].split():
            assert f'id="{part}"' in page
    assert [name for name in ("email", "password1") if re.search(rf'name="{name}"[^>]*autofocus', page)] == ["email"]
    assert not Person.objects.filter(email="nonsense").exists()


def test_the_pages_at_the_door_carry_no_inline_script_or_style() -> None:
    for address in (SIGNUP, LOGIN, RESET, "/accounts/confirm-email/", "/accounts/inactive/"):
        page = Client().get(address)
        assert page.status_code == 200
        text = page.content.decode()
        assert "<style" not in text
        assert " style=" not in text
        assert not re.search(r"<script(?![^>]*\bsrc=)", text)
        assert "unsafe" not in page["Content-Security-Policy"]


@pytest.mark.parametrize(("setting", "words"), [("invite", "by invitation"), ("closed", "no new accounts now")])
def test_a_server_that_takes_no_sign_ups_says_so(settings: Settings, setting: str, words: str) -> None:
    settings.SIGNUP = setting
    email = new_email()
    for page in (Client().get(SIGNUP), Client().post(SIGNUP, {"email": email, "password1": PASSWORD})):
        assert words in page.content.decode()
    assert not Person.objects.filter(email=email).exists()


def test_hidden_fields_of_the_sign_up_form_give_nothing(mailbox: Path) -> None:
    email = new_email()
    extra = {"is_staff": "1", "is_superuser": "1", "is_active": "0", "email_verified_at": "2020-01-01", "id": "1"}
    Client().post(SIGNUP, {"email": email, "password1": PASSWORD, "ceiling_credits": "1000", **extra})
    person = Person.objects.get(email=email)
    assert (person.is_staff, person.is_superuser, person.is_active) == (False, False, True)
    assert (person.is_verified, person.ceiling_credits) == (False, 25)


def test_logging_out_takes_a_press_and_ends_the_session() -> None:
    browser = sign_in(make_alice())
    assert "Sign out" in browser.get("/accounts/logout/").content.decode()
    assert is_signed_in(browser)
    assert browser.post("/accounts/logout/").status_code == 302
    assert not is_signed_in(browser)


def test_a_suspended_person_is_told_so_and_stays_out(mailbox: Path) -> None:
    alice = make_alice()
    suspend(alice)
    browser = Client()
    page = browser.post(LOGIN, {"login": alice.email, "password": PASSWORD}, follow=True)
    assert not is_signed_in(browser)
    assert alice.email not in page.content.decode().replace(f'value="{alice.email}"', "")
    browser.post(RESET, {"email": alice.email})
    assert "/password/reset/key/" not in last_mail(mailbox, alice.email)[1]


def test_keep_me_signed_in_decides_how_long_the_cookie_lives() -> None:
    alice = make_alice()
    short, long = Client(), Client()
    log_in(short, alice.email)
    log_in(long, alice.email, remember="on")
    assert short.session.get_expire_at_browser_close()
    assert not long.session.get_expire_at_browser_close()


def test_a_login_never_leads_to_another_site() -> None:
    alice = make_alice()
    for target in ("https://evil.example/", "//evil.example/", "/\\evil.example"):
        answer = log_in(Client(), alice.email, next=target)
        assert answer["Location"] == "/"
    assert log_in(Client(), alice.email, next="/billing/")["Location"] == "/billing/"


def test_verification_follows_the_address_whoever_changes_it() -> None:
    alice = make_alice()
    address = EmailAddress.objects.get(user=alice)
    since = Person.objects.get(pk=alice.pk).email_verified_at
    assert since is not None
    address.save()
    assert Person.objects.get(pk=alice.pk).email_verified_at == since, "a second save is not a second verification"

    stale = Person.objects.get(pk=alice.pk)
    stale.email_verified_at = None
    stale.save()
    assert Person.objects.get(pk=alice.pk).is_verified, "a stale row cannot undo it"

    alice.email = new_email("moved")
    alice.save(update_fields=["email"])
    assert not Person.objects.get(pk=alice.pk).is_verified, "the new address was never confirmed"
    alice.email = address.email
    alice.save(update_fields=["email"])
    assert Person.objects.get(pk=alice.pk).is_verified
    address.delete()
    assert not Person.objects.get(pk=alice.pk).is_verified


def test_one_address_in_two_spellings_is_one_person() -> None:
    alice = make_alice()
    with pytest.raises(IntegrityError):
        Person.objects.bulk_create([Person(email=alice.email.upper())])


def test_a_stranger_never_becomes_the_person_whose_link_they_open(mailbox: Path) -> None:
    email = new_email()
    Client().post(SIGNUP, {"email": email, "password1": PASSWORD})
    charlie = make_person("charlie")
    browser = sign_in(charlie)
    browser.post(link_in(last_mail(mailbox, email)[1]))
    assert browser.session.get("_auth_user_id") in (None, str(charlie.pk))


def test_signing_up_at_the_same_moment_with_one_address_makes_one_person(mailbox: Path) -> None:
    email, ready = new_email(), threading.Barrier(4)

    def sign_up(_: int) -> tuple[int, str]:
        ready.wait()
        answer = Client().post(SIGNUP, {"email": email, "password1": PASSWORD})
        connection.close()
        return answer.status_code, answer["Location"]

    with ThreadPoolExecutor(4) as threads:
        answers = set(threads.map(sign_up, range(4)))
    assert answers == {(302, "/accounts/confirm-email/")}
    assert Person.objects.filter(email=email).count() == 1
    assert EmailAddress.objects.filter(email=email).count() == 1
