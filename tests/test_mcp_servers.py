"""Servers that are slow, broken, hostile or odd: the run goes on, and the other tools are there in time."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection

from chat.mcp.specs import Address, Process, ServerSpec
from chat.models import GitHubToken, McpServer
from klerai.encryption import encrypt
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.calling import told
from tests.harness.doors import by_key
from tests.harness.frames import of_type
from tests.harness.mcp import http_server, journal, our_server, serving_with
from tests.people import make_person
from tests.serving import wait_until

LONG_NAME = "odd__" + "x" * 50


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd") / "journal"


@pytest.fixture(scope="module")
def workshop(database: object, anthropic_server: AnthropicFake, notes: Path) -> Iterator[str]:
    odd = ServerSpec("odd", our_server("odd_mcp_server", "--journal", str(notes)))
    with serving_with(anthropic_server, odd) as url:
        yield url


def test_all_pages_of_a_list_are_offered_by_names_and_schemas_that_vendors_take(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    told(workshop, anthropic_fake, Call("calculator", {"expression": "1 + 1"}))
    offered = {tool["name"]: tool["input_schema"] for tool in anthropic_fake.requests()[0]["body"]["tools"]}
    names = [name for name in offered if name.startswith("odd__")]
    assert len(names) == len(set(names)) == 17
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in names)
    assert "odd__has_space_and_slash" in names
    assert any(name.startswith("odd__has_space_and_slash_") for name in names)
    assert any(name.startswith(LONG_NAME) for name in names)
    tree = {"type": "object", "properties": {"sub": {}}}
    assert offered["odd__refers"]["properties"] == {"tree": tree, "away": {}}
    assert offered["odd__is_no_schema"] == {"type": "object", "properties": {"size": {}}}
    assert offered["odd__backtracks"]["properties"] == {"word": {"type": "string"}}
    assert offered["odd__is_old"]["properties"]["pair"]["prefixItems"] == [{"type": "number"}, {"type": "string"}]


def test_arguments_are_checked_before_they_are_sent(workshop: str, anthropic_fake: AnthropicFake, notes: Path) -> None:
    wanted = (Call("odd__counts", {"to": "three"}), Call("odd__is_old", {"pair": [1, "a"], "any": [1]}))
    seen = told(workshop, anthropic_fake, *wanted)
    assert seen.texts[0].startswith("Refused: to must be integer.")
    assert seen.texts[1].startswith("is_old ")
    assert seen.items == [("base", 5), ("blocked", 0), ("tool", 2)]
    assert "counts" not in [line["tool"] for line in journal(notes, "call")]


def test_what_a_server_gives_is_worded_and_cannot_pose_as_a_passage(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    text = told(workshop, anthropic_fake, Call("odd__shows", {})).texts[0]
    assert '< passage n="1"' in text
    assert "[image, image/png, 3 kB: not shown here]" in text
    assert "file:///a.txt:\nwhat a.txt says" in text
    assert "[file file:///b.bin, application/zip, 3 kB: not shown here]" in text
    assert "[link https://example.com/c: more of it]" in text
    assert text.endswith('{\n "answer": 42\n}')


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("odd__fails", "There is no such page. Try another."),
        ("odd__errs", "The server odd could not do this. the disk is full"),
        ("odd__dies", "It ended in the middle of this call, so what the call did is not known."),
        pytest.param(
            "odd__is_huge",
            "It ended in the middle of this call, so what the call did is not known.",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_call_that_goes_wrong_is_told_in_words_and_the_next_one_works(
    workshop: str, anthropic_fake: AnthropicFake, tool: str, words: str
) -> None:
    anthropic_fake.script(calls(Call(tool, {})), calls(Call("odd__counts", {"to": 3})), says("Done."))
    with by_key(workshop) as alice:
        frames = alice.events("Try it.")
    wrong, right = of_type(frames, "tool_call_result")
    assert words in wrong.data["error"]
    assert right.data["ok"]
    assert frames[-1].data["receipt"]["credits"] == 5 + 2


def test_a_call_that_hangs_holds_up_nobody_and_is_taken_back_when_the_person_stops(
    workshop: str, anthropic_fake: AnthropicFake, notes: Path
) -> None:
    anthropic_fake.script(calls(Call("odd__hangs", {}), Call("odd__counts", {"to": 1})), says("Done."))
    run_id = str(uuid.uuid4())
    frames = []
    with by_key(workshop) as alice, alice.asking("Hang.", run_id=run_id) as events:
        for frame in events:
            frames.append(frame)
            if frame.type == "tool_call_result":
                assert alice.stop(run_id).status_code < 300
    assert [frame.data["name"] for frame in of_type(frames, "tool_call_result")] == ["odd__counts"]
    assert frames[-1].data["code"] == "stopped"
    wait_until(lambda: journal(notes, "cancelled"), what="the server to hear of it")


def test_a_server_that_chatters_is_heard_now_and_then(workshop: str, anthropic_fake: AnthropicFake) -> None:
    seen = told(workshop, anthropic_fake, Call("odd__talks_too_much", {}))
    said = [update.data["message"] for update in of_type(seen.frames, "status_update")]
    assert 1 <= said.count("odd: talks too much: again") < 10


@pytest.mark.thorough
def test_what_a_call_says_on_its_way_is_heard_beside_a_server_that_chatters(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    seen = told(workshop, anthropic_fake, Call("odd__talks_too_much", {}), Call("odd__works_slowly", {}))
    said = [update.data["message"] for update in of_type(seen.frames, "status_update")]
    assert [words for words in said if words.startswith("odd: works slowly")] == [
        f"odd: works slowly: {step}" for step in ("looking", "reading", "writing")
    ]


def test_a_tool_that_is_new_is_offered_to_the_next_question(workshop: str, anthropic_fake: AnthropicFake) -> None:
    told(workshop, anthropic_fake, Call("odd__grows", {}))
    assert told(workshop, anthropic_fake, Call("odd__grown", {})).texts == ["grown {}"]


@pytest.mark.thorough
def test_a_server_of_the_newest_protocol_is_used_all_the_same(
    database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake
) -> None:
    with serving_with(anthropic_server, ServerSpec("modern", our_server("modern_mcp_server"))) as url:
        seen = told(url, anthropic_fake, Call("modern__add", {"a": 2, "b": 3}), Call("modern__grow", {}))
        assert seen.texts[0] == '5\n\n{\n "result": 5\n}'
        assert "modern: add: adding" in [update.data["message"] for update in of_type(seen.frames, "status_update")]
        anthropic_fake.reset()
        assert "here" in told(url, anthropic_fake, Call("modern__grown", {})).texts[0]


def test_servers_that_are_away_or_never_answer_cost_a_question_a_moment_once(
    database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake
) -> None:
    specs = (
        ServerSpec("absent", Process("no-such-command")),
        ServerSpec("closed", Address("http://127.0.0.1:9/mcp")),
        ServerSpec("mute", Process("sh", ("-c", "cat > /dev/null"))),
    )
    with serving_with(anthropic_server, *specs, patience=0.5) as url:
        took = []
        for _ in range(3):
            started = time.perf_counter()
            told(url, anthropic_fake, Call("calculator", {"expression": "1 + 1"}))
            took.append(time.perf_counter() - started)
            anthropic_fake.reset()
    assert all(seconds < 2.5 for seconds in took)


@pytest.mark.thorough
def test_an_idle_server_is_stopped_and_starts_again_when_it_is_needed(
    database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake, tmp_path: Path
) -> None:
    notes = tmp_path / "journal"
    spec = ServerSpec("odd", our_server("odd_mcp_server", "--journal", str(notes)))
    with serving_with(anthropic_server, spec, idle_seconds=0.3) as url:
        told(url, anthropic_fake, Call("odd__counts", {"to": 1}))
        wait_until(lambda: journal(notes, "end"), what="the idle server to end")
        anthropic_fake.reset()
        assert told(url, anthropic_fake, Call("odd__counts", {"to": 2})).texts == ["counts {'to': 2}"]
        assert len(journal(notes, "start")) == 2
    assert len(journal(notes, "end")) == 2


@pytest.mark.thorough
def test_a_server_that_died_while_it_was_idle_answers_the_next_call(
    database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake, tmp_path: Path
) -> None:
    notes = tmp_path / "journal"
    spec = ServerSpec("odd", our_server("odd_mcp_server", "--journal", str(notes)))
    with serving_with(anthropic_server, spec) as url:
        told(url, anthropic_fake, Call("odd__counts", {"to": 1}))
        os.kill(journal(notes, "start")[0]["pid"], signal.SIGKILL)
        anthropic_fake.script(calls(Call("odd__counts", {"to": 2})), says("Done."))
        with by_key(url) as alice:
            time.sleep(0.3)
            assert of_type(alice.events("Again."), "tool_call_result")[0].data["ok"]


def test_a_server_of_the_admin_is_started_with_its_key_within_seconds_and_closed_when_it_is_removed(
    database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake, tmp_path: Path
) -> None:
    notes = tmp_path / "journal"
    with (
        http_server("odd_mcp_server", "--journal", str(notes)) as address,
        serving_with(anthropic_server, look_seconds=0.1) as url,
    ):
        assert told(url, anthropic_fake, Call("added__counts", {"to": 1})).items == [("base", 5), ("blocked", 0)]
        key = encrypt('{"Authorization": "Bearer the-key-of-the-server"}')
        row = McpServer.objects.create(name="added", url=address, headers_cipher=key)
        try:
            wait_until(lambda: journal(notes, "start"), what="the new server to be started unasked")
            anthropic_fake.reset()
            assert told(url, anthropic_fake, Call("added__counts", {"to": 1})).texts == ["counts {'to': 1}"]
            assert {line["token"] for line in journal(notes)} == {"the-key-of-the-server"}
        finally:
            row.delete()
        wait_until(lambda: journal(notes, "end"), what="the session to close")
        anthropic_fake.reset()
        assert told(url, anthropic_fake, Call("added__counts", {"to": 1})).items == [("base", 5), ("blocked", 0)]


def test_without_any_server_a_question_does_not_even_look_for_one(
    database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake
) -> None:
    GitHubToken.objects.all().delete()
    with serving_with(anthropic_server, look_seconds=0.1) as url:
        told(url, anthropic_fake, Call("calculator", {"expression": "1 + 1"}))
        anthropic_fake.reset()
        with closing(connection.copy()) as locking:
            locking.set_autocommit(False)
            locking.cursor().execute("LOCK TABLE chat_mcpserver, chat_githubtoken IN ACCESS EXCLUSIVE MODE")
            time.sleep(0.3)  # the look that is under way now waits for the lock, and no run may wait for that look
            told(url, anthropic_fake, Call("calculator", {"expression": "1 + 1"}))
            locking.rollback()


def test_a_server_that_starts_slowly_is_there_for_the_first_question_all_the_same(
    database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake, tmp_path: Path
) -> None:
    notes = tmp_path / "journal"
    spec = ServerSpec("odd", our_server("odd_mcp_server", "--slow", "0.5", "--journal", str(notes)))
    with serving_with(anthropic_server, spec, patience=0.1) as url:
        wait_until(lambda: journal(notes, "start"), what="the server to have started")
        time.sleep(0.3)  # and to have listed its tools
        assert told(url, anthropic_fake, Call("odd__counts", {"to": 1})).texts == ["counts {'to': 1}"]


def test_tools_are_listed_for_programs_with_what_a_call_costs(workshop: str) -> None:
    with by_key(workshop, make_person()) as alice:
        listed = {tool["name"]: tool for tool in alice.get("/api/tools").json()["results"]}
    assert (listed["odd__counts"]["category"], listed["odd__counts"]["price"]) == ("tool", 2)
    assert "calculator" in listed
