"""BW3: what is not Stripe's, not ours or not now is refused before anything is written."""

from __future__ import annotations

import copy
import io
import json
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client
from pytest_django import Settings

from billing import signature
from billing.errors import BadSignature
from billing.models import Order, Payment, StripeEvent, Subscription
from billing.stripe_settings import StripeSettings, stripe_settings
from klerai.env import BadSetting, Environment
from tests.fakes import stripe_objects as objects
from tests.fakes.stripe_server import SECRET, StripeFake
from tests.people import make_charlie
from tests.processes import REPOSITORY
from tests.selling import WEBHOOK, Buyer, announce, post, work_off
from tests.serving import command_environment

Letter = tuple[bytes, str | None]
Forgery = Callable[[StripeFake, dict[str, Any]], Letter]


def content(fake: StripeFake, event: dict[str, Any], **changes: Any) -> dict[str, Any]:
    shown = {name: value for name, value in event.items() if name != "is_delivered"}
    return {**copy.deepcopy(shown), "api_version": fake.version, **changes}


def with_header(change: Callable[[str], str | None]) -> Forgery:
    def forge(fake: StripeFake, event: dict[str, Any]) -> Letter:
        raw, header = fake.letter(event)
        return raw, change(header)

    return forge


def at(seconds: int) -> Forgery:
    return lambda fake, event: fake.signed(content(fake, event), at=int(time.time()) + seconds)


def with_secret(secret: str) -> Forgery:
    return lambda fake, event: fake.signed(content(fake, event), secret=secret)


def saying(**changes: Any) -> Forgery:
    return lambda fake, event: fake.signed(content(fake, event, **changes))


def with_body(change: Callable[[bytes], bytes]) -> Forgery:
    def forge(fake: StripeFake, event: dict[str, Any]) -> Letter:
        raw, header = fake.letter(event)
        return change(raw), header

    return forge


def of_body(body: str) -> Forgery:
    def forge(fake: StripeFake, event: dict[str, Any]) -> Letter:
        stamp = datetime.now(UTC)
        return body.encode(), signature.signed(body.encode(), secret=fake.secret, now=stamp)

    return forge


FORGERIES: dict[str, Forgery] = {
    "without a signature": with_header(lambda header: None),
    "with an empty signature": with_header(lambda header: ""),
    "with nonsense for a signature": with_header(lambda header: "t=now,v1=yes"),
    "with two times": with_header(lambda header: f"t=1,{header}"),
    "without a v1": with_header(lambda header: header.replace("v1=", "v0=")),
    "with a letter changed": with_header(lambda header: header[:-1] + ("0" if header[-1] != "0" else "1")),
    "with a signature beyond ASCII": with_header(lambda header: header[:-1] + "\u00e9"),
    "with another time": with_header(lambda header: f"t={int(time.time()) - 1},{header.partition(',')[2]}"),
    "from six minutes ago": at(-360),
    "from six minutes ahead": at(360),
    "with another secret": with_secret("whsec_of_somebody_else"),
    "with an empty secret": with_secret(""),
    "written again": with_body(lambda raw: json.dumps(json.loads(raw), indent=1).encode()),
    "with another amount": with_body(lambda raw: raw.replace(b"2000", b"9000")),
    "with a byte more": with_body(lambda raw: raw + b"\n"),
    "of the live mode": saying(livemode=True),
    "of no mode": saying(livemode="false"),
    "of another account": saying(account="acct_other"),
    "without an object": saying(data={}),
    "with a number for an id": saying(id=17),
    "with an endless id": saying(id="evt_" + "x" * 200),
    "with a line break in its id": saying(id="evt_1\n2"),
    "with a time that never was": saying(created=1e308),
    "of no form": of_body("[]"),
    "of no words": of_body("null"),
    "of no JSON": of_body("{"),
    "too deep": of_body("[" * 100_000),
    "a thin one": of_body('{"object": "v2.core.event", "id": "evt_1", "livemode": false, "created": "2026"}'),
}


@pytest.mark.scenario
@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forged_announcement_is_refused_and_nothing_is_written(stripe_fake: StripeFake, forgery: Forgery) -> None:
    alice = Buyer(stripe_fake)
    stripe_fake.world.pay(alice.begin(pack="500"))
    events = alice.news()
    before = StripeEvent.objects.count()
    for event in events:
        raw, header = forgery(stripe_fake, event)
        if raw != stripe_fake.letter(event)[0] or header != stripe_fake.letter(event)[1]:
            assert post(raw, header) == 400
    assert StripeEvent.objects.count() == before
    assert (alice.balance.pack, alice.order.state) == (0, Order.State.OPEN)
    assert {announce(stripe_fake, event) for event in events} == {200}  # the true ones are still taken
    work_off(events)
    assert alice.balance.pack == 500


@pytest.mark.scenario
@pytest.mark.parametrize("size", [256_001, 10_000_000, 2**62])
def test_a_large_body_is_refused_before_it_is_read(stripe_fake: StripeFake, size: int) -> None:
    class Unread(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise AssertionError("it was read")

    answer = Client().generic("POST", WEBHOOK, **{"wsgi.input": Unread(), "CONTENT_LENGTH": str(size)})
    assert answer.status_code == 413


@pytest.mark.parametrize("method", ["get", "put", "delete", "patch"])
def test_only_posts_are_announcements(stripe_fake: StripeFake, method: str) -> None:
    assert getattr(Client(), method)(WEBHOOK).status_code == 405


def test_a_signature_of_the_secret_before_is_taken_while_both_are_sent(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    stripe_fake.world.pay(alice.begin(pack="500"))
    for event in alice.news():
        raw, header = stripe_fake.letter(event)
        stamp, _, true = header.partition(",")
        assert post(raw, f"{stamp},v1={'0' * 64},{true},v0=old") == 200


def test_an_announcement_is_taken_in_once(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    stripe_fake.world.pay(alice.begin(pack="500"))
    events = alice.news()
    for _ in range(3):
        assert {announce(stripe_fake, event) for event in events} == {200}
        work_off(events)
    assert StripeEvent.objects.filter(pk__in=[event["id"] for event in events]).count() == len(events)
    assert alice.balance.pack == 500


def forged_checkout(fake: StripeFake, buyer: Buyer, **changes: Any) -> None:
    """A checkout at Stripe that is truly paid and truly announced, but is not what the order says."""
    session_id = buyer.begin(pack="500")
    session = fake.world.get(session_id)
    session |= changes
    fake.world.pay(session_id)
    buyer.hear()


@pytest.mark.scenario
@pytest.mark.parametrize(
    "changes",
    [
        {"amount_subtotal": 1},
        {"amount_subtotal": 200_000},
        {"currency": "jpy"},
        {"total_details": {"amount_discount": 1_999}},
        {"line_items": {"data": [{"price": {"id": "price_unknown"}, "quantity": 1}]}},
        {"line_items": {"data": [{"price": {"id": "price_4000"}, "quantity": 1}]}},
        {"line_items": {"data": [{"price": {"id": "price_500"}, "quantity": 2}]}},
        {"line_items": {"data": []}},
        {"client_reference_id": "not an order"},
        {"client_reference_id": "00000000-0000-4000-8000-000000000000"},
        {"client_reference_id": None},
    ],
    ids=str,
)
def test_a_payment_that_is_not_what_was_ordered_grants_nothing(
    stripe_fake: StripeFake, changes: dict[str, Any]
) -> None:
    alice = Buyer(stripe_fake)
    forged_checkout(stripe_fake, alice, **changes)
    assert alice.balance.pack == 0
    assert not Payment.objects.filter(person_id=alice.person.pk).exists()


def test_the_order_of_somebody_else_is_not_paid_by_ones_own_checkout(stripe_fake: StripeFake) -> None:
    alice, charlie = Buyer(stripe_fake), Buyer(stripe_fake, make_charlie())
    charlie.begin(pack="500")
    forged_checkout(stripe_fake, alice, client_reference_id=str(charlie.order.pk))
    assert (alice.balance.pack, charlie.balance.pack, charlie.order.state) == (0, 0, Order.State.OPEN)


def test_a_subscription_of_an_unknown_price_gives_no_plan(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    session = stripe_fake.world.get(alice.begin(plan="pro"))
    stripe_fake.world.add_price("price_of_another_product", 100, interval="month")
    session["line_items"]["data"][0]["price"] = stripe_fake.world.get("price_of_another_product")
    stripe_fake.world.pay(session["id"])
    assert {event.state for event in alice.hear()} <= {"skipped", "failed"}
    assert (alice.plan, Subscription.objects.filter(person_id=alice.person.pk).exists()) == ("free", False)


def test_things_of_nobody_here_and_things_that_are_gone_are_skipped(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    session = stripe_fake.world.pay(alice.begin(pack="500"))
    events = alice.news()
    stranger = {**copy.deepcopy(session), "id": "cs_test_of_nobody", "customer": "cus_nobody"}
    stripe_fake.world.announce("checkout.session.completed", stripe_fake.world.keep(stranger))
    strange = stripe_fake.world.events[-1]
    stripe_fake.world.things.pop(session["id"])
    for event in [*events, strange]:
        assert announce(stripe_fake, event) == 200
    assert {event.state for event in work_off([*events, strange])} == {"skipped"}
    assert alice.balance.pack == 0


@pytest.mark.parametrize("version", [objects.API_VERSION, objects.OLDER_VERSION])
def test_an_endpoint_of_either_version_of_the_api_is_understood(
    stripe_fake: StripeFake, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripe_fake, "version", version)
    alice = Buyer(stripe_fake)
    session = alice.buy(plan="pro")
    stripe_fake.world.renew(session["subscription"], is_paid=False)
    heard = alice.hear()
    assert {event.object_type for event in heard} >= {"subscription"}
    assert {event.api_version for event in heard} == {version}
    assert alice.subscription.status == "past_due"


def test_our_signature_is_stripes_signature(stripe_fake: StripeFake) -> None:
    raw, header = stripe_fake.signed({"object": "event"})
    now = datetime.now(UTC)
    signature.check(raw, header, secret=SECRET, now=now)
    assert (
        signature.signed(raw, secret=SECRET, now=now).partition("v1=")[2]
        == (stripe_fake.signed({"object": "event"}, at=int(now.timestamp()))[1].partition("v1=")[2])
    )
    with pytest.raises(BadSignature):
        signature.check(raw, header, secret="", now=now)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"STRIPE_SECRET_KEY": "sk_test_1"}, "STRIPE_WEBHOOK_SECRET"),
        ({"STRIPE_SECRET_KEY": "sk_test_1", "STRIPE_WEBHOOK_SECRET": "  "}, "STRIPE_WEBHOOK_SECRET"),
        ({"STRIPE_SECRET_KEY": "sk_test_1", "STRIPE_WEBHOOK_SECRET": "secret"}, "STRIPE_WEBHOOK_SECRET"),
        ({"STRIPE_SECRET_KEY": "pk_test_1", "STRIPE_WEBHOOK_SECRET": "whsec_1"}, "STRIPE_SECRET_KEY"),
        (
            {"STRIPE_SECRET_KEY": "sk_test_1", "STRIPE_WEBHOOK_SECRET": "whsec_1", "STRIPE_PRICES": "pro"},
            "STRIPE_PRICES",
        ),
    ],
)
def test_stripe_without_its_secret_or_with_nonsense_refuses_to_start(variables: dict[str, str], named: str) -> None:
    with pytest.raises(BadSetting, match=named):
        stripe_settings(Environment(variables), local=False, secret="x")


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    folder: Path = tmp_path_factory.mktemp("refused")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = command_environment(STRIPE_SECRET_KEY="sk_test_1", KLERAI_DATA_DIR=str(folder))
        command = ["python", "manage.py", *arguments]
        return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize("command", ["check", "serve", "worker"])
def test_the_process_itself_refuses_to_start(
    refused: Callable[..., subprocess.CompletedProcess[str]], command: str
) -> None:
    done = refused(command)
    assert done.returncode == 1
    assert "STRIPE_WEBHOOK_SECRET is missing" in done.stderr


def test_the_test_checkout_outside_local_mode_is_found_by_the_check(settings: Settings) -> None:
    settings.LOCAL_MODE, settings.STRIPE = False, StripeSettings("local", webhook_secret="whsec_1")
    assert "billing.E001" in {message.id for message in run_checks()}
    settings.STRIPE = StripeSettings("nobody")
    assert "billing.E001" not in {message.id for message in run_checks()}


def test_no_secret_of_stripe_stands_in_a_repr() -> None:
    shown = repr(StripeSettings("stripe", "sk_test_hidden", "whsec_hidden"))
    assert "hidden" not in shown
