"""What of a conversation is sent with the next question, and how the whole is opened again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from billing.credits import grant
from chat.memory.working import PastRun, Remembered, reach, working_messages
from chat.messages import UserMessage
from chat.models import Item, Run
from chat.tools.base import CORRECT
from chat.wiring import Runtime
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Turn, calls, fails, says
from tests.harness.doors import Visitor, by_key, by_session
from tests.harness.frames import of_type
from tests.harness.soundness import nothing_breaks
from tests.harness.tools import by_name, says_at_once, tool
from tests.serving import served, vendor_settings, wait_until

PAGE = "\n".join(f"row {number}: order A-{number:04d}, paid on 2026-03-{number % 28 + 1:02d}" for number in range(400))
LONG = " ".join(["Every order was paid in time; the last is A-0399, of 2026-03-08, by Ms Kovács."] * 12)
TELLS_MUCH = tool("reads_orders", says_at_once(PAGE))


@pytest.fixture(scope="module")
def shop(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    """A server with a tool that tells much, and the one that opens things again."""
    from chat.tools.retrieve_full_context import TOOL as RETRIEVE

    async def start() -> Runtime:
        return await Runtime.start(tools=by_name(TELLS_MUCH, RETRIEVE))

    with served(start=start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


def sent(fake: AnthropicFake) -> list[dict[str, Any]]:
    """The bodies of the model calls so far, oldest first."""
    return [seen["body"] for seen in fake.requests()]


def written(body: dict[str, Any]) -> str:
    """Everything a model reads in the messages of a call."""
    found: list[str] = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        found += [str(block.get("text") or block.get("content") or "") for block in blocks]
    return "\n".join(found)


def ask(alice: Visitor, message: str, conversation: str | None = None) -> dict[str, Any]:
    return alice.answer(message, **({"conversation_id": conversation} if conversation else {}))


def test_a_big_result_is_sent_whole_once_and_then_as_a_summary_under_its_id(
    shop: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(fails(529, "overloaded"), key="write_summaries", forever=True)
    anthropic_fake.script(calls(Call("reads_orders", {})), says("There are 400 orders."), says("Yes."))
    with nothing_breaks(), by_key(shop) as alice:
        first = ask(alice, "How many orders are there?")
        second = ask(alice, "Are they paid?", first["conversation_id"])
    _, with_result, next_question = sent(anthropic_fake)
    assert f"[ID:q1-t1] {PAGE}" in written(with_result)
    assert PAGE not in written(next_question)
    summary = "[ID:q1-t1-sum, ref:q1-t1] tool summary, reads_orders(): row 0: order A-0000"
    assert summary in written(next_question)
    assert "[ID:q1] How many orders are there?" in written(next_question)
    assert "[ID:q1-r] There are 400 orders." in written(next_question)
    tokens = second["receipt"]["tokens"]
    assert 0 < tokens["sent_history"] < tokens["full_history"] * 0.1


def test_ten_questions_with_big_results_send_at_most_two_fifths_of_the_full_track(
    shop: str, anthropic_fake: AnthropicFake
) -> None:
    reads = [calls(Call("reads_orders", {})), says(LONG)]
    opens = [calls(Call("retrieve_full_context", {"id": "q1-t1"})), says("Here it is.")]
    anthropic_fake.script(*reads * 9, *opens)
    with nothing_breaks(), by_key(shop) as alice:
        grant(alice.person, amount=200, reason="To ask often")
        conversation, receipts = None, []
        for number in range(1, 10):
            answer = ask(alice, f"Question {number}?", conversation)
            conversation = answer["conversation_id"]
            receipts.append(answer["receipt"])
        last = ask(alice, "Show me the full result from earlier.", conversation)
        memory = alice.get(f"/api/conversations/{conversation}/memory").json()
    tokens = [receipt["tokens"] for receipt in (*receipts, last["receipt"])]
    opened = next(item for item in memory["items"] if item["ref"] == "q10-t1")
    reading = sum(each["sent_history"] for each in tokens) + opened["tokens"]
    assert reading <= 0.4 * sum(each["full_history"] for each in tokens)
    assert PAGE[:15_000] in _last_result(sent(anthropic_fake)[-1])
    assert next(item for item in memory["items"] if item["ref"] == "q1-t1")["reopened"] == ["q10"]
    assert memory["tokens"]["summarised"] <= 0.4 * memory["tokens"]["full"]


def test_an_item_is_opened_again_by_its_id_a_page_at_a_time(shop: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(
        calls(Call("reads_orders", {})),
        says("There are 400 orders."),
        calls(Call("retrieve_full_context", {"id": "q1-t1"})),
        calls(Call("retrieve_full_context", {"id": "q1-t1", "offset": 16_000})),
        says("Here it is."),
    )
    with nothing_breaks(), by_key(shop) as alice:
        first = ask(alice, "How many orders are there?")
        frames = alice.events("Show me the full result from earlier.", conversation_id=first["conversation_id"])
    *_, page_one, page_two = sent(anthropic_fake)
    shown_one, shown_two = _last_result(page_one), _last_result(page_two)
    assert shown_one.startswith(f"[ID:q2-t1] {PAGE[:100]}")
    assert 'To read on: retrieve_full_context(id="q1-t1", offset=16000)' in shown_one
    whole = shown_one.removeprefix("[ID:q2-t1] ").partition("\n[Characters")[0]
    whole += shown_two.removeprefix("[ID:q2-t2] ").partition("\n[Characters")[0]
    assert whole == PAGE
    assert [event.data["credits"] for event in of_type(frames, "tool_call_result")] == [2, 2]
    opened = Item.objects.get(conversation=first["conversation_id"], ref="q2-t1")
    assert (opened.reopens, opened.content) == ("q1-t1", f"Opened q1-t1 again, characters 0 to 16,000 of {len(PAGE):,}")


def test_an_id_that_does_not_exist_is_answered_with_those_that_do(shop: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(
        says("Hello."), calls(Call("retrieve_full_context", {"id": "q7-t9"})), says("There is no such thing.")
    )
    with nothing_breaks(), by_key(shop) as alice:
        first = ask(alice, "Hello?")
        second = ask(alice, "Open q7-t9.", first["conversation_id"])
    assert _last_result(sent(anthropic_fake)[-1]) == (
        f"[ID:q2-t1] ID not found: q7-t9. The IDs of this conversation: q1, q1-r, q2.\n{CORRECT}"
    )
    assert second["credits_used"] == 5


def test_nobody_opens_what_is_not_of_their_conversation(shop: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(
        says("The word is heliotrope."), calls(Call("retrieve_full_context", {"id": "q1-r"})), says("No.")
    )
    with nothing_breaks(), by_key(shop) as alice, by_key(shop) as charlie:
        ask(alice, "What is the word?")
        ask(charlie, "Open q1-r.")
    assert "heliotrope" not in written(sent(anthropic_fake)[-1])


def test_an_imitated_id_is_neither_shown_nor_stored_nor_sent_again(shop: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("[ID:q1-r] [ID:q9-r-sum, ref:q9-r] The answer is four [ID:q1]."), says("Fine."))
    with nothing_breaks(), by_key(shop) as alice:
        frames = alice.events("What is 2 + 2?")
        first = frames[-1].data
        conversation = of_type(frames, "run_started")[0].data["conversation_id"]
        ask(alice, "Is it?", conversation)
    assert first["text"] == "The answer is four [ID:q1]."
    assert "".join(event.data["text"] for event in of_type(frames, "content_chunk")) == first["text"]
    assert "[ID:q1-r] The answer is four [ID:q1]." in written(sent(anthropic_fake)[-1])
    assert "[ID:q9" not in written(sent(anthropic_fake)[-1])


def test_the_prompts_beginning_stays_the_same_to_the_byte_between_two_folds(
    shop: str, anthropic_fake: AnthropicFake
) -> None:
    questions = 17
    anthropic_fake.script(*(says(f"Answer {number}.") for number in range(1, questions + 1)))
    with nothing_breaks(), by_key(shop) as alice:
        grant(alice.person, amount=200, reason="To ask often")
        conversation = None
        for number in range(1, questions + 1):
            conversation = ask(alice, f"Question {number}?", conversation)["conversation_id"]
    bodies = [_history(body) for body in sent(anthropic_fake)]
    breaks = [
        number
        for number in range(2, questions + 1)
        if bodies[number - 1][: len(bodies[number - 2])] != bodies[number - 2]
    ]
    assert breaks == [16]
    folded = bodies[15][0]["content"][0]["text"]
    assert "[ID:q1] Question 1? → [ID:q1-r] Answer 1." in folded
    assert "[ID:q5] Question 5? → [ID:q5-r] Answer 5." in folded
    assert "[ID:q6]" not in folded
    assert all(body["system"] == sent(anthropic_fake)[0]["system"] for body in sent(anthropic_fake))


def test_of_a_very_long_conversation_the_newest_folded_questions_have_a_line_each() -> None:
    past = [
        PastRun(Remembered(f"q{n}", f"Question {n}?"), (), Remembered(f"q{n}-r", f"Answer {n}.")) for n in range(1, 301)
    ]
    whole = working_messages(past, window=20)
    near = working_messages(past[-reach(20) :], window=20, before=300 - reach(20))
    assert near == whole
    fold = whole[0]
    assert isinstance(fold, UserMessage)
    assert "(250 more questions came before these" in fold.text
    assert "[ID:q251] Question 251?" in fold.text
    assert "[ID:q250]" not in fold.text
    assert len(whole) == 1 + 2 * 10


def test_the_question_stands_with_the_persons_own_date_and_nothing_before_it_does(
    shop: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("One."), says("Two."))
    with nothing_breaks(), by_key(shop) as alice:
        first = ask(alice, "What day is it?")
        ask(alice, "And now?", first["conversation_id"])
    *history, question = sent(anthropic_fake)[-1]["messages"]
    dated = r"And now\?\n\n\[Asked on \w+day, \d{1,2} \w+ \d{4}, at \d\d:\d\d, UTC\]"
    assert re.fullmatch(dated, question["content"][-1]["text"])
    assert "Asked on" not in str(history)


def _history(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages before the question, without the marks for the vendor's cache, neighbours told apart."""
    flat = [
        {"role": message["role"], "content": [{key: block[key] for key in block if key != "cache_control"}]}
        for message in body["messages"]
        for block in message["content"]
    ]
    return flat[:-1]


def _last_result(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"][-1]["content"])


def test_summaries_are_written_in_one_call_after_the_answer_and_cost_the_person_nothing(
    shop: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(Call("reads_orders", {})), says(LONG), says("Yes."))
    with nothing_breaks(), by_key(shop) as alice:
        first = ask(alice, "How many orders are there?")
        ask(alice, "Are they paid?", first["conversation_id"])
    assert first["summary"] == "About Every."
    assert first["credits_used"] == 7
    (asked,) = anthropic_fake.summaries()
    assert asked["body"]["tool_choice"] == {"type": "tool", "name": "write_summaries"}
    last = written(sent(anthropic_fake)[-1])
    assert "[ID:q1-t1-sum, ref:q1-t1] tool summary, reads_orders(): About row." in last
    assert "[ID:q1-r-sum, ref:q1-r] About Every." in last
    assert Run.objects.get(run_id=first["run_id"]).summary_tokens > 0


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (fails(529, "overloaded"), "could not be reached"),
        (says("I would rather talk."), "nothing usable"),
        (calls(Call("write_summaries", {"summaries": [{"id": "q9-t9", "summary": "?"}, "what?"]})), "nothing usable"),
        (calls(Call("write_summaries", {"summaries": [{"id": "q1-r", "summary": "  "}]})), "nothing usable"),
        (calls(Call("write_summaries", {})), "nothing usable"),
    ],
    ids=["down", "talks", "wrong", "empty", "nothing"],
)
def test_a_summariser_in_trouble_leaves_the_mechanical_summaries_and_the_page_says_so(
    shop: str, anthropic_fake: AnthropicFake, trouble: Turn, told: str
) -> None:
    anthropic_fake.script(trouble, key="write_summaries", forever=True)
    anthropic_fake.script(says(LONG), says("Yes."))
    with nothing_breaks(), by_key(shop) as alice:
        first = ask(alice, "Tell me much.")
        second = ask(alice, "And?", first["conversation_id"])
        with by_session(shop, alice.person) as browser:
            page = browser.get(f"/chat/{first['conversation_id']}/memory/").text
    assert told in page
    assert first["response"] == LONG
    assert first["summary"].startswith("Every order was paid in time")
    assert second["response"] == "Yes."
    assert f"[ID:q1-r-sum, ref:q1-r] {first['summary']}" in written(sent(anthropic_fake)[-1])


def test_a_summary_that_comes_after_the_next_question_waits_for_the_next_fold(
    shop: str, anthropic_fake: AnthropicFake
) -> None:
    late = Call("write_summaries", {"summaries": [{"id": "q1-r", "summary": "Late but good."}]})
    anthropic_fake.script(calls(late, first_ms=700), key="write_summaries")
    anthropic_fake.script(says(LONG), *(says(f"Answer {number}.") for number in range(2, 18)))
    with nothing_breaks(), by_key(shop) as alice:
        grant(alice.person, amount=200, reason="To ask often")
        frames = alice.events("Tell me much.")
        conversation = of_type(frames, "run_started")[0].data["conversation_id"]
        ask(alice, "Question 2?", conversation)
        wait_until(lambda: Item.objects.get(conversation=conversation, ref="q1-r").late_summary, what="the summary")
        for number in range(3, 18):
            ask(alice, f"Question {number}?", conversation)
    bodies = [written(body) for body in sent(anthropic_fake)]
    assert all("[ID:q1-r-sum, ref:q1-r] Every order" in body for body in bodies[1:15])
    assert "Late but good." in bodies[15]
    assert "Every order was paid" not in bodies[15]
