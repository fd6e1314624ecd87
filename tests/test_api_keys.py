"""Keys are shown once, kept as a hash, and made from the terminal."""

from __future__ import annotations

import hashlib
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from pytest_django import Settings

from klerai.accounts.keys import create_key, find_key, note_use
from klerai.accounts.models import ApiKey, Person
from tests.people import PASSWORD, bearer, make_alice, make_charlie, new_email, sign_in, suspend


def run(command: str, *arguments: str) -> list[str]:
    out = io.StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue().splitlines()


def test_a_key_is_stored_as_a_hash_and_its_text_nowhere() -> None:
    alice = make_alice()
    key, text = create_key(alice, "laptop")
    start, prefix, secret = text.split("_", 2)
    assert (start, prefix, len(secret)) == ("kl", key.prefix, 43)
    assert key.digest == hashlib.sha256(text.encode()).hexdigest()
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(k)::text FROM accounts_apikey k WHERE id = %s", [key.pk])
        row = cursor.fetchone()[0]
    assert prefix in row
    assert secret not in row


def test_two_keys_never_share_a_text_and_each_finds_itself() -> None:
    alice, charlie = make_alice(), make_charlie()
    made = [create_key(person) for person in (alice, alice, charlie)]
    assert len({text for _, text in made}) == 3
    for key, text in made:
        found = find_key(text)
        assert found is not None
        assert (found.pk, found.person_id) == (key.pk, key.person_id)


def test_the_secret_of_one_key_opens_no_other() -> None:
    (first, text), (_, other) = create_key(make_alice()), create_key(make_charlie())
    assert find_key(f"kl_{first.prefix}_{other.split('_', 2)[2]}") is None
    assert find_key(text.upper()) is None
    assert find_key(text + "\n") is None
    assert find_key(f"kl_{first.prefix}_") is None
    assert find_key(first.digest) is None


def test_inactive_keys_and_people_are_not_found() -> None:
    alice, charlie = make_alice(), make_charlie()
    (key, revoked), (_, suspended) = create_key(alice), create_key(charlie)
    ApiKey.objects.filter(pk=key.pk).update(is_active=False)
    suspend(charlie)
    assert find_key(revoked) is find_key(suspended) is None


def test_the_last_use_is_noted_once_a_minute() -> None:
    key, _ = create_key(make_alice())
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    noted = []
    for seconds in (0, 30, 59, 61, 90):
        note_use(ApiKey.objects.get(pk=key.pk), now=noon + timedelta(seconds=seconds))
        noted.append(ApiKey.objects.get(pk=key.pk).last_used_at)
    assert noted == [noon, noon, noon, *[noon + timedelta(seconds=61)] * 2]


def test_using_a_key_notes_it_and_makes_no_session(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.probes"
    key, text = create_key(make_alice())
    program = Client()
    assert program.get("/api/probe/drf", headers=bearer(text)).status_code == 200
    assert ApiKey.objects.get(pk=key.pk).last_used_at is not None
    assert not program.cookies


def test_the_command_prints_the_key_alone_on_the_last_line() -> None:
    alice = make_alice()
    lines = run("create_api_key", alice.email.upper(), "--name", "laptop")
    found = find_key(lines[-1])
    assert found is not None
    assert (found.person, found.name) == (alice, "laptop")
    assert not any(lines[-1] in line for line in lines[:-1])


def test_commands_for_people_nobody_knows_say_so_and_exit_2() -> None:
    with pytest.raises(CommandError, match=r"Nobody here has the address .* No key was made\.") as refused:
        run("create_api_key", new_email("nobody"))
    assert refused.value.returncode == 2


def test_create_person_makes_somebody_who_can_sign_in_at_once() -> None:
    email = new_email()
    line = run("create_person", email.upper())[-1]
    password = line.rsplit(" ", 1)[1]
    browser = Client()
    assert browser.post("/accounts/login/", {"login": email, "password": password})["Location"] == "/"
    person = Person.objects.get(email=email)
    assert (person.is_verified, person.is_staff, person.is_superuser) == (True, False, False)
    with pytest.raises(CommandError, match="has an account already") as refused:
        run("create_person", email)
    assert refused.value.returncode == 2
    with pytest.raises(CommandError, match="is not an e-mail address"):
        run("create_person", "nonsense")


def test_create_admin_makes_staff_and_does_not_repeat_a_given_password() -> None:
    email = new_email("boss")
    lines = run("create_admin", email, "--password", PASSWORD)
    assert not any(PASSWORD in line for line in lines)
    person = Person.objects.get(email=email)
    assert person.is_staff
    assert person.is_superuser
    assert person.check_password(PASSWORD)


def test_a_session_does_not_see_the_text_of_a_key_again() -> None:
    alice = make_alice()
    key, text = create_key(alice, "laptop")
    page = sign_in(alice).get("/settings/").content.decode()
    assert text not in page
    assert key.digest not in page
