"""Guessing is limited in Postgres, by address and by account, and only a known proxy says who asks."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client, RequestFactory
from pytest_django import Settings

from klerai.accounts.addresses import client_address, is_loopback, trusted_networks
from klerai.accounts.models import Person
from klerai.env import BadSetting, Environment
from tests.front_door import mail_into
from tests.people import PASSWORD, deliver_waiting_mail, make_alice, make_charlie, new_email, sign_in
from tests.second_factor import CODE, confirm_password, fresh_code_of, turn_on, wrong_code

LOGIN = "/accounts/login/"


@pytest.fixture
def limits(settings: Settings) -> Iterator[None]:
    """On, as in the product; tests leave them off, since all of them come from one address."""
    settings.ACCOUNT_RATE_LIMITS = {}
    cache.clear()
    yield
    cache.clear()


def guess(email: str, password: str = "wrong-password-9", *, address: str = "203.0.113.7", **headers: str) -> Any:
    return Client().post(LOGIN, {"login": email, "password": password}, REMOTE_ADDR=address, headers=headers)


def is_refused(answer: Any) -> bool:
    return answer.status_code == 429 or "Too many wrong passwords" in answer.content.decode()


@pytest.mark.usefixtures("limits")
def test_five_wrong_passwords_close_an_account_to_guessers_from_anywhere() -> None:
    alice, charlie = make_alice(), make_charlie()
    answers = [guess(alice.email, address=f"203.0.113.{number}") for number in range(8)]
    assert [is_refused(answer) for answer in answers] == [False] * 5 + [True] * 3
    assert is_refused(guess(alice.email, PASSWORD, address="198.51.100.1")), "nor with the right one, for a while"
    assert guess(charlie.email, PASSWORD, address="198.51.100.2").status_code == 302


@pytest.mark.thorough
@pytest.mark.usefixtures("limits")
def test_one_password_over_many_accounts_is_stopped_by_address() -> None:
    answers = [guess(new_email("nobody")) for _ in range(14)]
    assert sum(not is_refused(answer) for answer in answers) == 10
    assert not is_refused(guess(new_email("nobody"), address="198.51.100.9"))


@pytest.mark.thorough
@pytest.mark.usefixtures("limits")
def test_a_spoofed_forwarded_address_makes_no_new_guesser() -> None:
    answers = [guess(new_email("nobody"), **{"X-Forwarded-For": f"198.51.100.{number}"}) for number in range(14)]
    assert sum(not is_refused(answer) for answer in answers) == 10


@pytest.mark.thorough
@pytest.mark.usefixtures("limits")
def test_unknown_accounts_are_limited_like_known_ones() -> None:
    nobody = new_email("nobody")
    answers = [guess(nobody, address=f"203.0.113.{number}") for number in range(7)]
    assert [is_refused(answer) for answer in answers] == [False] * 5 + [True] * 2


@pytest.mark.usefixtures("limits")
def test_the_owner_with_a_session_is_not_locked_out_by_guessers() -> None:
    alice = make_alice()
    browser = sign_in(alice)
    for number in range(8):
        guess(alice.email, address=f"203.0.113.{number}")
    assert browser.get("/accounts/password/change/").status_code == 200


@pytest.mark.usefixtures("limits")
def test_the_count_is_in_postgres_so_that_every_process_shares_it() -> None:
    guess(make_alice().email)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM klerai_cache WHERE cache_key LIKE %s", ["%login_failed%"])
        assert cursor.fetchone()[0] >= 2


@pytest.mark.thorough
@pytest.mark.usefixtures("limits")
def test_sign_up_and_reset_are_limited_too_and_answer_with_a_page() -> None:
    for address in ("/accounts/signup/", "/accounts/password/reset/"):
        forms = [{"email": new_email("nobody"), "password1": "x"} for _ in range(22)]
        answers = [Client().post(address, form, REMOTE_ADDR="203.0.113.50") for form in forms]
        assert [answer.status_code == 429 for answer in answers] == [False] * 20 + [True] * 2
        assert "Too many tries" in answers[-1].content.decode()


@pytest.mark.thorough
@pytest.mark.usefixtures("limits")
def test_wrong_codes_close_the_second_step_wherever_they_come_from_and_for_that_person_alone() -> None:
    alice, charlie = make_alice(), make_charlie()
    secret, codes = turn_on(sign_in(alice))
    charlies, _ = turn_on(sign_in(charlie))
    pages = [offer_code(alice, wrong_code(secret), f"203.0.113.{number}") for number in range(7)]
    assert ["Too many wrong codes" in page for page in pages] == [False] * 5 + [True] * 2
    for code in (fresh_code_of(alice, secret), codes[0]):
        assert "Too many wrong codes" in offer_code(alice, code, "198.51.100.1"), "nor with a right one, for a while"
    assert offer_code(charlie, fresh_code_of(charlie, charlies), "198.51.100.2") == ""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM klerai_cache WHERE cache_key LIKE %s", ["%login_failed:5/%/key:%"])
        assert cursor.fetchone()[0] >= 1, "counted where every process sees it"


@pytest.mark.thorough
@pytest.mark.usefixtures("limits")
def test_wrong_codes_from_one_address_are_stopped_there() -> None:
    people = [make_alice() for _ in range(4)]
    secrets = [turn_on(sign_in(person))[0] for person in people]
    pages = [
        offer_code(person, wrong_code(secret), "203.0.113.60")
        for person, secret in zip(people, secrets, strict=True)
        for _ in range(3)
    ]
    assert sum("Too many wrong codes" not in page for page in pages) == 10


@pytest.mark.usefixtures("limits")
def test_links_for_a_new_address_are_sent_to_it_once_in_three_minutes(settings: Settings, tmp_path: Path) -> None:
    mail_into(tmp_path, settings)
    new, browser = new_email("moved"), sign_in(make_alice())
    confirm_password(browser, "/accounts/email/")
    browser.post("/accounts/email/", {"email": new})
    assert "less than three minutes ago" in browser.post("/accounts/email/again/", follow=True).content.decode()
    assert deliver_waiting_mail(new) == 1


def offer_code(person: Person, code: str, address: str) -> str:
    """What the page at the second step says to `code`; nothing when it lets in."""
    browser = Client(REMOTE_ADDR=address)
    browser.post(LOGIN, {"login": person.email, "password": PASSWORD}, REMOTE_ADDR=f"10.9.{person.pk.bytes[0]}.1")
    answer = browser.post(CODE, {"code": code})
    return "" if answer.status_code == 302 else str(answer.content.decode())


@pytest.mark.parametrize(
    ("remote", "forwarded", "expected"),
    [
        ("203.0.113.7", None, "203.0.113.7"),
        ("203.0.113.7", "198.51.100.1", "203.0.113.7"),
        ("10.0.0.5", None, "10.0.0.5"),
        ("10.0.0.5", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.5", "1.1.1.1, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.5", "198.51.100.1, 10.9.9.9", "198.51.100.1"),
        ("10.0.0.5", "nonsense", "10.0.0.5"),
        ("10.0.0.5", "1.1.1.1, nonsense", "10.0.0.5"),
        ("::ffff:10.0.0.5", "2001:db8::1", "2001:db8::1"),
        ("", "198.51.100.1", None),
    ],
)
def test_the_client_is_the_first_hop_that_is_no_known_proxy(
    settings: Settings, remote: str, forwarded: str | None, expected: str | None
) -> None:
    settings.TRUSTED_PROXIES = [ip_network("10.0.0.0/8")]
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    address = client_address(RequestFactory().get("/", REMOTE_ADDR=remote, headers=headers))
    assert (str(address) if address else None) == expected


def test_loopback_is_a_program_of_this_machine_and_no_proxy() -> None:
    make = RequestFactory()
    assert is_loopback(make.get("/", REMOTE_ADDR="127.0.0.1"))
    assert is_loopback(make.get("/", REMOTE_ADDR="::1"))
    assert not is_loopback(make.get("/", REMOTE_ADDR="10.0.0.1"))
    assert not is_loopback(make.get("/", REMOTE_ADDR="127.0.0.1", headers={"X-Forwarded-For": "1.2.3.4"}))


def test_trusted_proxies_are_addresses_or_networks() -> None:
    value = Environment({"KLERAI_TRUSTED_PROXIES": "10.0.0.5, 10.1.0.0/16,::1"})
    assert [str(network) for network in trusted_networks(value)] == ["10.0.0.5/32", "10.1.0.0/16", "::1/128"]
    with pytest.raises(BadSetting, match="KLERAI_TRUSTED_PROXIES must list addresses"):
        trusted_networks(Environment({"KLERAI_TRUSTED_PROXIES": "proxy.example"}))
