"""Passwords: wrong, weak, forgotten and changed; nothing tells whether an address is known."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.test import Client
from pytest_django import Settings

from klerai.accounts.models import Person
from tests.front_door import LOGIN, RESET, SIGNUP, last_mail, link_in, log_in, mail_into, without_secrets
from tests.people import PASSWORD, make_alice, new_email, sign_in


@pytest.fixture
def mailbox(settings: Settings, tmp_path: Path) -> Path:
    return mail_into(tmp_path, settings)


class CountingHasher(MD5PasswordHasher):
    """Slow hashing is what takes time at the door, so the number of times tells what a clock would."""

    algorithm = "counted"
    count: ClassVar[int] = 0

    def encode(self, password: str, salt: str) -> str:
        CountingHasher.count += 1
        return super().encode(password, salt)


@pytest.mark.parametrize("address", [LOGIN, SIGNUP])
def test_known_and_unknown_addresses_cost_the_same_hashing(settings: Settings, address: str) -> None:
    settings.PASSWORD_HASHERS = [f"{__name__}.CountingHasher"]
    alice, counts = make_alice(), []
    for email in (alice.email, new_email("nobody")):
        before = CountingHasher.count
        form = {"login": email, "password": "wrong-password-9", "email": email, "password1": "wrong-password-9"}
        Client().post(address, form)
        counts.append(CountingHasher.count - before)
    assert counts == [1, 1]


def test_a_wrong_password_reads_the_same_for_known_and_unknown_addresses() -> None:
    alice = make_alice()
    pages = []
    for email in (alice.email, "a" * (len(alice.email) - 12) + "@example.org"):
        page = log_in(Client(), email, "wrong-password-9")
        assert page.status_code == 200
        pages.append(without_secrets(page).replace(email, "ADDRESS"))
    assert pages[0] == pages[1]
    assert "That e-mail and password do not belong together." in pages[0]


def test_asking_for_a_new_password_reads_the_same_for_known_and_unknown_addresses(mailbox: Path) -> None:
    alice, nobody = make_alice(), new_email("nobody")
    seen = []
    for email in (alice.email, nobody):
        browser = Client()
        answer = browser.post(RESET, {"email": email})
        seen.append((answer.status_code, answer["Location"], without_secrets(browser.get(answer["Location"]))))
    assert seen[0] == seen[1]
    assert "There is no such account" in last_mail(mailbox, nobody)[1]


def test_a_new_password_by_mail_works_once_and_signs_other_devices_out(mailbox: Path) -> None:
    alice = make_alice()
    other_device = sign_in(alice)
    Client().post(RESET, {"email": alice.email})
    link = link_in(last_mail(mailbox, alice.email)[1])

    browser = Client()
    form = browser.get(link)["Location"]
    assert "Set a new password" in browser.get(form).content.decode()
    assert browser.post(form, {"password1": "new-kettle-2024"})["Location"].endswith("/key/done/")

    assert log_in(Client(), alice.email, "new-kettle-2024").status_code == 302
    assert log_in(Client(), alice.email, PASSWORD).status_code == 200
    assert other_device.get("/accounts/password/change/")["Location"].startswith(LOGIN)
    assert "This link does not work" in Client().get(link).content.decode()


def test_changing_the_password_wants_the_old_one_and_keeps_this_device_signed_in() -> None:
    alice = make_alice()
    browser, other = sign_in(alice), sign_in(alice)
    change = "/accounts/password/change/"
    page = browser.post(change, {"oldpassword": "wrong-one-99", "password1": "new-kettle-2024"})
    assert "That is not your password." in page.content.decode()
    assert browser.post(change, {"oldpassword": PASSWORD, "password1": "new-kettle-2024"}).status_code == 302
    assert browser.get(change).status_code == 200
    assert other.get(change).status_code == 302


def test_a_changed_password_is_told_by_mail(mailbox: Path) -> None:
    alice = make_alice()
    sign_in(alice).post("/accounts/password/change/", {"oldpassword": PASSWORD, "password1": "new-kettle-2024"})
    subject, text = last_mail(mailbox, alice.email)
    assert subject == "Your password was changed"
    assert "127.0.0.1" in text
    assert "new-kettle-2024" not in text


def test_a_weak_password_is_refused_with_the_reason() -> None:
    email = new_email()
    page = Client().post(SIGNUP, {"email": email, "password1": "password"}).content.decode()
    assert "too common" in page
    assert not Person.objects.filter(email=email).exists()
