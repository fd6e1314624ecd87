"""Documentation and GitHub in one question, by the real tools: side by side, paid for, remembered and opened again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from chat.mcp.configuration import GitHubSettings
from chat.mcp.specs import ServerSpec
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.fakes.context7_server import Context7Fake
from tests.fakes.github_mcp_server import CODE
from tests.harness.doors import by_key
from tests.harness.frames import of_type
from tests.harness.mcp import our_server, serving_with
from tests.harness.soundness import nothing_breaks
from tests.serving import wait_until

EACH_SECONDS = 0.8
DOCS = Call("retrieve_documentation", {"query": "Next.js protect a route in middleware"})
FILE = Call("github__get_file_contents", {"owner": "octocat", "repo": "hello", "path": "src/hello.py"})
ISSUE = Call("github__issue_read", {"method": "get", "owner": "octocat", "repo": "hello", "issue_number": 7})
KEY = "Compare hello with the Next.js documentation."


@pytest.fixture(scope="module")
def workshop(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    """GitHub's server as a program of this machine, taking its time."""
    program = our_server("github_mcp_server", "--seconds", str(EACH_SECONDS), GITHUB_PERSONAL_ACCESS_TOKEN="ghp_x")
    with serving_with(
        anthropic_server, ServerSpec("github", program, "github", may_write=False), github=GitHubSettings()
    ) as url:
        yield url


def test_three_outside_calls_of_one_turn_cost_twenty_one_and_are_opened_again_by_their_ids(
    workshop: str, anthropic_fake: AnthropicFake, context7_fake: Context7Fake
) -> None:
    context7_fake.seconds = EACH_SECONDS  # a search and a text: the file is there first, and is [1]
    anthropic_fake.script(calls(Call("rank_sections", {"numbers": [1, 2]})), key="<sections>")
    anthropic_fake.script(
        calls(Call("name_documentation", {"doc_name": "Next.js", "topic": "protect a route"})), key="<question>"
    )
    anthropic_fake.script(calls(DOCS, FILE, ISSUE), says("Redirect [2], as say_hello does [1]."), key=KEY)
    with nothing_breaks(), by_key(workshop) as alice:
        frames, times = [], []
        with alice.asking(KEY) as events:
            for frame in events:
                frames.append(frame)
                times += [time.monotonic()] if frame.type.startswith("tool_call") else []
        where = frames[0].data["conversation_id"]

        kinds = [frame.type for frame in frames if frame.type.startswith("tool_call")]
        assert kinds == ["tool_call_start"] * 3 + ["tool_call_result"] * 3
        results = of_type(frames, "tool_call_result")
        assert {result.data["id"] for result in results} == {"q1-t1", "q1-t2", "q1-t3"}
        assert all(result.data["ok"] and result.data["duration_ms"] >= 1_000 * EACH_SECONDS for result in results)
        one_by_one = sum(result.data["duration_ms"] for result in results) / 1_000
        assert times[-1] - times[0] < 0.8 * one_by_one
        said = [update.data["message"] for update in of_type(frames, "status_update")]
        assert "GitHub: Get file or directory contents: octocat/hello, src/hello.py: reading" in said

        receipt = frames[-1].data["receipt"]
        assert [(line["item"], line["credits"]) for line in receipt["lines"]] == [
            ("base", 5),
            ("documentation", 10),
            ("github", 3),
            ("github", 3),
        ]
        assert receipt["credits"] == 21
        origins = [citation["origin"] for citation in frames[-1].data["citations"]]
        assert origins == ["documentation", "github"]

        def remembered(track: str) -> dict[str, str]:
            items = alice.get(f"/api/conversations/{where}/memory?track={track}").json()["items"]
            return {item["ref"]: item["text"] for item in items if item["kind"] == "tool"}

        wait_until(lambda: "About" in remembered("summarised")["q1-t1"], what="the summaries")
        assert list(remembered("summarised")) == list(remembered("full")) == ["q1-t1", "q1-t2", "q1-t3"]
        assert CODE in remembered("full")["q1-t2"]
        assert CODE not in remembered("summarised")["q1-t2"]

        again_key = "Show me the full code from earlier."
        anthropic_fake.script(
            calls(Call("retrieve_full_context", {"id": "q1-t2"})), says("Here it is [1]."), key=again_key
        )
        again = alice.answer(again_key, conversation_id=where)
    sent = [str(seen["body"]["messages"]) for seen in anthropic_fake.requests(again_key)]
    assert ["say_hello_to_all" in messages for messages in sent] == [False, True]
    assert again["credits_used"] == 5 + 2
    (citation,) = again["citations"]
    assert (citation["title"], citation["section"]) == ("octocat/hello", "src/hello.py")
    assert citation["url"] == "https://github.com/octocat/hello/blob/main/src/hello.py"
