"""Another e-mail: used only after its link was followed, told to the old one, and never a way into another account."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import signing
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from billing.credits import balance_of
from klerai.accounts.models import EmailChange, Person
from klerai.models import OutgoingMail
from tests.front_door import is_signed_in, last_mail, link_in, log_in, mail_into, without_secrets
from tests.people import PASSWORD, bearer, key_text, make_alice, make_charlie, new_email, sign_in
from tests.second_factor import confirm_password, turn_on

EMAIL, AGAIN, KEEP = "/accounts/email/", "/accounts/email/again/", "/accounts/email/keep/"
SETTINGS = "/settings/"


@pytest.fixture(autouse=True)
def mailbox(settings: Settings, tmp_path: Path) -> Path:
    return mail_into(tmp_path, settings)


def ask(browser: Client, email: str) -> Any:
    confirm_password(browser, EMAIL)
    return browser.post(EMAIL, {"email": email})


def link_for(mailbox: Path, email: str) -> str:
    subject, text = last_mail(mailbox, email)
    assert subject == "Confirm your new e-mail"
    return link_in(text)


def waiting_for(email: str) -> int:
    return OutgoingMail.objects.filter(message__to=[email]).count()


def test_the_new_address_is_used_after_its_link_was_followed_and_not_before(mailbox: Path) -> None:
    alice, new = make_alice(), new_email("moved")
    browser = sign_in(alice)
    assert ask(browser, new.upper())["Location"] == SETTINGS
    page = browser.get("/settings/").content.decode()
    assert f"A link is on its way to {new}" in page
    assert f"Signed in as {alice.email}" in page

    link = link_for(mailbox, new)
    assert log_in(Client(), new).status_code == 200, "it does not sign in yet"
    Client().post("/accounts/password/reset/", {"email": new})
    assert "There is no such account" in last_mail(mailbox, new)[1], "nor does it set a new password"
    assert new in browser.get(link).content.decode()
    assert Person.objects.get(pk=alice.pk).email == alice.email, "opening the link must not be enough: scanners do that"

    assert browser.post(link)["Location"] == SETTINGS
    moved = Person.objects.get(pk=alice.pk)
    assert (moved.email, moved.is_verified) == (new, True)
    assert log_in(Client(), new)["Location"] == "/"
    assert log_in(Client(), alice.email).status_code == 200, "the old one signs nobody in any more"
    assert [each.email for each in EmailAddress.objects.filter(user=alice)] == [new]


def test_the_old_address_is_told(mailbox: Path) -> None:
    alice, new = make_alice(), new_email("moved")
    browser = sign_in(alice)
    ask(browser, new)
    browser.post(link_for(mailbox, new))
    subject, text = last_mail(mailbox, alice.email)
    assert subject == "Your e-mail was changed"
    assert f"from {alice.email} to {new}" in text


def test_nothing_but_the_address_changes(mailbox: Path) -> None:
    alice, new = make_alice(), new_email("moved")
    browser, key = sign_in(alice), key_text(alice)
    turn_on(browser)
    before = balance_of(alice)
    ask(browser, new)
    browser.post(link_for(mailbox, new))
    assert balance_of(alice) == before
    assert is_signed_in(browser)
    assert Client().get("/api/conversations", headers=bearer(key)).status_code == 200
    assert log_in(Client(), new)["Location"] == "/accounts/second-factor/code/"


def test_an_address_that_is_taken_looks_free_and_its_owner_is_told(mailbox: Path) -> None:
    alice, charlie = make_alice(), make_charlie()
    free = new_email("moved")
    pages = []
    for email in (charlie.email, free):
        browser = sign_in(alice)
        answer = ask(browser, email)
        text = without_secrets(browser.get("/settings/")).replace(email, "ADDRESS")
        pages.append((answer.status_code, answer["Location"], text.partition("Where you are signed in")[0]))
    assert pages[0] == pages[1]
    subject, text = last_mail(mailbox, charlie.email)
    assert subject == "You have an account already"
    assert "/accounts/email/confirm/" not in text
    assert Person.objects.get(pk=charlie.pk).email == charlie.email


def test_asking_for_an_address_does_not_keep_its_owner_from_signing_up_and_whoever_confirms_first_has_it(
    mailbox: Path,
) -> None:
    alice, wanted = make_alice(), new_email("wanted")
    browser = sign_in(alice)
    ask(browser, wanted)
    link = link_for(mailbox, wanted)
    Client().post("/accounts/signup/", {"email": wanted, "password1": PASSWORD})
    assert last_mail(mailbox, wanted)[0] == "Confirm your address"
    assert "This link does not work" in browser.post(link).content.decode()
    assert Person.objects.get(pk=alice.pk).email == alice.email


def test_the_link_is_worth_nothing_to_whoever_else_reads_that_mail(mailbox: Path) -> None:
    alice, new = make_alice(), new_email("mistyped")
    ask(sign_in(alice), new)
    link = link_for(mailbox, new)
    assert Client().get(link)["Location"].startswith("/accounts/login/?next=")
    charlie = sign_in(make_charlie())
    for page in (charlie.get(link), charlie.post(link)):
        assert "This link does not work" in page.content.decode()
        assert alice.email not in page.content.decode()
    assert Person.objects.get(pk=alice.pk).email == alice.email
    assert is_signed_in(charlie)


def test_a_link_works_once_and_only_the_newest(mailbox: Path) -> None:
    alice, first, second = make_alice(), new_email("first"), new_email("second")
    browser = sign_in(alice)
    ask(browser, first)
    older = link_for(mailbox, first)
    ask(browser, second)
    newer = link_for(mailbox, second)
    assert "This link does not work" in browser.post(older).content.decode()
    assert browser.post(newer)["Location"] == SETTINGS
    assert "This link does not work" in browser.post(newer).content.decode()
    assert Person.objects.get(pk=alice.pk).email == second


def test_a_link_is_good_for_three_days_and_cannot_be_made_up(mailbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alice, new = make_alice(), new_email("moved")
    browser = sign_in(alice)
    ask(browser, new)
    link = link_for(mailbox, new)
    change = EmailChange.objects.get(person=alice)
    forged = f"/accounts/email/confirm/{signing.dumps(str(change.pk), salt='another')}/"
    assert "This link does not work" in browser.post(forged).content.decode()
    later = timezone.now() + timedelta(days=3, minutes=1)
    with monkeypatch.context() as clock:
        clock.setattr("django.core.signing.time.time", later.timestamp)
        assert "This link does not work" in browser.get(link).content.decode()
    assert new in browser.get(link).content.decode()


def test_the_link_can_be_sent_again_or_given_up(mailbox: Path) -> None:
    alice, new = make_alice(), new_email("moved")
    browser = sign_in(alice)
    ask(browser, new)
    link = link_for(mailbox, new)
    browser.post(AGAIN)
    assert waiting_for(new) == 1
    assert browser.get(link_for(mailbox, new)).status_code == 200
    stranger = sign_in(make_charlie())
    stranger.post(AGAIN)
    stranger.post(KEEP)
    assert waiting_for(new) == 0
    assert f"Your e-mail stays {alice.email}." in browser.post(KEEP, follow=True).content.decode()
    assert "This link does not work" in browser.post(link).content.decode()
    browser.post(AGAIN)
    assert waiting_for(new) == 0


def test_it_wants_the_password_once_more_and_then_does_what_was_asked() -> None:
    new = new_email("moved")
    browser = sign_in(make_alice())
    assert browser.post(EMAIL, {"email": new})["Location"].startswith("/accounts/reauthenticate/")
    assert waiting_for(new) == 0
    assert confirm_password(browser, EMAIL)["Location"] == SETTINGS
    assert waiting_for(new) == 1


@pytest.mark.parametrize("wanted", ["nonsense", "", "their own"])
def test_what_is_no_new_address_is_refused_under_its_field(wanted: str) -> None:
    alice = make_alice()
    page = ask(sign_in(alice), alice.email if wanted == "their own" else wanted).content.decode()
    assert 'aria-invalid="true"' in page
    assert 'class="error"' in page
    assert not EmailChange.objects.filter(person=alice).exists()
