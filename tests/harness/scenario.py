"""A scenario's line: what it did, with which seed, and what it counted."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.harness.soundness import nothing_breaks

IS_FULL = os.environ.get("KLERAI_FULL") == "1"
IS_THOROUGH = os.environ.get("KLERAI_THOROUGH") == "1"
_PROPERTY = "scenario"


@dataclass(slots=True)
class Scenario:
    """What is counted on the way, and the same dice for everything that is left to chance."""

    id: str
    seed: int
    n: int = 0
    figures: dict[str, Any] = field(default_factory=dict)
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def must_be_zero(self, **counts: int) -> None:
        """The counts that decide."""
        self.figures |= counts
        assert {name: count for name, count in counts.items() if count} == {}

    def size(self, *, full: int, normal: int, quick: int) -> int:
        """How many rounds: all of them with KLERAI_FULL=1, those of CI with KLERAI_THOROUGH=1, else a few."""
        self.n = full if IS_FULL else normal if IS_THOROUGH else quick
        return self.n


@pytest.fixture
def scenario(request: pytest.FixtureRequest, record_property: Any) -> Iterator[Scenario]:
    """The scenario of a test marked `scenario("BM2")`; its line is printed at the end."""
    marker = request.node.get_closest_marker("scenario")
    seed = int(os.environ.get("KLERAI_SEED") or random.SystemRandom().randrange(2**31))
    found = Scenario(marker.args[0], seed)
    started = time.perf_counter()
    broken: list[Any] = []
    try:
        with nothing_breaks() as broken:
            yield found
    finally:
        failed = getattr(request.node, "scenario_failed", False)
        line = {
            "id": found.id,
            "ok": not (broken or failed),
            "n": found.n,
            "violations": len(broken),
            "figures": found.figures,
            "seed": seed,
            "seconds": round(time.perf_counter() - started, 1),
        }
        record_property(_PROPERTY, json.dumps(line))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if call.when == "call" and report.failed:
        item.scenario_failed = True  # type: ignore[attr-defined]
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line for every scenario that ran."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "teardown":
                for name, line in report.user_properties:
                    if name == _PROPERTY:
                        terminalreporter.write_line(line)
