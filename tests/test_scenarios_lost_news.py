"""BW4: processes die around an announcement, some never arrive, some are of things that are gone: it all converges."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import httpx
import pytest

from billing import reconciliation
from billing.models import StripeEvent
from tests.fakes.stripe import KEY, PRICES
from tests.fakes.stripe_objects import Thing
from tests.fakes.stripe_server import StripeFake
from tests.harness.applying import Workers, doomed_workers
from tests.harness.books import grants_by_payment
from tests.harness.nursery import Nursery, nursery
from tests.harness.scenario import Scenario
from tests.people import make_unverified
from tests.selling import WEBHOOK, Buyer, announce, work_off
from tests.serving import command_environment

pytestmark = pytest.mark.xdist_group("crashes")
AT_WORK = ("stripe_before_grant", "stripe_after_effect", "stripe_after_commit")
FAULTS = ("stripe_after_inbox", *AT_WORK, "never delivered", "gone at Stripe", *AT_WORK, "stripe_before_grant")
FEW = 6


@dataclass(frozen=True, slots=True)
class Announced:
    """A purchase whose announcement meets a fault."""

    buyer: Buyer
    session: Thing
    event: Thing
    fault: str


@pytest.fixture
def environment(stripe_fake: StripeFake) -> dict[str, str]:
    prices = ",".join(f"{name}={id}" for name, id in PRICES.items())
    return {
        "STRIPE_SECRET_KEY": KEY,
        "STRIPE_WEBHOOK_SECRET": stripe_fake.secret,
        "STRIPE_API_BASE": stripe_fake.url,
        "STRIPE_PRICES": prices,
    }


@pytest.mark.thorough
@pytest.mark.scenario("BW4")
def test_processes_may_die_around_any_announcement(
    scenario: Scenario, stripe_fake: StripeFake, environment: dict[str, str], tmp_path: Path
) -> None:
    count = scenario.size(full=100, normal=16, quick=FEW)
    announced = [_announced(stripe_fake, fault) for fault in islice(cycle(FAULTS), count)]
    wrong_exits = 0
    with ExitStack() as stack:
        servers = stack.enter_context(nursery(tmp_path, **environment))
        workers = stack.enter_context(doomed_workers(command_environment(**environment)))
        for one in announced:
            wrong_exits += not _meets_its_fault(one, servers, workers)
    for one in announced:  # Stripe sends again what it got no answer for, and a job of a dead worker is done again
        if one.fault != "never delivered":
            announce(stripe_fake, one.event)
            work_off([one.event])
    found = reconciliation.reconcile()

    wanted = {one.session["id"]: 0 if one.fault == "gone at Stripe" else 500 for one in announced}
    grants = [times for one in announced for times in grants_by_payment(one.buyer.person).values()]
    scenario.figures = {
        "kills": sum(one.fault.startswith("stripe_") for one in announced),
        "never_delivered": sum(one.fault == "never delivered" for one in announced),
        "gone": sum(one.fault == "gone at Stripe" for one in announced),
        "converged": sum(one.buyer.balance.pack == wanted[one.session["id"]] for one in announced),
        "found_by_the_hourly_look": found.events_missed + found.payments_corrected if found else 0,
    }
    scenario.must_be_zero(
        ended_otherwise=wrong_exits,
        not_converged=sum(one.buyer.balance.pack != wanted[one.session["id"]] for one in announced),
        double_effects=sum(times != 1 for times in grants),
        still_waiting=StripeEvent.objects.filter(
            pk__in=[one.event["id"] for one in announced], state__in=["received", "failed"]
        ).count(),
    )


def _announced(fake: StripeFake, fault: str) -> Announced:
    buyer = Buyer(fake, make_unverified())
    session = fake.world.pay(buyer.begin(pack="500"))
    events = buyer.news()
    for event in events:
        event["is_delivered"] = True  # but the one that says it all
    (event,) = [event for event in events if event["type"] == "checkout.session.completed"]
    event["is_delivered"] = False
    if fault == "gone at Stripe":
        fake.world.things.pop(session["id"])
    return Announced(buyer, session, event, fault)


def _meets_its_fault(one: Announced, servers: Nursery, workers: Workers) -> bool:
    """Whether the process ended as the fault says."""
    fake = one.buyer.fake
    match one.fault:
        case "never delivered":
            return True
        case "gone at Stripe":
            return announce(fake, one.event) == 200
        case "stripe_after_inbox":
            return _dies_before_answering(one, servers)
    announce(fake, one.event)
    return workers.work_off(one.event["id"], failpoint=one.fault) == -signal.SIGKILL


def _dies_before_answering(one: Announced, servers: Nursery) -> bool:
    raw, header = one.buyer.fake.letter(one.event)
    with servers.doomed(one.fault) as server:
        with httpx.Client(timeout=30, trust_env=False) as client, pytest.raises(httpx.TransportError):
            client.post(f"{server.url}{WEBHOOK}", content=raw, headers={"Stripe-Signature": header})
        died = server.wait() == -signal.SIGKILL
    return died and StripeEvent.objects.filter(pk=one.event["id"]).exists()
