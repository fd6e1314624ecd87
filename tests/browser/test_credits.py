"""Credits in the browser: what was bought arrives by itself, and one question may have a ceiling of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from tests.browser.conftest import OpenVisit
from tests.fakes.stripe_server import StripeFake
from tests.people import make_person
from tests.selling import Buyer

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Result = TypeVar("Result")
SUM = "What is 17.5 % of 2,480?"


def elsewhere(act: Callable[[], Result]) -> Result:
    """In a thread where no browser's loop runs, as requests of others need it."""
    with ThreadPoolExecutor() as threads:
        return threads.submit(act).result()


def test_what_was_paid_for_appears_without_a_reload(visit: OpenVisit, stripe_fake: StripeFake) -> None:
    buyer = Buyer(stripe_fake)
    there = visit(buyer.person)
    session = elsewhere(lambda: buyer.begin(pack="500"))
    there.open(f"/billing/?order={buyer.order.pk}")
    there.page.get_by_role("status").get_by_text("Your credits arrive in a few seconds").wait_for()
    there.page.evaluate("window.isTheSamePage = true")
    stripe_fake.world.pay(session)
    elsewhere(buyer.hear)
    there.page.get_by_role("status").get_by_text("500 credits arrived.").wait_for()
    there.page.get_by_role("heading", name="550 credits left").wait_for()
    there.page.get_by_role("link", name="Pack of 500 credits").last.wait_for()
    assert "550 credits left" in there.balance.inner_text()
    assert there.page.evaluate("window.isTheSamePage")
    assert there.barriers() == []


@pytest.mark.thorough
def test_a_ceiling_is_for_one_question(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    quote = there.page.get_by_role("button", name="at most")
    quote.click()
    assert there.barriers() == []
    most = there.page.get_by_label("The most your next question may cost")
    most.fill("900")
    most.press("Tab")
    assert most.input_value() == "25"
    most.fill("6")
    most.press("Enter")
    assert quote.inner_text() == "from 5, at most 6 credits"
    there.ask(SUM)
    there.wait_for_end()
    assert "43 credits" not in there.balance.inner_text()
    assert quote.inner_text() == "from 5, at most 25 credits"
    there.page.get_by_role("button", name="5 credits ·").click()
    there.page.get_by_role("link", name="The whole receipt").click()
    there.page.get_by_text("quoted: from 5, at most 6").wait_for()
    there.open("/")
    there.ask(SUM)
    there.wait_for_words("434")


def test_the_quote_follows_the_mode(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    quote = there.page.locator("[data-quote]")
    there.page.get_by_role("button", name="Mode: Assistant").click()
    there.page.get_by_role("radio", name="Grounded").check()
    assert quote.inner_text() == "from 7, at most 25 credits"
    there.page.get_by_role("button", name="Mode: Grounded").click()
    there.page.get_by_role("radio", name="Quick").check()
    assert quote.inner_text() == "from 5, at most 25 credits"
