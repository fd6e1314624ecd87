"""A page that runs out of credits: what it says, what it offers, and that the question stays in the box."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from billing import credits
from chat.models import Run
from tests.browser.conftest import OpenVisit
from tests.browser.visit import Visit
from tests.credit_people import with_packs
from tests.harness.soundness import charged, nothing_breaks
from tests.people import make_person
from tests.serving import wait_until
from tests.short_of import short_of_today

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

LONG = "Count to 40."


def test_without_credits_the_page_says_which_limit_it_is_and_keeps_the_question(visit: OpenVisit) -> None:
    poor = short_of_today()
    there = visit(poor)
    there.open("/")
    there.box.fill("How do daily credits reset?")
    there.send.click()
    panel = there.page.get_by_role("region", name="Credits", exact=True)
    panel.wait_for()
    words = panel.inner_text()
    assert "You have 4 credits; a question needs 5. 46 of today’s 50 credits are used" in words
    assert "your day begins anew at 00:00, Europe/Berlin" in words
    assert "Nothing was charged, and your question is still in the box." in words
    assert there.box.input_value() == "How do daily credits reset?"
    assert there.runs.count() == 0
    assert not there.barriers()
    assert not Run.objects.filter(person=poor).exists()

    panel.get_by_role("link", name="See your plan").click()
    there.page.get_by_role("heading", name="4 credits left").wait_for()
    there.open("/")
    assert there.box.input_value() == "How do daily credits reset?", "it is kept while somebody looks around"


def test_two_tabs_cannot_spend_the_last_credits_twice(visit: OpenVisit) -> None:
    alice = with_packs(5)
    tabs = [visit(alice), visit(alice)]
    with nothing_breaks():
        for tab in tabs:
            tab.open("/")
            tab.box.fill(LONG)
            tab.page.get_by_role("button", name="Send").wait_for()
        for tab in tabs:
            tab.page.evaluate("document.querySelector('[data-send]').click()")
        wait_until(lambda: any(_is_refused(tab) for tab in tabs), what="one of the two to be refused")
        (loser,) = [tab for tab in tabs if _is_refused(tab)]
        (winner,) = [tab for tab in tabs if tab is not loser]
        winner.wait_for_end()
        assert loser.box.input_value() == LONG
        assert "You have 0 credits; a question needs 5." in _panel(loser).inner_text()
        (run,) = Run.objects.filter(person=alice)
        assert charged(run) == 5
        assert credits.balance_of(alice).available == 0


@pytest.mark.thorough
def test_an_answer_that_reached_its_ceiling_says_so_and_leads_to_it(visit: OpenVisit) -> None:
    alice = make_person()
    alice.ceiling_credits = 5
    alice.save(update_fields=["ceiling_credits"])
    there = visit(alice)
    there.open("/")
    article = there.ask("What is 17.5 % of 2,480?")
    there.wait_for_end()
    note = article.locator("[data-limit]")
    assert "This question reached its ceiling of 5 credits" in note.inner_text()
    note.get_by_role("link", name="Change the ceiling").click()
    assert re.search(r"/settings/#ceiling$", there.page.url)


def _panel(tab: Visit) -> Locator:
    return tab.page.get_by_role("region", name="Credits", exact=True)


def _is_refused(tab: Visit) -> bool:
    return bool(_panel(tab).count())
