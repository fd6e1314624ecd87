"""The same question in all five modes, whichever vendor answers it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chat.models import Run
from chat.orchestrator import Route
from chat.profiles import PROFILES
from chat.strategies.retrying import Retrying
from chat.strategies.vendors import Access, strategy_of
from chat.wiring import Runtime
from tests.fakes.anthropic_script import Call, Turn, calls, says
from tests.harness.doors import by_key
from tests.harness.frames import last_turn, logged, of_type
from tests.harness.parties import KEY, Party, only
from tests.harness.parties import each_party as each_party
from tests.harness.parties import party as party
from tests.harness.soundness import charged, nothing_breaks
from tests.serving import served
from tests.test_citations import handbook

QUESTION = "How much leave do I have?"
ANSWER = 'You have “thirty” days \\ of leave 😀 [1].\n\n- See "Leave" [1]'
EVENTS = ("run_started", "tool_call_start", "tool_call_result", "content_chunk", "message_complete")


@pytest.fixture
def house(database: object, party: Party) -> Iterator[str]:
    async def start() -> Runtime:
        strategy = strategy_of(party.vendor, Access(party.card.model, party.setting, KEY))
        return await Runtime.start(route=Route(Retrying(strategy), party.card))

    with served(start=start) as url:
        yield url


def turns_in(mode: str) -> tuple[Turn, ...]:
    search = "rag_search" if mode == "research" else "knowledge_base_search"
    arguments = {"sources": [1], "confidence_score": 0.8, "answer": ANSWER}
    spoken = Call("generate_response", arguments, pieces=len(ANSWER))
    closing = calls(spoken, split=7) if PROFILES[mode].closing_tool else says(ANSWER)
    return calls(Call(search, {"query": "days of leave"})), closing


@pytest.mark.thorough
@only("anthropic", "deepseek", "qwen_thinking", "ollama")
def test_a_question_is_answered_alike_in_every_mode(house: str, party: Party) -> None:
    for mode in PROFILES:
        party.fake.reset()
        party.fake.script(*turns_in(mode))
        with nothing_breaks(), by_key(house) as alice:
            handbook(alice.person)
            frames = alice.events(QUESTION, mode=mode)
            run = Run.objects.get(person=alice.person)
        end = frames[-1].data
        assert (mode, end["text"]) == (mode, ANSWER)
        assert last_turn(frames) == ANSWER
        assert [kind for kind in EVENTS if not of_type(frames, kind)] == []
        assert frames == logged(run.run_id)
        assert [cited["n"] for cited in end["citations"]] == [1]
        assert end.get("confidence") == (0.8 if mode == "grounded" else None)
        assert charged(run) == 7
