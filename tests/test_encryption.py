"""Stored secrets: the first key writes, all of them read, and nonsense stops the start."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from klerai.encryption import Unreadable, decrypt, encrypt, encryption_keys
from klerai.env import BadSetting, Environment
from tests.front_door import is_signed_in, log_in
from tests.people import make_alice, sign_in
from tests.second_factor import CODE, fresh_code_of, turn_on

NAME = "KLERAI_ENCRYPTION_KEYS"
OLD, NEW = (urlsafe_b64encode(letter * 32).decode() for letter in (b"o", b"n"))


def keys(value: str = "", secret_key: str = "a-secret") -> list[str]:
    return encryption_keys(Environment({NAME: value}), secret_key)


def test_the_first_key_writes_and_all_of_them_read(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = keys(OLD)
    cipher = encrypt("JBSWY3DPEHPK3PXP")
    settings.ENCRYPTION_KEYS = keys(f"{NEW}, {OLD},")
    assert decrypt(cipher) == "JBSWY3DPEHPK3PXP"
    newer = encrypt("JBSWY3DPEHPK3PXP")
    settings.ENCRYPTION_KEYS = keys(NEW)
    assert decrypt(newer) == "JBSWY3DPEHPK3PXP"
    with pytest.raises(Unreadable, match=NAME):
        decrypt(cipher)


def test_without_the_setting_a_key_comes_from_the_secret_key(settings: Settings) -> None:
    [derived] = keys()
    assert keys() == [derived]
    assert keys(secret_key="another") != [derived]
    assert "a-secret" not in derived
    settings.ENCRYPTION_KEYS = keys()
    cipher = encrypt("JBSWY3DPEHPK3PXP")
    settings.ENCRYPTION_KEYS = keys(NEW)
    assert decrypt(cipher) == "JBSWY3DPEHPK3PXP", "setting a key later locks nobody out"


def test_keys_may_lie_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{NEW},{OLD}\n")
    assert encryption_keys(Environment({f"{NAME}_FILE": str(file)}), "a-secret")[:2] == [NEW, OLD]


@pytest.mark.parametrize("nonsense", ["hunter2", f"{OLD},short", OLD[:-2], "ключ", OLD + "AAAA"])
def test_nonsense_stops_the_start_with_a_sentence_that_does_not_repeat_it(nonsense: str) -> None:
    with pytest.raises(BadSetting, match=f"{NAME} has something else than a Fernet key in place") as refused:
        keys(nonsense)
    assert nonsense not in str(refused.value)


def test_an_app_set_up_before_the_keys_were_changed_still_signs_in(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = keys(OLD)
    alice = make_alice()
    secret, codes = turn_on(sign_in(alice))
    settings.ENCRYPTION_KEYS = keys(f"{NEW},{OLD}")
    for code in (fresh_code_of(alice, secret), codes[0]):
        browser = Client()
        log_in(browser, alice.email)
        browser.post(CODE, {"code": code})
        assert is_signed_in(browser)
