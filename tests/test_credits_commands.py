"""`grant_credits`: clear sentences, nothing by halves."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from billing import credits
from tests.credit_people import newcomer, verified


def grant(*arguments: str) -> str:
    said = io.StringIO()
    call_command("grant_credits", *arguments, stdout=said)
    return said.getvalue()


def test_a_grant_adds_to_the_packs_and_keeps_its_reason() -> None:
    person, stranger = verified(), verified()
    said = grant(person.email.upper(), "500", "--reason", "Sorry for Tuesday")
    assert said.endswith("got 500 credits and now has 550: 50 of today and 500 from packs.\n")
    assert credits.entries_of(person)[0].reason == "Sorry for Tuesday"
    assert credits.balance_of(person).pack == 500
    assert credits.balance_of(stranger).pack == 0


@pytest.mark.parametrize("amount", ["0", "-5", "100001", "1.5", "1e3", "NaN", "١٢", "9" * 400, "five", ""])
def test_nonsense_for_a_number_is_a_sentence_and_grants_nothing(amount: str) -> None:
    person = newcomer()
    with pytest.raises(CommandError, match=r"is not a whole number from 1 to 100,000\.") as refused:
        grant(person.email, amount, "--reason", "A pack")
    assert refused.value.returncode == 2
    assert credits.balance_of(person).available == 0


@pytest.mark.parametrize("reason", ["", "   ", "two\nlines", "nul\0", "half \udce4", "x" * 501])
def test_a_grant_without_a_sensible_reason_is_refused(reason: str) -> None:
    person = newcomer()
    with pytest.raises(CommandError, match="The reason must be one line") as refused:
        grant(person.email, "5", "--reason", reason)
    assert refused.value.returncode == 2
    assert credits.balance_of(person).available == 0


@pytest.mark.parametrize("email", ["nobody@example.org", "", "a\0b", "\udce4@example.org"])
def test_an_unknown_address_is_a_sentence(email: str) -> None:
    with pytest.raises(CommandError, match="Nobody has the address") as refused:
        grant(email, "5", "--reason", "A pack")
    assert refused.value.returncode == 2
