"""The page of the API in Chromium, under the strict policy: read, and tried in one's own name."""

from __future__ import annotations

import pytest

from tests.browser.conftest import OpenVisit
from tests.people import make_alice

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.mark.thorough
def test_a_request_can_be_tried_and_the_browser_has_nothing_to_complain_of(visit: OpenVisit) -> None:
    there = visit(make_alice())
    there.open("/api/docs/")
    page = there.page
    asked = page.locator("#operations-billing-billing")
    asked.locator(".opblock-summary-control").click()
    asked.get_by_role("button", name="Try it out").click()
    asked.get_by_role("button", name="Execute").click()
    answer = asked.locator(".live-responses-table .response")
    answer.wait_for()
    assert answer.locator(".response-col_status").inner_text().startswith("200")
    assert '"time_zone": "UTC"' in answer.inner_text()


@pytest.mark.thorough
def test_a_session_may_change_things_from_the_page(visit: OpenVisit) -> None:
    there = visit(make_alice())
    there.open("/api/docs/")
    made = there.page.locator("#operations-conversations-conversations_create")
    made.locator(".opblock-summary-control").click()
    made.get_by_role("button", name="Try it out").click()
    made.locator("textarea").first.fill('{"title": "From the page of the API"}')
    made.get_by_role("button", name="Execute").click()
    answer = made.locator(".live-responses-table .response")
    answer.wait_for()
    assert answer.locator(".response-col_status").inner_text().startswith("201")
    there.open("/")
    there.page.get_by_text("From the page of the API").first.wait_for()


def test_a_new_key_is_copied_and_revoking_asks_first(visit: OpenVisit) -> None:
    there = visit(make_alice(), permissions=["clipboard-read", "clipboard-write"])
    there.open("/settings/#keys")
    page = there.page
    page.get_by_label("Name of a new key").fill("notebook")
    page.get_by_role("button", name="Make a key").click()
    page.get_by_role("button", name="Copy the key").click()
    key = page.locator("#new-key").inner_text()
    assert page.evaluate("navigator.clipboard.readText()") == key
    page.get_by_role("button", name="Copy the line").click()
    assert key in page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("link", name="Revoke notebook").click()
    question = page.get_by_role("dialog", name="Revoke this key?")
    question.get_by_role("button", name="Keep it").click()
    question.wait_for(state="hidden")
    page.get_by_role("link", name="Revoke notebook").click()
    question.get_by_role("button", name="Revoke").click()
    page.get_by_text("You have no keys.").wait_for()
