"""Watching a run: what a live viewer gets is what a replay gets, from any place, at any door, however often."""

from __future__ import annotations

import uuid

import pytest

from chat.models import Run
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import says
from tests.harness.doors import by_key, by_session
from tests.harness.frames import Frame, last_turn, logged, run_row
from tests.harness.soundness import charged, ended_once, nothing_breaks
from tests.serving import wait_until

LONG = " ".join(f"word{number}" for number in range(100))


@pytest.fixture
def slow(anthropic_fake: AnthropicFake) -> AnthropicFake:
    anthropic_fake.script(says(LONG, each_ms=10), forever=True)
    return anthropic_fake


def has_ended(run_id: str) -> bool:
    run = Run.objects.filter(run_id=run_id).first()
    return run is not None and not run.is_live


def test_a_replay_of_a_finished_run_starts_where_it_is_asked_to(server: str) -> None:
    with by_key(server) as alice:
        run_id = alice.answer("Count to 30.")["run_id"]
        whole = logged(run_id)
        assert alice.replay(run_id) == whole
        assert alice.replay(run_id, after=2) == whole[2:]
        assert alice.replay(run_id, last_event_id=3) == whole[3:]
        assert alice.replay(run_id, last_event_id=3, after=1) == whole[3:]
        assert alice.replay(run_id, after=len(whole)) == []
        assert alice.replay(run_id, after=10**8) == []


@pytest.mark.parametrize("after", ["-1", "1.5", "x", "١", "9" * 10, " "])
def test_a_place_that_is_no_number_is_refused(server: str, after: str) -> None:
    with by_key(server) as alice:
        run_id = alice.answer("Count to 3.")["run_id"]
        refused = alice.get(f"/api/runs/{run_id}/events", params={"after": after})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")


def test_every_viewer_of_a_live_run_sees_the_whole_of_it(vendor_server: str, slow: AnthropicFake) -> None:
    with nothing_breaks(), by_key(vendor_server) as program, by_session(vendor_server, program.person) as browser:
        run_id = str(uuid.uuid4())
        with program.asking("Tell me.", run_id=run_id) as asked, browser.socket() as tab:
            first = [next(asked) for _ in range(3)]
            tab.send({"type": "resume", "run_id": run_id, "last_seq": 0})
            with browser.watching(run_id, last_event_id=2) as late:
                seen_late = list(late)
            seen_by_tab = list(tab.frames())
            seen_by_asker = first + list(asked)
        whole = logged(run_id)
        assert seen_by_asker == seen_by_tab == whole
        assert seen_late == whole[2:]
        assert last_turn(whole) == whole[-1].data["text"] == LONG


def test_resuming_on_the_socket_gives_what_is_behind_the_last_event_seen(server: str) -> None:
    with by_key(server) as alice:
        run_id = alice.answer("Count to 30.")["run_id"]
        whole = logged(run_id)
        with alice.socket() as socket:
            for last_seq in (0, 1, len(whole) - 1):
                socket.send({"type": "resume", "run_id": run_id, "last_seq": last_seq})
                assert list(socket.frames()) == whole[last_seq:]


@pytest.mark.parametrize("last_seq", [-1, "1", 1.5, True, None, [1]])
def test_resuming_from_a_place_that_is_no_number_is_refused(server: str, last_seq: object) -> None:
    with by_key(server) as alice, alice.socket() as socket:
        socket.send({"type": "resume", "run_id": alice.answer("Count to 3.")["run_id"], "last_seq": last_seq})
        frame = socket.receive()
        assert (frame["seq"], frame["data"]["code"]) == (0, "invalid")


def test_a_socket_carries_several_runs_side_by_side(vendor_server: str, slow: AnthropicFake) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice, alice.socket() as socket:
        ids = [socket.ask("Tell me."), socket.ask("Tell me more.")]
        seen: dict[str, list[Frame]] = {run_id: [] for run_id in ids}
        while any(not frames or not frames[-1].is_terminal for frames in seen.values()):
            received = socket.receive()
            seen[received["run_id"]].append(Frame(received["seq"], received["type"], received["data"]))
        assert all(seen[run_id] == logged(run_id) for run_id in ids)


def test_unknown_frames_are_ignored(server: str) -> None:
    with by_key(server) as alice, alice.socket() as socket:
        for frame in ({"type": "nonsense"}, {}, {"type": None}, [1, 2], "3", {"type": ["ask"]}):
            socket.send(frame)
        run_id = socket.ask("Count to 3.")
        assert list(socket.frames()) == logged(run_id)


def test_a_frame_that_is_no_json_is_answered_and_the_socket_lives_on(server: str) -> None:
    with by_key(server) as alice, alice.socket() as socket:
        socket.send("{")
        assert socket.receive()["data"]["code"] == "invalid"
        socket.send("[" * 100_000)
        assert socket.receive()["data"]["code"] == "invalid"
        run_id = socket.ask("Count to 3.")
        assert list(socket.frames()) == logged(run_id)


@pytest.mark.parametrize("door", ["json", "sse", "socket"])
def test_a_client_that_goes_away_ends_the_watching_and_not_the_run(
    vendor_server: str, slow: AnthropicFake, door: str
) -> None:
    run_id = str(uuid.uuid4())
    with nothing_breaks(), by_key(vendor_server) as alice:
        match door:
            case "json":
                with pytest.raises(Exception, match="timed out"):
                    alice.post("/api/chat", {"message": "Tell me.", "run_id": run_id}, timeout=0.4)
            case "sse":
                with alice.asking("Tell me.", run_id=run_id) as frames:
                    next(frame for frame in frames if frame.type == "content_chunk")
            case _:
                with alice.socket() as socket:
                    socket.ask("Tell me.", run_id=run_id)
                    next(frame for frame in socket.frames() if frame.type == "content_chunk")
        wait_until(lambda: has_ended(run_id), what="the run to end by itself")
        run = run_row(run_id)
        assert run.state == "completed"
        assert charged(run) == 5
        assert ended_once(run)["text"] == LONG
        assert alice.replay(run_id) == logged(run_id)


def test_a_live_run_shows_the_words_written_so_far(vendor_server: str, slow: AnthropicFake) -> None:
    with by_key(vendor_server) as alice:
        run_id = str(uuid.uuid4())
        with alice.asking("Tell me.", run_id=run_id) as frames:
            next(frame for frame in frames if frame.type == "content_chunk")
            found = alice.run(run_id)
            assert found["state"] == "running"
            assert found["ended_at"] is None
            assert found["receipt"] is None
            assert found["text"]
            assert LONG.startswith(found["text"])
            list(frames)
        found = alice.run(run_id)
        assert (found["state"], found["text"], found["error"]) == ("completed", LONG, None)
        assert found["last_seq"] == len(logged(run_id))
        assert found["query_id"] == "q1"
