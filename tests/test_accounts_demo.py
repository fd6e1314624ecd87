"""The two accounts of local mode are there at every start, with the password that was printed."""

from __future__ import annotations

from django.test import Client

from klerai.accounts.demo import ensure_demo_accounts
from klerai.accounts.models import Person
from tests.people import make_alice, sign_in, suspend


def can_sign_in(email: str, password: str) -> bool:
    return Client().post("/accounts/login/", {"login": email, "password": password}).status_code == 302


def test_the_demo_accounts_can_sign_in_with_the_password_given() -> None:
    logins = ensure_demo_accounts("sunny-morning-3")
    assert logins.password == "sunny-morning-3"
    assert can_sign_in(logins.demo_email, logins.password)
    assert can_sign_in(logins.admin_email, logins.password)
    demo = Person.objects.get(email="demo@klerai.local")
    admin = Person.objects.get(email="admin@klerai.local")
    assert (demo.is_verified, demo.is_staff, demo.is_superuser) == (True, False, False)
    assert (admin.is_verified, admin.is_staff, admin.is_superuser) == (True, True, True)


def test_without_a_password_each_start_makes_another_random_one() -> None:
    first, second = ensure_demo_accounts(None), ensure_demo_accounts(None)
    assert first.password != second.password
    assert len(second.password) >= 16
    assert not can_sign_in(second.demo_email, first.password)
    assert can_sign_in(second.demo_email, second.password)


def test_a_restart_with_the_same_password_keeps_people_signed_in_and_makes_nobody_twice() -> None:
    logins = ensure_demo_accounts("sunny-morning-3")
    browser = sign_in(Person.objects.get(email=logins.demo_email))
    ensure_demo_accounts("sunny-morning-3")
    assert browser.get("/accounts/password/change/").status_code == 200
    assert Person.objects.filter(email__endswith="@klerai.local").count() == 2


def test_a_demo_account_that_was_suspended_or_promoted_is_itself_again_and_others_are_not_touched() -> None:
    alice = make_alice()
    suspend(alice)
    logins = ensure_demo_accounts("sunny-morning-3")
    Person.objects.filter(email=logins.demo_email).update(is_active=False, is_staff=True)
    ensure_demo_accounts("sunny-morning-3")
    demo = Person.objects.get(email=logins.demo_email)
    assert (demo.is_active, demo.is_staff) == (True, False)
    assert not Person.objects.get(pk=alice.pk).is_active
