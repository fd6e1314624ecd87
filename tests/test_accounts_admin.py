"""The admin: for staff, through our login, without secrets and without inline script or style."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from chat.models import Run
from klerai.accounts.models import ApiKey, Person
from tests.account_rows import make_belongings
from tests.people import PASSWORD, bearer, key_text, make_alice, make_charlie, make_person, sign_in

PAGES = [
    "/admin/",
    "/admin/accounts/",
    "/admin/accounts/person/",
    "/admin/accounts/person/?q=alice&is_active__exact=1",
    "/admin/accounts/apikey/",
    "/admin/procrastinate/procrastinatejob/",
]


@pytest.fixture(autouse=True)
def local(settings: Settings) -> None:
    settings.LOCAL_MODE = True


@pytest.fixture
def boss() -> Client:
    return sign_in(make_person("boss", is_admin=True))


def test_strangers_are_led_to_our_own_login_and_back() -> None:
    answer = Client().get("/admin/accounts/person/", follow=True)
    assert answer.redirect_chain[-1][0].startswith("/accounts/login/?next=")
    boss = make_person("boss", is_admin=True)
    browser = Client()
    back = browser.post(
        "/accounts/login/", {"login": boss.email, "password": PASSWORD, "next": "/admin/accounts/person/"}
    )
    assert browser.get(back["Location"]).status_code == 200


def test_people_who_are_not_staff_read_why_and_see_nothing() -> None:
    for address in PAGES:
        answer = sign_in(make_alice()).get(address, follow=True)
        assert answer.status_code == 403
        assert "for the people who run this server" in answer.content.decode()


def test_suspended_staff_are_strangers(boss: Client) -> None:
    Person.objects.filter(pk=boss.session["_auth_user_id"]).update(is_active=False)
    assert boss.get("/admin/")["Location"].startswith("/admin/login/")


@pytest.mark.parametrize("address", PAGES)
def test_no_page_has_inline_script_or_style(boss: Client, address: str) -> None:
    make_alice()
    page = boss.get(address)
    assert page.status_code == 200
    check_markup(page)


def test_the_pages_of_one_row_have_none_either_and_show_no_secret(boss: Client) -> None:
    alice = make_alice()
    text = key_text(alice)
    key = ApiKey.objects.get(person=alice)
    alice.refresh_from_db()
    for address in (
        f"/admin/accounts/person/{alice.pk}/change/",
        f"/admin/accounts/apikey/{key.pk}/change/",
        f"/admin/accounts/apikey/{key.pk}/history/",
        "/admin/accounts/person/",
        "/admin/accounts/apikey/",
    ):
        page = boss.get(address)
        assert page.status_code == 200
        check_markup(page)
        for secret in (alice.password, key.digest, text):
            assert secret not in page.content.decode()


def check_markup(page: Any) -> None:
    text = page.content.decode()
    policy = page["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<style" not in text
    assert not re.search(r"\sstyle=", text)
    assert not re.search(r"<[^<>]*\son[a-z]+=", text)
    for tag in re.findall(r"<script[^>]*>", text):
        assert " src=" in tag or 'type="application/json"' in tag, tag


def test_nothing_can_be_added_changed_or_deleted_by_form(boss: Client) -> None:
    alice = make_alice()
    key_text(alice)
    key = ApiKey.objects.get(person=alice)
    for address in (
        "/admin/accounts/person/add/",
        f"/admin/accounts/person/{alice.pk}/delete/",
        "/admin/accounts/apikey/add/",
        f"/admin/accounts/apikey/{key.pk}/delete/",
    ):
        assert boss.get(address).status_code == 403
    boss.post(f"/admin/accounts/person/{alice.pk}/change/", {"email": "x@example.org", "is_staff": "on"})
    same = Person.objects.get(pk=alice.pk)
    assert (same.email, same.is_staff) == (alice.email, False)


def act(boss: Client, model: str, action: str, *rows: object, reason: str = "") -> str:
    form = {"action": action, "_selected_action": [str(row) for row in rows], "reason": reason}
    return boss.post(f"/admin/accounts/{model}/", form, follow=True).content.decode()


def test_suspending_refuses_from_the_next_request_and_never_oneself(boss: Client) -> None:
    alice = make_alice()
    browser = sign_in(alice)
    myself = boss.session["_auth_user_id"]
    assert browser.get("/accounts/password/change/").status_code == 200
    assert "say why" in act(boss, "person", "suspend", alice.pk)
    assert browser.get("/accounts/password/change/").status_code == 200
    assert "People suspended: 1." in act(boss, "person", "suspend", alice.pk, myself, reason="Sells keys")
    assert browser.get("/accounts/password/change/").status_code == 302
    assert boss.get("/admin/").status_code == 200
    assert "People reinstated: 1." in act(boss, "person", "reinstate", alice.pk)
    assert Person.objects.get(pk=alice.pk).is_active
    history = boss.get(f"/admin/accounts/person/{alice.pk}/history/").content.decode()
    assert "Suspended: Sells keys" in history
    assert "Reinstated" in history


def test_what_runs_for_somebody_stops_when_they_are_suspended_and_their_key_is_refused(boss: Client) -> None:
    alice, charlie = make_alice(), make_charlie()
    hers, his = make_belongings(alice), make_belongings(charlie)
    act(boss, "person", "suspend", alice.pk, reason="Sells keys")
    assert Run.objects.get(pk=hers.live.pk).stop_requested_at is not None
    assert Run.objects.get(pk=his.live.pk).stop_requested_at is None
    assert Client().get("/api/conversations", headers=bearer(hers.key_text)).status_code == 401
    assert Client().get("/api/conversations", headers=bearer(his.key_text)).status_code == 200


def test_revoking_a_key_in_the_admin(boss: Client) -> None:
    alice = make_alice()
    key_text(alice)
    key = ApiKey.objects.get(person=alice)
    assert "Keys revoked: 1." in act(boss, "apikey", "revoke", key.pk)
    assert not ApiKey.objects.get(pk=key.pk).is_active


def test_a_name_with_markup_is_text_in_the_list(boss: Client) -> None:
    alice = make_alice()
    Person.objects.filter(pk=alice.pk).update(name="<img src=x onerror=alert(1)>")
    page = boss.get(f"/admin/accounts/person/?q={alice.email}").content.decode()
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


def test_signing_out_of_the_admin_takes_a_press(boss: Client) -> None:
    assert boss.get("/admin/logout/").status_code == 405
    assert boss.post("/admin/logout/")["Location"] == "/"
    assert "_auth_user_id" not in boss.session
