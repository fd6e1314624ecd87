"""A strategy is added with a row, or with a class; nothing else knows which ones there are."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from functools import partial

import pytest

from chat.errors import FaultKind, ModelFault
from chat.messages import AssistantMessage, Usage, UserMessage
from chat.orchestrator import Route
from chat.strategies.base import Card, ModelRequest, ModelStrategy, StrategyEvent, TextPiece, TurnComplete
from chat.strategies.dialects import Dialect
from chat.strategies.small import SmallModel
from chat.strategies.vendors import Access, Vendor, compatible, strategy_of
from chat.wiring import Runtime
from tests.fakes.anthropic_script import Call, calls, says
from tests.fakes.listener import CALCULATOR
from tests.fakes.openai import CompatibleFake, running_compatible
from tests.harness.doors import by_key
from tests.harness.parties import Party, only
from tests.harness.parties import each_party as each_party
from tests.harness.parties import party as party
from tests.serving import served

HOUSE = Vendor(
    strategy="house",
    title="The house model",
    benefit="Answers by the model of the house.",
    prefix="HOUSE",
    model="house-1",
    base_url="http://127.0.0.1:9/v1",
    make=compatible(Dialect("house", unasked={"chat_template_kwargs": {"manner": "polite"}})),
)


class Parrot:
    """Says what it hears."""

    name = "parrot"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StrategyEvent]:
        heard = [message.text for message in request.messages if isinstance(message, UserMessage)]
        yield TextPiece(heard[-1])
        yield TurnComplete(AssistantMessage(heard[-1]), Usage(1, 1), request.card.model)

    async def aclose(self) -> None:
        """It holds nothing."""


@pytest.fixture(scope="module")
def house() -> Iterator[CompatibleFake]:
    with running_compatible("llama_cpp") as fake:
        yield fake


def answered_by(strategy: ModelStrategy, card: Card, question: str) -> str:
    """The answer of a server that has this strategy, through its door."""
    with served(start=partial(Runtime.start, route=Route(strategy, card))) as url, by_key(url) as alice:
        return str(alice.answer(question)["response"])


def test_a_vendor_of_the_shared_protocol_is_a_row(house: CompatibleFake) -> None:
    strategy = strategy_of(HOUSE, Access(HOUSE.model, house.setting, "key"))
    card = Card("House 1", HOUSE.strategy, HOUSE.model)
    assert answered_by(strategy, card, "What is 17.5 % of 2,480?") == "17.5 % of 2,480 = 434."
    assert house.requests()[0]["body"]["chat_template_kwargs"] == {"manner": "polite"}
    assert any(message["role"] == "tool" for message in house.requests()[-1]["body"]["messages"])


def test_any_other_vendor_is_a_class() -> None:
    assert answered_by(Parrot(), Card("Parrot", "parrot", "parrot-1"), "Hello there.") == "Hello there."


# The small model is any of them


@only("qwen_thinking", "ollama")
async def test_a_small_model_that_cannot_be_made_to_call_is_asked_once_more(party: Party) -> None:
    party.fake.script(says("I think the sum is easy."), calls(Call("calculator", {"expression": "1 + 1"})))
    async with party.speaking() as strategy:
        found = await SmallModel(strategy, party.card)("Name the sum.", "one and one", answer=CALCULATOR)
    assert found.fields == {"expression": "1 + 1"}
    first, second = (seen["body"]["messages"][-1]["content"] for seen in party.fake.requests())
    assert first == "one and one"
    assert second.startswith("one and one")
    assert "calculator" in second
    assert found.usage.input > 0


@only("qwen_thinking", "openai")
async def test_a_small_model_that_only_talks_is_a_fault_its_caller_can_do_without(party: Party) -> None:
    party.fake.script(says("I would rather talk."), forever=True)
    async with party.speaking() as strategy:
        with pytest.raises(ModelFault) as fault:
            await SmallModel(strategy, party.card)("Name the sum.", "one and one", answer=CALCULATOR)
    assert fault.value.kind is FaultKind.MALFORMED
    assert len(party.fake.requests()) == (1 if party.card.honours_forced_tool else 2)
