"""A mode chosen by keyboard, and a grounded answer with what it rests on and how sure it is."""

from __future__ import annotations

import pytest

from tests.browser.conftest import OpenVisit
from tests.harness.knowledge import add_document, make_base
from tests.people import make_person

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_the_modes_open_at_the_chosen_one_and_are_chosen_with_the_arrows(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    page = there.page
    page.get_by_role("button", name="Mode: Assistant").press("Enter")
    modes = page.get_by_role("radiogroup", name="Mode")
    chosen = modes.get_by_role("radio", name="Assistant")
    chosen.and_(page.locator(":focus")).wait_for()
    assert chosen.get_attribute("aria-describedby") == "mode-assistant"
    page.keyboard.press("ArrowDown")
    assert modes.get_by_role("radio", name="Grounded").is_checked()
    assert modes.is_visible()
    page.keyboard.press("Enter")
    there.box.and_(page.locator(":focus")).wait_for()
    assert not modes.is_visible()
    assert page.get_by_role("button", name="Mode: Grounded").is_visible()


def test_a_grounded_answer_shows_its_sources_where_they_come_from_and_its_confidence(visit: OpenVisit) -> None:
    person = make_person()
    add_document(make_base(person), "Everybody has thirty days of leave a year.", title="Handbook")
    there = visit(person)
    there.open("/")
    there.page.keyboard.press("Alt+2")
    there.ask("How many days of leave a year?")
    there.wait_for_words("thirty days of leave")
    there.wait_for_end()
    for _ in ("live", "reloaded"):
        sources = there.page.locator("[data-sources]")
        sources.get_by_text("1 source · Confidence 75 %").click()
        assert sources.get_by_role("listitem").inner_text().split() == ["Handbook", "documents"]
        assert there.barriers() == []
        there.page.reload()
