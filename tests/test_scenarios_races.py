"""BM2 and BM3: however often and from wherever a question is sent, it is answered and paid once."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from chat.models import Run
from klerai.accounts.models import Person
from tests.credit_people import with_packs
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import says
from tests.harness.crowd import Outcome, crowd, over_json, over_socket, over_sse
from tests.harness.scenario import Scenario
from tests.harness.soundness import charged, left
from tests.harness.toxic import LimitData, ResetPeer, ResetSoon, Toxic, ToxicProxy, toxic_proxy
from tests.harness.visits import key_headers, session_headers
from tests.people import make_person
from tests.serving import server_process, vendor_environment, wait_until

pytestmark = pytest.mark.xdist_group("races")
AT_ONCE = 4
TURNS_A_PERSON = 5


@pytest.fixture(scope="module")
def product(anthropic_server: AnthropicFake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in a process of its own, which asks the fake vendor."""
    environment = vendor_environment(anthropic_server.url)
    with server_process(tmp_path_factory.mktemp("races"), **environment) as server:
        yield server.url


Door = Callable[[aiohttp.ClientSession, Mapping[str, str], Mapping[str, Any]], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Round:
    """A person who can pay for one question and asks eight times at once."""

    person: Person
    marker: str
    attempts: tuple[tuple[Door, dict[str, str]], ...]


@pytest.mark.thorough
@pytest.mark.scenario("BM2")
def test_of_eight_questions_at_once_the_only_one_that_can_be_paid_is_asked(
    scenario: Scenario, product: str, anthropic_fake: AnthropicFake
) -> None:
    rounds = [_round(product, number) for number in range(scenario.size(full=200, normal=20, quick=8))]
    anthropic_fake.script_many({round_.marker: says(f"The answer of {round_.marker}") for round_ in rounds})
    outcomes = asyncio.run(_fire(product, rounds))
    asked = Counter(seen["key"] for seen in anthropic_fake.requests())

    started = [sum(outcome.code == "" for outcome in of_round) for of_round in outcomes]
    refused = [outcome for of_round in outcomes for outcome in of_round if outcome.code]
    runs = [list(Run.objects.filter(person=round_.person).select_related("person")) for round_ in rounds]
    scenario.figures = {"attempts": 8 * len(rounds), "model_calls": asked.total(), "refused": len(refused)}
    scenario.must_be_zero(
        rounds_without_a_start=sum(count == 0 for count in started),
        extra_starts=sum(max(0, count - 1) for count in started),
        extra_runs=sum(abs(len(of_round) - 1) for of_round in runs),
        extra_model_calls=sum(abs(asked[round_.marker] - 1) for round_ in rounds),
        refused_otherwise=sum(outcome.code != "insufficient_credits" for outcome in refused),
        refused_with_another_status=sum(outcome.status not in (0, 402) for outcome in refused),
        wrongly_charged=sum(charged(run) != 5 or left(run) != 0 for of_round in runs for run in of_round),
    )


def _round(url: str, number: int) -> Round:
    person = with_packs(5)
    program, browser, second_tab = key_headers(person), session_headers(url, person), session_headers(url, person)
    attempts: tuple[tuple[Door, dict[str, str]], ...] = (
        (over_socket, browser),
        (over_sse, browser),
        (over_json, browser),
        (over_socket, second_tab),
        (over_sse, second_tab),
        (over_json, program),
        (over_sse, program),
        (over_socket, program),
    )
    return Round(person, f"[round {number}]", attempts)


async def _fire(url: str, rounds: list[Round]) -> list[list[Outcome]]:
    places = asyncio.Semaphore(AT_ONCE)

    async def fire(session: aiohttp.ClientSession, round_: Round) -> list[Outcome]:
        async with places:
            body = {"message": f"Who is first? {round_.marker}"}
            return await asyncio.gather(*(door(session, headers, body) for door, headers in round_.attempts))

    async with crowd(url) as session:
        return await asyncio.gather(*(fire(session, round_) for round_ in rounds))


@dataclass(frozen=True, slots=True)
class Sending:
    """One post of a turn: its body, and the word that only this body's answer holds."""

    body: dict[str, Any]
    marker: str


@dataclass(frozen=True, slots=True)
class Repeated:
    """A turn that is posted again and again under one run id."""

    person: Person
    headers: dict[str, str]
    run_id: str
    number: int
    sendings: tuple[Sending, ...]

    @property
    def markers(self) -> tuple[str, str]:
        return _marker(self.number), _marker(self.number, is_changed=True)


@pytest.mark.thorough
@pytest.mark.scenario("BM3")
def test_a_turn_that_is_sent_again_and_again_through_a_bad_line_is_run_and_charged_once(
    scenario: Scenario, product: str, anthropic_fake: AnthropicFake
) -> None:
    turns = _turns(scenario, scenario.size(full=1_000, normal=100, quick=16))
    markers = {marker for turn in turns for marker in turn.markers}
    anthropic_fake.script_many({marker: says(f"The answer of {marker}") for marker in markers})
    with toxic_proxy(product, lambda: _toxic(scenario)) as proxy:
        outcomes = asyncio.run(_post_all(proxy, turns))
    ids = [turn.run_id for turn in turns]
    wait_until(lambda: not Run.objects.filter(run_id__in=ids, state__in=Run.LIVE).exists(), what="every run to end")
    finals = asyncio.run(_post_plain(product, turns))
    runs = Run.objects.filter(run_id__in=ids).select_related("person")
    asked = Counter(seen["key"] for seen in anthropic_fake.requests())

    sent = [
        pair for turn, of_turn in zip(turns, outcomes, strict=True) for pair in zip(turn.sendings, of_turn, strict=True)
    ]
    scenario.figures = {
        "posts": len(sent),
        "answers_lost": sum(outcome is None for _, outcome in sent),
        "conflicts": sum(outcome is not None and outcome.code == "run_conflict" for _, outcome in sent),
        "charged": sum(charged(run) == 5 for run in runs),
        "model_calls": asked.total(),
        "sent_once_more": dict(sum(finals, Counter[str]())),
    }
    scenario.must_be_zero(
        duplicates=len(runs) - len(turns),
        extra_model_calls=sum(max(0, sum(asked[marker] for marker in turn.markers) - 1) for turn in turns),
        wrong_2xx=sum(outcome is not None and _is_wrong(sending, outcome) for sending, outcome in sent),
        unforeseen_refusals=sum(
            outcome is not None and outcome.code not in ("", "run_conflict") for _, outcome in sent
        ),
        charges_other_than_once=sum(charged(run) != 5 for run in runs),
        turns_not_answered_in_the_end=sum(final != {"answered": 1, "run_conflict": 1} for final in finals),
    )


def _turns(scenario: Scenario, count: int) -> list[Repeated]:
    made: list[Repeated] = []
    person, headers = make_person(), dict[str, str]()
    for number in range(count):
        if number % TURNS_A_PERSON == 0:
            person = make_person()
            headers = key_headers(person)
        run_id = str(uuid.uuid4())
        posts = scenario.random.randint(1, 10)
        sendings = [_sending(run_id, number, is_changed=scenario.random.random() < 0.1) for _ in range(posts)]
        made.append(Repeated(person, headers, run_id, number, tuple(sendings)))
    return made


def _sending(run_id: str, number: int, *, is_changed: bool) -> Sending:
    marker = _marker(number, is_changed=is_changed)
    return Sending({"run_id": run_id, "message": f"Once, please. {marker}"}, marker)


def _marker(number: int, *, is_changed: bool = False) -> str:
    return f"[{'other' if is_changed else 'turn'} {number}]"


def _toxic(scenario: Scenario) -> Toxic | None:
    dice = scenario.random
    match dice.randrange(6):
        case 0:
            return ResetSoon(dice.random() * 0.1)
        case 1:
            return ResetPeer(dice.randint(1, 600))
        case 2:
            return LimitData(dice.randint(1, 600))
    return None


async def _post_all(proxy: ToxicProxy, turns: list[Repeated]) -> list[list[Outcome | None]]:
    """Each person's turns one after the other, the posts of a turn all at once; None where the line broke."""
    by_person: dict[Person, list[Repeated]] = {}
    for turn in turns:
        by_person.setdefault(turn.person, []).append(turn)
    places = asyncio.Semaphore(AT_ONCE)

    async def post_person(session: aiohttp.ClientSession, mine: list[Repeated]) -> list[list[Outcome | None]]:
        async with places:
            return [await _post_turn(session, turn) for turn in mine]

    async with crowd(proxy.url) as session:
        found = await asyncio.gather(*(post_person(session, mine) for mine in by_person.values()))
    return [of_turn for of_person in found for of_turn in of_person]


async def _post_turn(session: aiohttp.ClientSession, turn: Repeated) -> list[Outcome | None]:
    async def post(sending: Sending) -> Outcome | None:
        try:
            return await over_json(session, turn.headers, sending.body)
        except (aiohttp.ClientError, ConnectionError):
            return None

    return list(await asyncio.gather(*(post(sending) for sending in turn.sendings)))


async def _post_plain(url: str, turns: list[Repeated]) -> list[Counter[str]]:
    """Each turn once more over a good line: with the body that won and with another one."""
    places = asyncio.Semaphore(AT_ONCE)

    async def post(session: aiohttp.ClientSession, turn: Repeated) -> Counter[str]:
        async with places:
            found = Counter[str]()
            for is_changed in (False, True):
                sending = _sending(turn.run_id, turn.number, is_changed=is_changed)
                outcome = await over_json(session, turn.headers, sending.body)
                found["wrong" if _is_wrong(sending, outcome) else outcome.code or "answered"] += 1
            return found

    async with crowd(url) as session:
        return await asyncio.gather(*(post(session, turn) for turn in turns))


def _is_wrong(sending: Sending, outcome: Outcome) -> bool:
    """Whether this body was answered with the answer of another one."""
    return outcome.status == 200 and sending.marker not in (outcome.body or {}).get("response", "")
