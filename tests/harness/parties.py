"""Every strategy that asks a vendor, each with a fake of its vendor: what holds for one holds for all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

from chat.messages import Message
from chat.strategies.base import Card, ModelRequest, ModelStrategy
from chat.strategies.patience import Patience
from chat.strategies.vendors import VENDORS, Access, Vendor, strategy_of
from tests.fakes.anthropic import AnthropicFake, running_anthropic
from tests.fakes.anthropic_script import Turn
from tests.fakes.listener import Heard, asking, listen
from tests.fakes.openai import CompatibleFake, running_compatible

KEY = "sk-a-key-nobody-may-read"
WITHOUT_REASONING = ("openai", "gemini")  # they keep it to themselves over this protocol
IMMEDIATE = Patience(pause_seconds=0)


@dataclass(frozen=True, slots=True)
class Party:
    """A strategy as the settings would build it, its card, and the fake it asks."""

    vendor: Vendor
    fake: AnthropicFake
    card: Card

    @property
    def shows_reasoning(self) -> bool:
        return self.vendor.strategy not in WITHOUT_REASONING

    @property
    def setting(self) -> str:
        """The address of the fake as the vendor's setting wants it."""
        return self.fake.setting if isinstance(self.fake, CompatibleFake) else self.fake.url

    def asking(self, *messages: Message | str, with_tools: bool = True, **changes: Any) -> ModelRequest:
        return replace(asking(*messages, card=self.card, with_tools=with_tools), **changes)

    @asynccontextmanager
    async def speaking(self, *, patience: Patience = IMMEDIATE, address: str = "") -> AsyncIterator[ModelStrategy]:
        strategy = strategy_of(self.vendor, Access(self.card.model, address or self.setting, KEY), patience=patience)
        try:
            yield strategy
        finally:
            await strategy.aclose()

    def forced_tool(self) -> str | None:
        """The tool the newest request demanded."""
        choice = self.fake.requests()[-1]["body"].get("tool_choice")
        if not isinstance(choice, dict) or choice["type"] not in ("tool", "function"):
            return None
        return str(choice.get("name") or choice["function"]["name"])


def running(vendor: Vendor) -> AbstractContextManager[AnthropicFake]:
    return running_anthropic() if vendor.strategy == "anthropic" else running_compatible(vendor.strategy)


def _parameter(vendor: Vendor) -> ParameterSet:
    """The tests of one vendor run in one process, so that its fake is started once."""
    return pytest.param(vendor, id=vendor.strategy, marks=pytest.mark.xdist_group(vendor.strategy))


def only(*strategies: str) -> pytest.MarkDecorator:
    """For a test that is about some of the vendors."""
    chosen = [_parameter(vendor) for vendor in VENDORS if vendor.strategy in strategies]
    return pytest.mark.parametrize("each_party", chosen, indirect=True)


@pytest.fixture(scope="session", params=[_parameter(vendor) for vendor in VENDORS])
def each_party(request: pytest.FixtureRequest) -> Iterator[Party]:
    vendor: Vendor = request.param
    thinking = "adaptive" if vendor.strategy == "anthropic" else "enabled"
    card = Card(vendor.model, vendor.strategy, vendor.model, thinking, vendor.honours_forced_tool)
    with running(vendor) as fake:
        yield Party(vendor, fake, card)


@pytest.fixture
def party(each_party: Party) -> Iterator[Party]:
    """A party whose fake has no script and nothing recorded."""
    each_party.fake.reset()
    yield each_party
    each_party.fake.reset()


async def listen_to_each(strategy: ModelStrategy, party: Party, turns: dict[str, Turn]) -> dict[str, Heard]:
    """What is heard of each turn, fifty at a time."""
    party.fake.script_many(turns)
    heard: dict[str, Heard] = {}
    limit = asyncio.Semaphore(50)

    async def one(key: str) -> None:
        async with limit:
            heard[key] = await listen(strategy, party.asking(key))

    await asyncio.gather(*(one(key) for key in turns))
    return heard


async def seen_closed(fake: AnthropicFake) -> None:
    """Waits until the fake saw the client leave; it has five seconds."""
    for _ in range(500):
        if any(request["closed_early"] for request in fake.requests()[-1:]):
            return
        await asyncio.sleep(0.01)
    pytest.fail("the connection was not closed")
