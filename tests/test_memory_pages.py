"""The memory a person can see: over REST and as a page, for its owner and nobody else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import override_settings

from chat.tools.retrieve_full_context import TOOL as RETRIEVE
from chat.wiring import Runtime
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.doors import Visitor, by_key, by_session
from tests.harness.soundness import nothing_breaks
from tests.harness.tools import by_name, says_at_once, tool
from tests.serving import served, vendor_settings

PAGE = "\n".join(f"row {number}: order A-{number:04d}" for number in range(300))


@pytest.fixture(scope="module")
def shop(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    async def start() -> Runtime:
        return await Runtime.start(tools=by_name(tool("reads_orders", says_at_once(PAGE)), RETRIEVE))

    with served(start=start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


def two_questions(alice: Visitor, fake: AnthropicFake) -> str:
    """A conversation whose second question opened the result of the first again; its id."""
    fake.script(
        calls(Call("reads_orders", {})),
        says("There are 300."),
        calls(Call("retrieve_full_context", {"id": "q1-t1"})),
        says("Here they are."),
        says("Bye."),
    )
    first = alice.answer("How many orders?")
    for message in ("Show me all of them.", "Thanks."):
        alice.answer(message, conversation_id=first["conversation_id"])
    return str(first["conversation_id"])


def test_both_tracks_can_be_read_item_by_item(shop: str, anthropic_fake: AnthropicFake) -> None:
    with nothing_breaks(), by_key(shop) as alice:
        conversation = two_questions(alice, anthropic_fake)
        full = alice.get(f"/api/conversations/{conversation}/memory").json()
        summarised = alice.get(f"/api/conversations/{conversation}/memory?track=summarised").json()
        whole = alice.get(f"/api/conversations/{conversation}/memory/q1-t1").json()
        summary = alice.get(f"/api/conversations/{conversation}/memory/q1-t1-sum").json()
    refs = ["q1", "q1-t1", "q1-r", "q2", "q2-t1", "q2-r", "q3", "q3-r"]
    assert [item["ref"] for item in full["items"]] == [item["id"] for item in full["items"]] == refs
    assert [item["id"] for item in summarised["items"]] == ["q1", "q1-t1-sum", *refs[2:]]
    assert [item["kind"] for item in full["items"][:3]] == ["query", "tool", "response"]
    assert (whole["text"], whole["tool"], whole["reopened"]) == (PAGE, "reads_orders", ["q2"])
    assert summary["text"] == summarised["items"][1]["text"] == "About row."
    assert full["items"][4]["text"] == "Opened q1-t1 again"
    assert summary["tokens"] < whole["tokens"] / 20


def test_what_is_saved_is_net_of_the_summaries_and_of_what_was_opened_again(
    shop: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(shop) as alice:
        conversation = two_questions(alice, anthropic_fake)
        found = alice.get(f"/api/conversations/{conversation}/memory").json()
        receipts = [alice.run(message["run_id"])["receipt"] for message in _messages(alice, conversation)]
    tokens, asked = found["tokens"], [receipt["tokens"] for receipt in receipts]
    assert tokens["summaries_cost"] > 0
    spared = sum(each["full_history"] - each["sent_history"] for each in asked)
    opened = found["items"][4]["tokens"]
    assert tokens["saved"] == spared - opened - tokens["summaries_cost"]
    assert tokens["summarised"] < tokens["full"] / 10


def test_the_page_shows_both_tracks_the_savings_and_what_was_opened_again(
    shop: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(shop) as alice, by_session(shop, alice.person) as browser:
        conversation = two_questions(alice, anthropic_fake)
        page = browser.get(f"/chat/{conversation}/memory/").text
    assert 'aria-label="Memory"' in page
    assert 'opened again in <a href="#q2">q2</a>' in page
    assert "[ID:q1-t1-sum, ref:q1-t1]" in page
    assert "tokens saved, net" in page
    assert 'id="q1-t1"' in page


def test_ids_in_an_answer_lead_to_the_items_that_exist_and_to_no_others(
    shop: str, anthropic_fake: AnthropicFake
) -> None:
    words = "See q1-t1 and `q1`, not q9-t9, x-q1, [q1](https://example.org/q1) nor\n\n```\nq1\n```"
    anthropic_fake.script(calls(Call("reads_orders", {})), says(words))
    with nothing_breaks(), by_key(shop) as alice, by_session(shop, alice.person) as browser:
        answer = alice.answer("How many orders?")
        page = browser.get(f"/chat/{answer['conversation_id']}/").text
    memory = f"/chat/{answer['conversation_id']}/memory/"
    links = re.findall(r'<a class="item-link" href="([^"]+)">([^<]+)</a>', page)
    assert links == [(f"{memory}#q1-t1", "q1-t1"), (f"{memory}#q1", "q1")]
    assert f'class="margin-id" href="{memory}#q1"' in page


def test_a_stranger_finds_no_memory_and_a_wrong_track_is_named(shop: str, anthropic_fake: AnthropicFake) -> None:
    with nothing_breaks(), by_key(shop) as alice, by_key(shop) as charlie:
        conversation = two_questions(alice, anthropic_fake)
        base = f"/api/conversations/{conversation}/memory"
        assert charlie.get(base).status_code == charlie.get(f"{base}/q1").status_code == 404
        assert alice.get(f"{base}/q9-t9").status_code == 404
        wrong = alice.get(f"{base}?track=both")
        with by_session(shop, charlie.person) as browser:
            assert browser.get(f"/chat/{conversation}/memory/").status_code == 404
    assert wrong.status_code == 400
    assert wrong.json()["error"]["fields"] == {"track": ["Choose full or summarised."]}


def _messages(alice: Visitor, conversation: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = alice.get(f"/api/conversations/{conversation}").json()["messages"]
    return found
