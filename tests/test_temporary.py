"""Temporary conversations: they remember, stream and cost like any other, and leave no word in the database."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from chat.events import Logged
from chat.models import Conversation, Item, Run
from chat.vault import Vault, vault
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.doors import Visitor, by_key, by_session
from tests.harness.frames import Frame, of_type, run_row
from tests.harness.soundness import charged, nothing_breaks
from tests.serving import server_process, vendor_environment

SECRET, ANSWER = "my secret is amaranthine", "Ouagadougou it is, and forty-two."


def every_word_stored() -> str:
    """All text of every table that holds something of conversations or queued work, as one."""
    found: list[str] = []
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT coalesce(string_agg(row_to_json(t)::text, E'\\n'), '') FROM \"{table}\" t")
            found.append(cursor.fetchone()[0])
    return "\n".join(found)


def begun(frames: list[Frame]) -> str:
    return str(of_type(frames, "run_started")[0].data["conversation_id"])


def asked_temporarily(alice: Visitor, fake: AnthropicFake) -> tuple[list[Frame], str]:
    fake.script(calls(Call("calculator", {"expression": "40 + 2"})), says(ANSWER))
    frames = alice.events(f"{SECRET}: what is 40 + 2?", temporary=True)
    return frames, begun(frames)


def test_a_temporary_conversation_remembers_and_leaves_no_word_in_the_database(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice:
        frames, conversation = asked_temporarily(alice, anthropic_fake)
        anthropic_fake.script(says("You said amaranthine."))
        second = alice.answer("What did I say?", conversation_id=conversation)
        stored = every_word_stored()
    assert frames[-1].data["text"] == ANSWER
    assert f"[ID:q1] {SECRET}" in str(anthropic_fake.requests()[-1]["body"]["messages"])
    assert second["response"] == "You said amaranthine."
    for word in ("amaranthine", "Ouagadougou", "What did I say"):
        assert word not in stored
    run = run_row(frames[-1].data["receipt"]["run_id"])
    assert charged(run) == frames[-1].data["receipt"]["credits"] == 7


def test_a_temporary_conversation_is_read_and_replayed_where_it_was_answered(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice, by_session(vendor_server, alice.person) as browser:
        frames, conversation = asked_temporarily(alice, anthropic_fake)
        run_id = frames[-1].data["receipt"]["run_id"]
        assert alice.replay(run_id) == frames
        assert alice.run(run_id)["text"] == ANSWER
        shown = alice.get(f"/api/conversations/{conversation}").json()
        page = browser.get(f"/chat/{conversation}/").text
        sidebar = browser.get("/sidebar/").text
        memory = alice.get(f"/api/conversations/{conversation}/memory").json()
    assert shown["temporary"] is True
    assert shown["title"] == ""
    assert [message["text"] for message in shown["messages"]] == [ANSWER]
    assert [item["ref"] for item in memory["items"]] == ["q1", "q1-t1", "q1-r"]
    assert SECRET in page
    assert "Not saved" in page
    assert conversation not in sidebar


def test_a_stranger_cannot_read_it_and_a_kept_conversation_does_not_become_temporary(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice, by_key(vendor_server) as charlie:
        frames, conversation = asked_temporarily(alice, anthropic_fake)
        assert charlie.get(f"/api/conversations/{conversation}").status_code == 404
        assert charlie.get(f"/api/runs/{frames[-1].data['receipt']['run_id']}/events").status_code == 404
        anthropic_fake.script(says("Hello."))
        kept = alice.answer("Hello?")["conversation_id"]
        refused = alice.refused("Psst.", status=400, conversation_id=kept, temporary=True)
    assert refused["fields"]["temporary"]


def test_deleting_it_forgets_its_words(vendor_server: str, anthropic_fake: AnthropicFake) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice:
        frames, conversation = asked_temporarily(alice, anthropic_fake)
        assert alice.http.delete(f"/api/conversations/{conversation}").status_code == 204
        assert alice.get(f"/api/runs/{frames[-1].data['receipt']['run_id']}/events").status_code == 404
    assert not Conversation.objects.filter(pk=conversation).exists()


def test_when_an_early_question_had_to_leave_the_rest_goes_on(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice:
        frames, conversation = asked_temporarily(alice, anthropic_fake)
        anthropic_fake.script(says("Second."), says("Third."))
        alice.answer("And then?", conversation_id=conversation)
        vault().forget([run_row(frames[-1].data["receipt"]["run_id"]).pk])
        third = alice.answer("And after that?", conversation_id=conversation)
        memory = alice.get(f"/api/conversations/{conversation}/memory").json()
    assert third["response"] == "Third."
    assert [item["ref"] for item in memory["items"]] == ["q2", "q2-r", "q3", "q3-r"]


def test_what_is_told_twice_is_kept_once() -> None:
    kept, key = Vault(), Run().pk
    kept.begin(Item(run_id=key, content="words"))
    for _ in range(2):
        kept.note(key, [Logged(1, "run_started", {})], [Item(run_id=key, content="found", position=1)])
    assert [event.seq for event in kept.events(key) or ()] == [1]
    assert [item.content for item in kept.items([key])[key]] == ["words", "found"]


@pytest.mark.thorough
def test_after_a_restart_it_is_gone_and_says_so(anthropic_fake: AnthropicFake, tmp_path: Path) -> None:
    environment = vendor_environment(anthropic_fake.url)
    with server_process(tmp_path, name="first", **environment) as first, by_key(first.url) as alice:
        frames, conversation = asked_temporarily(alice, anthropic_fake)
        person = alice.person
    run_id = frames[-1].data["receipt"]["run_id"]
    with (
        server_process(tmp_path, name="second", **environment) as second,
        by_key(second.url, person) as alice,
        by_session(second.url, person) as browser,
    ):
        for path in (
            f"/api/conversations/{conversation}",
            f"/api/conversations/{conversation}/memory",
            f"/api/runs/{run_id}/events",
        ):
            answer = alice.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (410, "temporary_gone")
        refused = alice.refused("And now?", status=410, conversation_id=conversation)
        page = browser.get(f"/chat/{conversation}/")
        receipt = browser.get(f"/billing/receipts/{run_id}/")
        assert alice.run(run_id)["receipt"]["credits"] == 7
        with alice.socket() as tab:
            tab.send({"type": "resume", "run_id": run_id, "last_seq": 0})
            told = tab.receive()
    assert refused["code"] == "temporary_gone"
    assert (page.status_code, "This conversation is gone." in page.text) == (410, True)
    assert receipt.status_code == 200
    assert (told["type"], told["data"]["code"]) == ("error", "temporary_gone")
    assert charged(Run.objects.get(run_id=run_id)) == 7


@pytest.mark.thorough
def test_by_setting_every_conversation_is_temporary(anthropic_fake: AnthropicFake, tmp_path: Path) -> None:
    environment = {**vendor_environment(anthropic_fake.url), "KLERAI_CONVERSATION_STORAGE": "memory"}
    anthropic_fake.script(says("Hello, amaranthine."))
    with server_process(tmp_path, **environment) as server, by_key(server.url) as alice:
        answer = alice.answer("Hello?")
        assert alice.get(f"/api/conversations/{answer['conversation_id']}").json()["temporary"] is True
        assert "Hello, amaranthine." not in every_word_stored()


def test_a_full_vault_lets_the_oldest_go() -> None:
    small = Vault(most_runs=2)
    keys = [Run(number=number).pk for number in range(3)]
    for key in keys:
        small.begin(Item(run_id=key, content="words"))
    assert [small.holds(key) for key in keys] == [False, True, True]
