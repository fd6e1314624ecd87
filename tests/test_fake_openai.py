"""The fakes behind chat completions keep their vendors' rules, so that code proven against them is proven."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx2
import openai
import pytest

from tests.fakes.openai_manners import MANNERS
from tests.harness.parties import Party, only
from tests.harness.parties import each_party as each_party
from tests.harness.parties import party as party
from tests.processes import REPOSITORY

Json = dict[str, Any]
TOOL: Json = {"type": "function", "function": {"name": "calculator", "parameters": {"type": "object"}}}
USE: Json = {"id": "a", "type": "function", "function": {"name": "calculator", "arguments": "{}"}}
ASKED: Json = {"role": "assistant", "content": None, "tool_calls": [USE]}
RESULT: Json = {"role": "tool", "tool_call_id": "a", "content": "2"}
HELLO: Json = {"role": "user", "content": "Hello"}
FORCED: Json = {"type": "function", "function": {"name": "calculator"}}


def send(party: Party, key: str = "key", **changes: Any) -> httpx2.Response:
    body = {"model": party.vendor.model, "messages": [HELLO], **changes}
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return httpx2.post(f"{party.fake.url}{party.fake.path}", json=body, headers=headers, trust_env=False)


def renamed(name: str) -> Json:
    return {**TOOL, "function": {**TOOL["function"], "name": name}}


BROKEN: dict[str, Json] = {
    "no model": {"model": ""},
    "an unknown field": {"colour": "red"},
    "no messages": {"messages": []},
    "an unknown role": {"messages": [{"role": "narrator", "content": "Once"}]},
    "no content": {"messages": [{"role": "user", "content": None}]},
    "a call without a result": {"tools": [TOOL], "messages": [HELLO, ASKED, HELLO]},
    "a call without a result at the end": {"tools": [TOOL], "messages": [HELLO, ASKED]},
    "a result without a call": {"messages": [HELLO, RESULT]},
    "a result twice": {"tools": [TOOL], "messages": [HELLO, ASKED, RESULT, RESULT]},
    "arguments that are no object": {
        "messages": [HELLO, {**ASKED, "tool_calls": [{**USE, "function": {"name": "x", "arguments": "[1"}}]}, RESULT]
    },
    "a name with a dot": {"tools": [renamed("a.b")]},
    "a name that is too long": {"tools": [renamed("x" * 65)]},
    "no tools in a list": {"tools": []},
    "a tool twice": {"tools": [TOOL, TOOL]},
    "a schema of no object": {
        "tools": [{"type": "function", "function": {"name": "x", "parameters": {"type": "string"}}}]
    },
    "a choice without tools": {"tool_choice": "auto"},
    "a choice of no tool": {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "other"}}},
    "stream options without a stream": {"stream_options": {"include_usage": True}},
}
BROKEN_FOR: list[tuple[str, Json, str]] = [
    ("deepseek", {"tools": [TOOL], "tool_choice": FORCED}, "Thinking mode does not support this tool_choice"),
    ("deepseek", {"tools": [TOOL], "messages": [HELLO, ASKED, RESULT]}, "must be passed back"),
    ("deepseek", {"model": "deepseek-chat"}, "Model Not Exist"),
    ("qwen_thinking", {"tools": [TOOL], "tool_choice": FORCED, "stream": True}, "in thinking mode"),
    ("qwen_thinking", {"enable_thinking": True}, "non-streaming"),
    ("openai", {"tools": [TOOL]}, "set reasoning_effort to 'none'"),
    ("openai", {"max_tokens": 5}, "max_completion_tokens"),
    ("ollama", {"model": "never-pulled"}, "not found"),
    ("gemini", {"model": "gemini-0"}, "does not exist"),
]


@only("llama_cpp")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_of_the_protocol_is_refused(party: Party, name: str) -> None:
    assert send(party, **BROKEN[name]).status_code == 400


@only("deepseek", "qwen_thinking", "openai", "ollama", "gemini")
def test_a_broken_rule_of_a_vendor_is_refused_in_its_words(party: Party) -> None:
    for _, changes, words in (case for case in BROKEN_FOR if case[0] == party.vendor.strategy):
        answer = send(party, **changes)
        assert answer.status_code in (400, 404)
        assert words in answer.text


@only("deepseek", "ollama")
def test_a_key_is_asked_for_where_the_vendor_asks_for_one(party: Party) -> None:
    assert send(party, key="").status_code == (401 if party.vendor.needs_key else 200)
    assert send(party, key="invalid-key").status_code == (401 if party.vendor.needs_key else 200)


@only("ollama", "gemini")
def test_a_vendor_that_makes_vectors_makes_them_at_the_same_address(party: Party) -> None:
    path, body = {
        "ollama": ("/api/embed", {"model": "nomic-embed-text", "input": ["a", "b"]}),
        "gemini": (
            "/v1/models/gemini-embedding-001:batchEmbedContents",
            {"requests": [{"model": "models/gemini-embedding-001", "content": {"parts": [{"text": "a"}]}}] * 2},
        ),
    }[party.vendor.strategy]
    headers = {"x-goog-api-key": "key"}
    answer = httpx2.post(f"{party.setting}{path}", json=body, headers=headers, trust_env=False)
    assert len(answer.json()["embeddings"]) == 2


@only("openai", "qwen_instruct")
async def test_the_sdk_lists_models_and_reads_a_whole_and_a_streamed_answer(party: Party) -> None:
    async with openai.AsyncOpenAI(api_key="key", base_url=party.setting, max_retries=0) as client:
        models = await client.models.list()
        told: Any = {"model": party.vendor.model, "messages": [{"role": "user", "content": "Count to 3."}]}
        extra = {"enable_thinking": False} if party.vendor.strategy == "qwen_instruct" else None
        whole = await client.chat.completions.create(**told, extra_body=extra)
        stream = await client.chat.completions.create(**told, stream=True, extra_body=extra)
        chunks = [chunk async for chunk in stream]
    assert models.data[0].id in MANNERS[party.vendor.strategy].models
    assert whole.choices[0].message.content == "1 2 3"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "1 2 3"
    assert all(chunk.usage is None for chunk in chunks)


def test_every_vendor_can_be_started_by_hand() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "tests.fakes"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    assert all(f"  {name} " in listed for name in MANNERS)
