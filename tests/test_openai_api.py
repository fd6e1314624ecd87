"""OpenAI's own client at the door for it: the same questions, prices and refusals, in its words."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from django.utils import timezone

from chat.events import Logged
from chat.memory.given import BEGUN
from chat.memory.working import NO_ANSWER
from chat.models import Conversation, Item, Run
from chat.profiles import PROFILES
from chat.views.openai_answers import DONE, Chunks
from klerai.accounts.models import Person
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Text, Thinking, Turn, fails, says
from tests.harness.doors import Visitor, by_key, by_session
from tests.harness.soundness import charged, nothing_breaks
from tests.people import key_text, make_person

QUESTION = [{"role": "user", "content": "What is 17.5 % of 2,480?"}]


@pytest.fixture
def alice() -> Person:
    return make_person("alice")


@pytest.fixture
def client(server: str, alice: Person) -> Iterator[openai.OpenAI]:
    with _client(server, alice) as found:
        yield found


@pytest.fixture
def asking(vendor_server: str, alice: Person) -> Iterator[openai.OpenAI]:
    """A client before a server that asks the fake vendor."""
    with _client(vendor_server, alice) as found:
        yield found


def _client(url: str, person: Person) -> openai.OpenAI:
    return openai.OpenAI(api_key=key_text(person), base_url=f"{url}/v1", max_retries=0, timeout=60)


def ask(client: openai.OpenAI, content: Any = "Hello?", *before: dict[str, Any], **more: Any) -> Any:
    messages = [*before, {"role": "user", "content": content}]
    return client.chat.completions.create(model="assistant", messages=messages, **more)


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def sent(fake: AnthropicFake) -> list[tuple[str, str]]:
    """What the vendor was sent last: who, and the words."""
    return [
        (message["role"], "".join(block["text"] for block in message["content"]))
        for message in fake.requests()[-1]["body"]["messages"]
    ]


def refused(kind: type[openai.APIStatusError], client: openai.OpenAI, **asked: Any) -> dict[str, Any]:
    with pytest.raises(kind) as caught:
        client.chat.completions.create(**{"model": "assistant", "messages": QUESTION, **asked})
    error = caught.value.body
    assert isinstance(error, dict)
    assert {"message", "type", "param", "code"} <= set(error)
    return error


def test_an_answer_comes_with_its_usage_and_a_receipt_that_is_what_was_charged(
    client: openai.OpenAI, alice: Person
) -> None:
    with nothing_breaks():
        answer = client.chat.completions.create(model="assistant", messages=QUESTION)
    run = Run.objects.get(person=alice)
    ours = answer.klerai
    assert "434" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.model, answer.id) == ("assistant", f"chatcmpl-{run.run_id}")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert answer.usage.prompt_tokens_details.cached_tokens == ours["receipt"]["tokens"]["cached"]
    assert (ours["run_id"], ours["conversation_id"]) == (str(run.run_id), str(run.conversation_id))
    assert ours["receipt"]["credits"] == charged(run) == 7
    assert ours["citations"] == []


def test_a_stream_joins_to_the_answer_and_ends_with_the_usage_that_was_asked_for(client: openai.OpenAI) -> None:
    with nothing_breaks():
        chunks = list(
            client.chat.completions.create(
                model="quick", messages=QUESTION, stream=True, stream_options={"include_usage": True}
            )
        )
    *words, end, usage = chunks
    assert words[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in words)
    assert text == end.klerai["text"]
    assert "434" in text
    assert {chunk.choices[0].finish_reason for chunk in words} == {None}
    assert end.choices[0].finish_reason == "stop"
    assert end.klerai["receipt"]["credits"] == 7
    assert usage.choices == []
    assert usage.usage.total_tokens > 0
    assert len({chunk.id for chunk in chunks}) == 1
    assert not any(chunk.choices[0].delta.tool_calls for chunk in words)


def test_a_stream_without_usage_ends_with_the_answer(client: openai.OpenAI) -> None:
    *_, last = ask(client, "Count to 3.", stream=True)
    assert last.choices[0].finish_reason == "stop"
    assert last.usage is None


def test_reasoning_stands_apart_and_words_before_a_call_stay_in_front(
    asking: openai.OpenAI, anthropic_fake: AnthropicFake
) -> None:
    looks = Turn(
        (Thinking("Sums are for the calculator."), Text("I look."), Call("calculator", {"expression": "1 + 1"}))
    )
    with nothing_breaks():
        anthropic_fake.script(looks, says("It is 2."))
        deltas = [chunk.choices[0].delta for chunk in ask(asking, stream=True)]
        anthropic_fake.script(looks, says("It is 2."))
        whole = ask(asking).choices[0].message
    assert "".join(delta.content or "" for delta in deltas) == "I look.\n\nIt is 2."
    assert "".join(getattr(delta, "reasoning_content", "") for delta in deltas) == "Sums are for the calculator."
    assert (whole.content, whole.reasoning_content) == ("It is 2.", "Sums are for the calculator.")


def test_a_part_that_is_replaced_goes_on_from_the_words_already_sent_and_the_end_has_the_text_as_it_stands() -> None:
    chunks = Chunks(Run(run_id=uuid.uuid4(), created_at=timezone.now(), mode="assistant"), with_usage=False)
    events = [
        ("content_chunk", {"text": "One", "turn": 1}),
        ("content_replaced", {"text": "One, two", "reason": "a better word"}),
        ("content_replaced", {"text": "Three", "reason": "a secret"}),
        ("content_chunk", {"text": ", four", "turn": 1}),
        ("message_complete", {"text": "Three, four", "citations": [], "receipt": {}}),
    ]
    written = [line for place, event in enumerate(events, 1) for line in chunks.of(Logged(place, *event))]
    *told, end = [json.loads(line.removeprefix(b"data: ")) for line in written if line != DONE]
    assert [chunk["choices"][0]["delta"]["content"] for chunk in told] == ["One", ", two", ", four"]
    assert end["klerai"]["text"] == "Three, four"
    assert written[-1] == DONE


def test_what_stands_before_the_question_is_the_past_of_this_run(
    asking: openai.OpenAI, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("Blue."))
    with nothing_breaks():
        ask(
            asking,
            [{"type": "text", "text": "Which colour"}, {"type": "text", "text": "is mine?"}],
            said("system", "Answer in one word."),
            said("user", "My colour is blue."),
            said("user", "Remember it."),
            said("assistant", "I will."),
            said("developer", "Never shout."),
        )
    first, second, question = sent(anthropic_fake)
    assert first == ("user", "My colour is blue.\n\nRemember it.")
    assert second == ("assistant", "I will.")
    assert question[1].startswith(
        '<instructions from="the client">\nAnswer in one word.\n\nNever shout.\n</instructions>'
    )
    assert "Which colour\nis mine?" in question[1]
    house = anthropic_fake.requests()[-1]["body"]["system"][0]["text"]
    assert house == PROFILES["assistant"].prompt


def test_a_past_is_put_in_turns_and_cut_to_the_window_of_the_mode(
    asking: openai.OpenAI, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("Yes."), says("Yes."))
    ask(asking, "Still there?", said("assistant", "Hello, I am here."), said("user", "Hm."))
    assert [words for _, words in sent(anthropic_fake)][:3] == [BEGUN, "Hello, I am here.", "Hm."]
    assert sent(anthropic_fake)[3] == ("assistant", NO_ANSWER)
    talk = [said(role, f"{role} {number}") for number in range(30) for role in ("user", "assistant")]
    asking.chat.completions.create(model="quick", messages=[*talk, *QUESTION])
    assert [words for _, words in sent(anthropic_fake)][:-1] == [one["content"] for one in talk[-10:]]


def test_without_a_conversation_not_a_word_is_kept_and_the_receipt_is(
    asking: openai.OpenAI, alice: Person, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("Ouagadougou."))
    with nothing_breaks():
        answer = ask(asking, "My word is amaranthine.", said("user", "Vermilion."), said("assistant", "Noted."))
    run = Run.objects.get(person=alice)
    assert run.is_temporary
    assert not Item.objects.filter(run=run).exists()
    assert run.receipt is not None
    assert run.receipt["credits"] == answer.klerai["receipt"]["credits"] == 5


def test_a_named_conversation_remembers_and_a_given_past_takes_its_place_for_one_run(
    asking: openai.OpenAI, alice: Person, vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(vendor_server, alice) as visitor:
        named = {"conversation_id": visitor.post("/api/conversations", {"title": "Plans"}).json()["id"]}
        anthropic_fake.script(says("Noted."), says("Blue."), says("Green?"), says("Blue still."))
        ask(asking, "My colour is blue.", metadata=named)
        answer = ask(asking, "Which colour?", metadata=named)
        assert "My colour is blue." in str(sent(anthropic_fake))
        ask(asking, "Which colour?", said("user", "My colour is green."), said("assistant", "Fine."), metadata=named)
        assert "blue" not in str(sent(anthropic_fake))
        ask(asking, "And now?", metadata=named)
        assert "My colour is blue." in str(sent(anthropic_fake))
        assert "green" not in str(sent(anthropic_fake))
        thread = visitor.get(f"/api/conversations/{named['conversation_id']}").json()
    assert answer.klerai["conversation_id"] == named["conversation_id"]
    assert [message["message"] for message in thread["messages"]] == [
        *("My colour is blue.", "Which colour?", "Which colour?", "And now?")
    ]
    assert "green" not in str(thread)


def test_a_foreign_conversation_answers_like_one_that_does_not_exist(client: openai.OpenAI, server: str) -> None:
    with by_key(server) as charlie:
        hers = charlie.post("/api/conversations", {"title": "Hers"}).json()["id"]
    errors = [
        refused(openai.NotFoundError, client, metadata={"conversation_id": one})
        for one in (hers, str(uuid.uuid4()), "x")
    ]
    assert errors[0] == errors[1] == errors[2]
    assert errors[0]["code"] == "not_found"
    assert Conversation.objects.get(pk=hers).query_counter == 0


def test_the_same_key_is_the_same_run_answered_and_charged_once(client: openai.OpenAI, alice: Person) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    with nothing_breaks():
        first, second = (ask(client, "Count to 3.", extra_headers=key) for _ in range(2))
        streamed = "".join(
            chunk.choices[0].delta.content or "" for chunk in ask(client, "Count to 3.", extra_headers=key, stream=True)
        )
        conflict = refused(openai.ConflictError, client, extra_headers=key)
    assert first == second
    assert streamed == first.choices[0].message.content
    assert conflict["code"] == "run_conflict"
    run = Run.objects.get(person=alice)
    assert (str(run.run_id), charged(run)) == (key["Idempotency-Key"], 5)


def test_models_are_the_modes_that_can_be_used(client: openai.OpenAI, server: str, alice: Person) -> None:
    with by_key(server, alice) as visitor:
        modes = visitor.get("/api/modes").json()["results"]
    listed = client.models.list().data
    assert [one.id for one in listed] == [mode["name"] for mode in modes if mode["available"]]
    assert {(one.object, one.owned_by) for one in listed} == {("model", "klerai")}
    assert client.models.retrieve("quick") == next(one for one in listed if one.id == "quick")
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("gpt-5")
    assert caught.value.code == "model_not_found"


def test_a_model_nobody_knows_is_not_found(client: openai.OpenAI, alice: Person) -> None:
    error = refused(openai.NotFoundError, client, model="gpt-5")
    assert (error["code"], error["param"], error["type"]) == ("model_not_found", "model", "invalid_request_error")
    assert not Run.objects.filter(person=alice).exists()


PIECES = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALLED = said(
    "assistant", None, tool_calls=[{"id": "1", "type": "function", "function": {"name": "a", "arguments": ""}}]
)


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "a"}}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"extra_body": {"functions": [{"name": "a"}]}}, "functions"),
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"stop": ["\n"]}, "stop"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": [said("user", [PIECES])]}, "messages.0.content"),
        ({"messages": [*QUESTION, CALLED, *QUESTION]}, "messages.1"),
        ({"messages": [*QUESTION, said("tool", "42", tool_call_id="1"), *QUESTION]}, "messages.1"),
    ],
)
def test_what_would_change_the_answer_and_is_not_done_is_refused_by_its_name(
    client: openai.OpenAI, alice: Person, asked: dict[str, Any], param: str
) -> None:
    error = refused(openai.BadRequestError, client, **asked)
    assert (error["code"], error["param"]) == ("unsupported", param)
    assert param in error["message"]
    assert not Run.objects.filter(person=alice).exists()


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [said("system", "Be kind.")]}, "messages"),
        ({"messages": [*QUESTION, said("assistant", "It is")]}, "messages"),
        ({"messages": [said("robot", "Beep.")]}, "messages.0.role"),
        ({"messages": [said("user", None)]}, "messages.0.content"),
        ({"messages": [said("user", " ")]}, "message"),
        ({"messages": ["Hello?"]}, "messages.0"),
        ({"extra_body": {"model": 5}}, "model"),
        ({"extra_body": {"stream": "yes"}}, "stream"),
        ({"extra_body": {"metadata": "x"}}, "metadata"),
        ({"extra_body": {"stream_options": {"include_usage": 1}}}, "stream_options.include_usage"),
        ({"extra_headers": {"Idempotency-Key": "once"}}, "Idempotency-Key"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_name(client: openai.OpenAI, asked: dict[str, Any], param: str) -> None:
    error = refused(openai.BadRequestError, client, **asked)
    assert (error["code"], error["param"]) == ("invalid", param)


def test_wishes_for_the_manner_of_writing_have_no_effect_and_do_no_harm(client: openai.OpenAI) -> None:
    answer = ask(client, "Count to 3.", temperature=0, top_p=0.5, max_tokens=5, seed=1, user="u", tools=[], n=1)
    assert "3" in answer.choices[0].message.content


def test_refusals_are_those_of_every_door_in_the_clients_own_classes(
    client: openai.OpenAI, server: str, alice: Person
) -> None:
    with pytest.raises(openai.AuthenticationError) as caught:
        _client(server, alice).with_options(api_key="kl_nobody_knows_it").models.list()
    assert caught.value.type == "authentication_error"
    assert refused(openai.APIStatusError, client, messages=[said("user", "x" * 32_001)])["code"] == "message_too_long"
    long_past = [said("user", "x" * 32_001), *QUESTION]
    assert refused(openai.APIStatusError, client, messages=long_past)["code"] == "message_too_long"
    with pytest.raises(openai.APIStatusError) as caught_large:
        ask(client, "x" * 300_000)
    assert caught_large.value.status_code == 413


def test_without_credits_the_error_says_what_is_left_and_when_there_is_more(
    client: openai.OpenAI, alice: Person
) -> None:
    with nothing_breaks():
        for _ in range(10):
            ask(client, "Count to 2.")
        error = refused(openai.APIStatusError, client)
        streamed = refused(openai.APIStatusError, client, stream=True)
    assert (error["code"], error["type"]) == ("insufficient_credits", "insufficient_quota")
    assert (error["balance"], error["required"]) == (0, 5)
    assert error["resets_at"] == error["limit"]["resets_at"]
    assert error["upgrade_url"]
    assert streamed["code"] == "insufficient_credits"
    assert Run.objects.filter(person=alice).count() == 10


def test_three_questions_at_a_time_and_no_more(
    asking: openai.OpenAI, vendor_server: str, alice: Person, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("Too late.", first_ms=20_000), forever=True)
    with by_key(vendor_server, alice) as visitor:
        streams = [ask(asking, f"Question {number}?", stream=True) for number in range(3)]
        error = refused(openai.RateLimitError, asking)
        assert (error["code"], error["max"], error["type"]) == ("rate_limited", 3, "rate_limit_error")
        for run in Run.objects.filter(person=alice):
            visitor.stop(str(run.run_id))
        for stream in streams:
            with pytest.raises(openai.APIError) as caught:
                list(stream)
            assert caught.value.code == "stopped"


def test_a_run_that_fails_is_an_error_with_a_receipt_of_nothing_before_and_in_a_stream(
    asking: openai.OpenAI, anthropic_fake: AnthropicFake, vendor_server: str, alice: Person
) -> None:
    with nothing_breaks():
        anthropic_fake.script(fails(400), forever=True)
        whole = refused(openai.InternalServerError, asking)
        with pytest.raises(openai.APIError) as caught:
            list(ask(asking, stream=True))
    assert whole["code"] == caught.value.code == "model_unavailable"
    assert whole["type"] == caught.value.type == "server_error"
    assert whole["receipt"]["credits"] == 0
    with by_key(vendor_server, alice) as visitor:
        assert visitor.balance()["held"] == 0


def test_a_client_that_leaves_in_the_middle_pays_for_the_whole_answer_and_can_read_it(
    client: openai.OpenAI, server: str, alice: Person
) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    with nothing_breaks():
        stream = ask(client, "Count to 300.", extra_headers=key, stream=True)
        next(stream)
        stream.close()
        whole = ask(client, "Count to 300.", extra_headers=key)
    assert "300" in whole.choices[0].message.content
    assert charged(Run.objects.get(person=alice)) == 5


def test_a_session_is_let_in_with_its_token_and_refused_without(server: str) -> None:
    with by_session(server) as browser:
        body = {"model": "assistant", "messages": QUESTION}
        assert browser.post("/v1/chat/completions", body).json()["object"] == "chat.completion"
        refusal = browser.http.post("/v1/chat/completions", json=body, headers={"X-CSRFToken": ""})
        assert refusal.status_code == 403
        assert refusal.json()["error"]["type"] == "permission_error"


def test_a_history_at_the_door_of_chat_is_checked_and_takes_the_place_of_memory(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(vendor_server) as visitor:
        anthropic_fake.script(says("Noted."), says("Green."))
        first = visitor.answer("My colour is blue.")["conversation_id"]
        history = [said("user", "My colour is green."), said("assistant", "Fine.")]
        visitor.answer("Which colour?", conversation_id=first, history=history)
        assert "green" in str(sent(anthropic_fake))
        assert "blue" not in str(sent(anthropic_fake))
        _is_checked(visitor)


def _is_checked(visitor: Visitor) -> None:
    for wrong, field in (
        ("x", "history"),
        ([said("user", "a")] * 21, "history"),
        ([said("robot", "a")], "history.0"),
        ([said("user", "a"), said("user", None)], "history.1"),
    ):
        assert field in visitor.refused("Hello?", status=400, history=wrong)["fields"]
    assert visitor.refused("Hello?", status=400, history=[said("user", "a\x00")])["code"] == "invalid_message"


def test_the_doors_are_described_in_the_schema(server: str) -> None:
    with by_key(server) as visitor:
        schema = visitor.get("/api/schema/", headers={"Accept": "application/vnd.oai.openapi+json"}).json()
    assert {"/v1/chat/completions", "/v1/models", "/v1/models/{name}", "/api/conversations"} <= set(schema["paths"])
    post = schema["paths"]["/v1/chat/completions"]["post"]
    assert post["requestBody"]["content"]["application/json"]["schema"]["required"] == ["model", "messages"]
    assert {name for scheme in post["security"] for name in scheme} <= set(schema["components"]["securitySchemes"])
