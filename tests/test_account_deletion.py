"""Deleting an account: it says what is lost, asks who it is, and leaves nothing but lines that name nobody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.sessions.models import Session
from django.test import Client
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from billing import audit, credits
from billing.models import Account, Transaction
from chat.models import Run
from klerai.accounts.models import Person
from retrieval.models import KnowledgeBase
from tests.account_rows import (
    Belongings,
    cached_vectors,
    make_belongings,
    models_with_a_path_to_a_person,
    rows_of,
    traces_of,
)
from tests.fakes.ollama_server import OllamaFake
from tests.front_door import is_signed_in, last_mail, log_in, mail_into
from tests.people import PASSWORD, bearer, key_text, make_alice, make_charlie, make_person, sign_in
from tests.second_factor import CONFIRM, confirm_code, fresh_code_of, turn_on

DELETE, CODE, GOODBYE = "/settings/delete/", "/settings/delete/code/", "/goodbye/"
# What the books keep. It names an id that belongs to nobody.
BOOKS = {
    ("billing.Account", "person_id"),
    ("billing.Transaction", "person_id"),
    ("billing.Order", "person_id"),
    ("billing.Payment", "person_id"),
    ("billing.Transaction", "key"),
    ("admin.LogEntry", "object_id"),
    ("admin.LogEntry", "object_repr"),
}


def browser_of(person: Person) -> Client:
    browser = Client(REMOTE_ADDR="203.0.113.7")
    assert log_in(browser, person.email)["Location"] == "/"
    return browser


def leave(browser: Client, **confirmed: str) -> tuple[int, str]:
    page = browser.post(DELETE, confirmed or {"password": PASSWORD})
    return page.status_code, page.content.decode()


@pytest.fixture(scope="module")
def gone() -> tuple[Person, Belongings, Person, Client]:
    """Alice had a bit of everything and has left; so had Charlie, who is still there."""
    alice, charlie = make_alice(), make_charlie()
    hers = make_belongings(alice)
    make_belongings(charlie)
    staff = make_person("staff", is_admin=True)
    LogEntry.objects.log_actions(
        user_id=staff.pk, queryset=[alice], action_flag=CHANGE, change_message="Granted 5 credits", single_object=True
    )
    browser = browser_of(alice)
    assert leave(browser)[0] == 302
    return alice, hers, charlie, browser


def test_a_row_is_made_in_every_table_that_leads_to_a_person() -> None:
    """So that the next test cannot pass for want of something to be left over."""
    alice = make_alice()
    make_belongings(alice)
    browser_of(alice)
    never = {"Group", "Permission", "EmailConfirmation", "LogEntry", "PastDueNotice", "Person_groups"}
    never |= {"Person_user_permissions"}
    empty = {model.__name__ for model in models_with_a_path_to_a_person() if not rows_of(model, {alice.pk})}
    assert empty <= never


def test_no_model_of_any_app_leads_to_somebody_who_left(gone: tuple[Person, Belongings, Person, Client]) -> None:
    _, hers, _, _ = gone
    left = {model.__name__ for model in models_with_a_path_to_a_person() if rows_of(model, {hers.run.person_id})}
    assert left == set()
    assert not Person.objects.filter(email=gone[0].email).exists()


def test_no_field_of_any_model_names_them_beside_the_books(gone: tuple[Person, Belongings, Person, Client]) -> None:
    alice, hers, _, _ = gone
    names = {str(hers.conversation.pk), str(hers.document.pk), str(hers.run.run_id), f"cus_{hers.run.person_id.hex}"}
    assert set(traces_of(hers.run.person_id, alice.email, names)) <= BOOKS
    assert not Session.objects.filter(session_key=gone[3].session.session_key or "-").exists()


def test_the_books_close_with_nothing_held_and_nothing_left(gone: tuple[Person, Belongings, Person, Client]) -> None:
    _, hers, _, _ = gone
    accounts = Account.objects.filter(person_id=hers.run.person_id, kind__in=["wallet", "held"])
    assert accounts.count() == 4
    assert set(accounts.values_list("balance", flat=True)) == {0}
    kinds = Transaction.objects.filter(person_id=hers.run.person_id).order_by("number").values_list("kind", flat=True)
    assert list(kinds)[-2:] == ["release", "expire"]
    mine = {str(hers.run.person_id), str(hers.live.pk)}
    assert not [violation for violation in audit.violations() if any(each in str(violation) for each in mine)]


def test_the_vectors_of_their_words_leave_the_cache_and_charlies_stay(
    settings: Settings, ollama_fake: OllamaFake
) -> None:
    settings.EMBEDDER = "ollama"
    alice, charlie = make_alice(), make_charlie()
    before = cached_vectors()
    make_belongings(alice)
    hers = cached_vectors() - before
    make_belongings(charlie)
    his = cached_vectors() - before - hers
    assert hers
    assert his
    leave(browser_of(alice))
    assert not hers & cached_vectors()
    assert his <= cached_vectors()


def test_somebody_else_keeps_every_row() -> None:
    alice, charlie = make_alice(), make_charlie()
    make_belongings(alice)
    make_belongings(charlie)

    def rows() -> dict[str, int]:
        return {model.__name__: len(rows_of(model, {charlie.pk})) for model in models_with_a_path_to_a_person()}

    before, browser = rows(), browser_of(alice)
    assert leave(browser)[0] == 302
    assert rows() == before
    assert credits.balance_of(charlie).held == 5


def test_the_live_run_and_its_job_are_gone_and_charlies_job_waits(
    gone: tuple[Person, Belongings, Person, Client],
) -> None:
    _, hers, charlie, _ = gone
    assert not Run.objects.filter(pk=hers.live.pk).exists()
    jobs = ProcrastinateJob.objects
    assert not jobs.filter(args__document_id=str(hers.document.pk)).exists()
    his = KnowledgeBase.objects.get(owner=charlie).documents.get()
    assert jobs.filter(args__document_id=str(his.pk)).exists()


def test_sessions_and_keys_are_refused_at_once_and_the_page_says_so() -> None:
    alice = make_alice()
    here, there, text = browser_of(alice), browser_of(alice), key_text(alice)
    done = here.post(DELETE, {"password": PASSWORD})
    assert done["Location"] == GOODBYE
    assert "Your account is deleted" in here.get(GOODBYE).content.decode()
    assert not is_signed_in(here)
    assert there.get("/settings/").status_code == 302
    assert Client().get("/api/conversations", headers=bearer(text)).status_code == 401


def test_the_page_says_what_is_lost() -> None:
    alice = make_alice()
    make_belongings(alice)
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", browser_of(alice).get(DELETE).content.decode()))
    assert "Today’s credits 45 Credits from packs 500, which are not paid back Conversations 2, with" in page
    assert "Documents 1, with what the web said and its keywords API keys 1: programs" in page
    assert "Your plan" not in page


@pytest.mark.parametrize("password", ["", "wrong", PASSWORD.upper()])
def test_a_wrong_password_deletes_nothing(password: str) -> None:
    alice = make_alice()
    make_belongings(alice)
    status, page = leave(browser_of(alice), password=password)
    assert status == 422
    assert "That is not your password. Nothing was deleted." in page
    assert Run.objects.filter(person=alice).count() == 2


def test_somebody_without_a_password_gives_a_code_that_came_by_mail(settings: Settings, tmp_path: Path) -> None:
    mailbox = mail_into(tmp_path, settings)
    alice = make_alice()
    alice.set_unusable_password()
    alice.save()
    browser = sign_in(alice)
    assert leave(browser, password="")[0] == 422
    assert browser.post(CODE).status_code == 302
    subject, text = last_mail(mailbox, alice.email)
    code = text.split()[0]
    assert subject == "Your code"
    assert leave(browser, code="000000" if code != "000000" else "111111")[0] == 422
    assert leave(sign_in(alice), code=code)[0] == 422, "the code of another session"
    assert leave(browser, code=code)[0] == 302
    assert not Person.objects.filter(email=alice.email).exists()
    assert not [file for file in mailbox.glob("*.eml") if alice.email in file.read_text()], "nor the mail about it"


def test_after_five_wrong_codes_the_right_one_is_void(settings: Settings, tmp_path: Path) -> None:
    mailbox = mail_into(tmp_path, settings)
    alice = make_alice()
    alice.set_unusable_password()
    alice.save()
    browser = sign_in(alice)
    browser.post(CODE)
    code = last_mail(mailbox, alice.email)[1].split()[0]
    for _ in range(5):
        leave(browser, code="wrong!")
    assert leave(browser, code=code)[0] == 422
    assert Person.objects.filter(pk=alice.pk).exists()


def test_somebody_with_a_second_factor_gives_a_code_of_it_before_the_password() -> None:
    alice = make_alice()
    secret, _ = turn_on(sign_in(alice))
    thief = sign_in(alice)  # a session that has the password and nothing else
    assert thief.post(DELETE, {"password": PASSWORD})["Location"] == DELETE
    assert PASSWORD not in str(dict(thief.session))
    assert thief.get(DELETE)["Location"].startswith(CONFIRM)
    assert Person.objects.filter(pk=alice.pk).exists()
    assert confirm_code(thief, fresh_code_of(alice, secret), DELETE)["Location"] == DELETE
    assert thief.post(DELETE, {"password": PASSWORD})["Location"] == GOODBYE
    assert not Authenticator.objects.filter(user_id=alice.pk).exists()


def test_staff_stay_and_are_told_why() -> None:
    staff = make_person("staff", is_admin=True)
    status, page = leave(browser_of(staff))
    assert status == 422
    assert "Have another one take that role from you first. Nothing was deleted." in page
    assert Person.objects.filter(pk=staff.pk).exists()


def test_a_stranger_and_a_forged_form_delete_nothing() -> None:
    alice = make_alice()
    assert Client().post(DELETE, {"password": PASSWORD})["Location"].startswith("/accounts/login/")
    forged = Client(enforce_csrf_checks=True)
    forged.cookies = browser_of(alice).cookies
    assert forged.post(DELETE, {"password": PASSWORD}).status_code == 403
    assert Person.objects.filter(pk=alice.pk).exists()


def test_the_same_address_can_sign_up_anew_and_starts_with_nothing(settings: Settings, tmp_path: Path) -> None:
    mailbox = mail_into(tmp_path, settings)
    alice = make_alice()
    make_belongings(alice)
    leave(browser_of(alice))
    anew = Client()
    anew.post("/accounts/signup/", {"email": alice.email, "password1": PASSWORD})
    assert "Confirm" in last_mail(mailbox, alice.email)[0]
    fresh = Person.objects.get(email=alice.email)
    assert credits.balance_of(fresh).available == 0
