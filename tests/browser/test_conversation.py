"""A conversation in the browser: asked, watched, stopped, reloaded, asked again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from klerai.accounts.models import Person
from klerai.models import OutgoingMail
from tests.browser.conftest import OpenVisit
from tests.people import PASSWORD, make_charlie, make_person, make_unverified, new_email
from tests.serving import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Route, WebSocketRoute

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SUM = "What is 17.5 % of 2,480?"


def counted(to: int) -> str:
    return ", ".join(map(str, range(1, to + 1))) + "."


def confirmation_link(email: str) -> str:
    mail = OutgoingMail.objects.get(message__to=[email])
    found = re.search(r"http://[^/\s]+(/accounts/confirm-email/\S+)", str(mail.message))
    assert found
    return found[1].split("\\n")[0]


def test_a_new_person_signs_up_asks_and_reads_the_receipt(visit: OpenVisit) -> None:
    there, email = visit(None, timezone_id="Europe/Berlin"), new_email()
    there.open("/")
    there.page.get_by_role("link", name="Start free").click()
    there.page.get_by_label("E-mail").fill(email)
    there.page.locator("input[type=password]").fill(PASSWORD)
    there.page.get_by_role("button", name="Create an account").click()
    there.page.get_by_role("heading", name="Check your mail").wait_for()
    there.open(confirmation_link(email))
    there.page.get_by_role("button").last.click()
    there.page.get_by_role("heading", name="What would you like to know?").wait_for()
    assert Person.objects.get(email=email).time_zone == "Europe/Berlin"
    assert "50 credits left" in there.balance.inner_text()

    article = there.ask(SUM)
    there.wait_for_words("434")
    there.wait_for_end()
    assert article.get_attribute("data-query-id") == "q1"
    assert re.fullmatch(r"[0-9a-f-]{36}", article.get_attribute("data-run-id") or "")
    assert re.search(r"/chat/[0-9a-f-]{36}/$", there.page.url)
    article.get_by_text("Used the calculator · 1 tool").click()
    card = article.get_by_role("article", name=re.compile("Calculate .*: done"))
    assert "434" in card.inner_text()
    there.balance.get_by_text("43 credits left").wait_for()

    article.get_by_role("button", name=re.compile("^7 credits · 1 tool")).click()
    receipt = there.page.get_by_role("region", name="Receipt")
    assert re.search(r"Question\s+5\s+Calculator\s+2", receipt.inner_text())
    receipt.get_by_role("link", name="The whole receipt").click()
    there.page.get_by_role("heading", name="What it cost").wait_for()
    assert re.search(r"Total\s+7", there.page.get_by_role("region", name="Receipt").inner_text())


def test_a_question_written_before_the_script_has_come_is_not_lost(visit: OpenVisit) -> None:
    there = visit(make_person())
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    there.page.route("**/js/conversation.*js", hold)
    there.page.goto("/", wait_until="commit")
    there.box.fill(SUM)
    there.box.press("Control+Enter")
    assert there.send.is_disabled()
    wait_until(lambda: held or there.page.wait_for_timeout(20), what="the script to be asked for")
    held[0].continue_()
    there.send.click()
    there.wait_for_words("434")
    there.wait_for_end()


def test_a_reload_in_the_middle_of_an_answer_loses_no_character(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    there.ask("Count to 150.")
    there.wait_for_words("20, 21")
    there.page.reload()
    there.stop.wait_for()
    there.wait_for_end()
    assert there.answer() == counted(150)
    there.page.reload()
    assert there.answer() == counted(150)


@pytest.mark.thorough
def test_a_lost_connection_loses_no_character_and_repeats_none(visit: OpenVisit) -> None:
    there = visit(make_person())
    lines: list[WebSocketRoute] = []

    def through(line: WebSocketRoute) -> None:
        lines.append(line)
        line.connect_to_server()

    there.page.route_web_socket(re.compile("/ws/chat/"), through)
    there.open("/")
    there.ask("Count to 150.")
    there.wait_for_words("20, 21")
    lines[-1].close()
    there.wait_for_end()
    assert len(lines) > 1
    assert there.answer() == counted(150)


def test_stop_ends_an_answer_and_keeps_its_text(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    article = there.ask("Count to 2000.")
    there.wait_for_words("20, 21")
    there.page.reload()
    there.stop.click()
    there.wait_for_end()
    article = there.runs.last
    assert article.get_by_role("button", name=re.compile("^5 credits · stopped by you")).is_visible()
    assert counted(2000).startswith(there.answer().rstrip(","))
    assert there.send.is_visible()


@pytest.mark.thorough
def test_escape_stops_and_a_queued_question_is_held_back(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    there.ask("Count to 2000.")
    there.wait_for_words("20, 21")
    there.box.fill(SUM)
    there.box.press("Enter")
    there.page.get_by_text(f"Next: “{SUM}”").wait_for()
    there.page.keyboard.press("Escape")
    there.wait_for_end()
    assert there.box.input_value() == SUM
    assert "held back" in there.page.get_by_role("alert").inner_text()
    assert there.runs.count() == 1


@pytest.mark.thorough
def test_a_queued_question_is_sent_after_the_answer(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    there.ask("Count to 60.")
    there.box.fill(SUM)
    there.box.press("Enter")
    there.runs.nth(1).wait_for()
    there.wait_for_words("434")
    there.wait_for_end()
    assert there.runs.count() == 2


def test_a_question_without_credits_stays_in_the_box(visit: OpenVisit) -> None:
    there = visit(make_unverified())
    there.open("/")
    there.box.fill(SUM)
    there.box.press("Enter")
    there.page.get_by_role("alert").get_by_text("You have 0 credits; a question needs 5.").wait_for()
    assert there.box.input_value() == SUM
    assert there.runs.count() == 0
    assert there.page.get_by_role("link", name="See your plan").is_visible()


@pytest.mark.thorough
def test_asking_again_and_editing_make_versions_that_can_be_gone_through(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    there.ask("What is 2 + 3?")
    there.wait_for_end()
    there.page.get_by_role("button", name="Regenerate", exact=True).click()
    there.page.get_by_text("2 of 2").wait_for()
    there.page.get_by_role("button", name="Edit", exact=True).click()
    there.page.get_by_role("textbox", name="The question, changed").fill("What is 40 + 2?")
    there.page.get_by_role("button", name="Save as new version").click()
    there.page.get_by_text("3 of 3").wait_for()
    assert "42" in there.answer()
    there.page.get_by_role("link", name="Version before").click()
    there.page.get_by_text("2 of 3").wait_for()
    assert "5" in there.answer()
    there.ask("What is 10 × 10?")
    there.wait_for_words("100")
    there.wait_for_end()
    assert [text.strip() for text in there.page.locator(".question").all_inner_texts()] == [
        "What is 2 + 3?",
        "What is 10 × 10?",
    ]


def test_a_draft_is_kept_for_its_conversation(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    there.box.fill("half a thought")
    kept = "localStorage.getItem('draft:new')"
    wait_until(lambda: there.page.evaluate(kept) == "half a thought", what="the draft to be kept")
    there.page.reload()
    assert there.box.input_value() == "half a thought"


def test_a_stranger_cannot_open_the_conversation(visit: OpenVisit) -> None:
    alice, charlie = visit(make_person()), visit(make_charlie())
    alice.open("/")
    alice.ask(SUM)
    alice.wait_for_end()
    charlie.expected_status = {404}
    charlie.open(alice.page.url)
    assert charlie.page.get_by_role("heading", name="There is nothing here, or it is not yours.").is_visible()
    assert SUM not in charlie.page.content()


@pytest.mark.thorough
def test_a_conversation_is_renamed_pinned_and_deleted(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    there.ask(SUM)
    there.wait_for_end()
    more = there.page.get_by_role("button", name="More: memory, rename, pin, export, delete")
    more.click()
    there.page.get_by_role("button", name="Rename", exact=True).click()
    there.page.get_by_label("Title").fill("Percentages")
    there.page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    there.page.get_by_role("navigation", name="KlerAI").get_by_role("link", name="Percentages").wait_for()
    more.click()
    there.page.get_by_role("button", name="Pin", exact=True).click()
    there.page.get_by_role("heading", name="Pinned").wait_for()
    more.click()
    there.page.get_by_role("button", name="Delete", exact=True).click()
    dialog = there.page.get_by_role("dialog", name="Delete this conversation?")
    assert "Percentages" in dialog.inner_text()
    dialog.get_by_role("button", name="Delete").click()
    there.page.get_by_role("heading", name="What would you like to know?").wait_for()
    assert there.page.get_by_role("link", name="Percentages").count() == 0
    there.open("/billing/")
    assert there.page.get_by_role("cell", name="A question").is_visible()
