"""Buying by Stripe: a checkout begins at ours, is paid at theirs, and counts when they have said so."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from pytest_django import Settings

from billing import shop
from billing.models import Order, Payment, StripeCustomer
from billing.stripe_settings import StripeSettings
from tests.fakes.stripe import stripe_settings
from tests.fakes.stripe_api import read_form
from tests.fakes.stripe_server import StripeFake, Trouble
from tests.people import make_charlie
from tests.selling import Buyer


def test_a_pack_is_granted_once_stripe_says_it_is_paid(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    session = stripe_fake.world.pay(alice.begin(pack="500"))
    assert (alice.balance.pack, alice.order.state) == (0, Order.State.OPEN)
    alice.hear()
    assert (alice.balance.pack, alice.order.state) == (500, Order.State.PAID)
    (row, *_) = alice.get("/api/billing/ledger")["results"]
    assert (row["kind"], row["pack"], row["reason"]) == ("grant", 500, "Pack of 500 credits")
    payment = Payment.objects.get(person_id=alice.person.pk)
    assert payment.payment_intent == session["payment_intent"]
    assert payment.charge == stripe_fake.world.get(payment.payment_intent)["latest_charge"]


def test_the_checkout_names_the_order_the_customer_and_the_price_and_is_made_once(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    session = stripe_fake.world.get(alice.begin(pack="1500"))
    order = alice.order
    assert session["client_reference_id"] == str(order.pk)
    assert session["customer"] == alice.customer
    assert session["line_items"]["data"][0]["price"]["id"] == "price_1500"
    assert session["success_url"].endswith(f"/billing/?order={order.pk}")
    sent = stripe_fake.requests[-1]
    assert sent.headers["idempotency-key"] == str(order.pk)
    assert read_form(sent.body)["invoice_creation"] == {"enabled": "true"}
    alice.begin(pack="500")
    assert [seen.path for seen in stripe_fake.requests].count("/v1/customers") == 1


def test_a_subscription_makes_pro_of_free_and_tops_the_day_up(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    assert (alice.plan, alice.balance.daily) == ("free", 50)
    alice.buy(plan="pro")
    assert (alice.plan, alice.balance.daily) == ("pro", 150)
    billing = alice.get("/api/billing")
    assert (billing["plan"], billing["status"]) == ("pro", "active")
    assert [(limit["name"], limit["used"], limit["max"]) for limit in billing["limits"]] == [
        ("daily", 0, 150),
        ("period", 0, 3_000),
    ]


def test_who_has_a_subscription_is_not_sold_another(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    alice.buy(plan="pro")
    refused = alice.post("/api/billing/checkout", {"plan": "pro"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "invalid")
    assert "subscription" in refused.json()["error"]["message"]


def test_the_portal_opens_for_who_has_bought_and_for_nobody_else(stripe_fake: StripeFake) -> None:
    alice, charlie = Buyer(stripe_fake), Buyer(stripe_fake, make_charlie())
    alice.buy(pack="500")
    url = alice.post("/api/billing/portal", {}).json()["url"]
    assert url == f"{stripe_fake.url}/portal/{alice.customer}"
    assert charlie.post("/api/billing/portal", {}).status_code == 404


def test_an_order_is_seen_by_who_made_it(stripe_fake: StripeFake) -> None:
    alice, charlie = Buyer(stripe_fake), make_charlie()
    alice.begin(pack="500")
    assert shop.order_of(alice.person, alice.order.pk) == alice.order
    assert shop.order_of(charlie, alice.order.pk) is None
    assert shop.order_of(alice.person, uuid.uuid4()) is None


@pytest.mark.parametrize(
    "wanted",
    [
        *({}, {"pack": "501"}, {"pack": "500", "plan": "pro"}, {"plan": "free"}, {"plan": ""}, {"pack": True}),
        *({"pack": ["500"]}, {"pack": -1}, {"pack": 2**63}, {"pack": 1e308}, {"pack": "٥٠٠"}, {"pack": "5\x0000"}, []),
    ],
)
def test_what_is_not_for_sale_is_refused_and_nothing_is_begun(stripe_fake: StripeFake, wanted: object) -> None:
    alice = Buyer(stripe_fake)
    refused = alice.post("/api/billing/checkout", wanted)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid"), refused.content
    assert not Order.objects.filter(person_id=alice.person.pk).exists()
    assert not stripe_fake.requests


@pytest.mark.thorough
def test_stripe_being_away_costs_nothing_and_says_so(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    alice.begin(pack="500")
    stripe_fake.troubles += [Trouble(500)] * 3
    refused = alice.post("/api/billing/checkout", {"pack": "500"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "capacity")
    assert "Nothing was charged" in refused.json()["error"]["message"]
    assert alice.order.state == Order.State.FAILED
    stripe_fake.troubles += [Trouble(500)] * 2  # twice it is asked again
    alice.begin(pack="500")


def test_a_late_payment_is_granted_when_it_arrives_and_not_when_it_does_not(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    for arrives, pack in ((True, 500), (False, 500)):
        session = stripe_fake.world.pay(alice.begin(pack="500"), is_late=True)
        before = alice.balance.pack
        alice.hear()
        assert alice.balance.pack == before
        stripe_fake.world.settle(session["id"], arrives=arrives)
        alice.hear()
        assert alice.balance.pack == pack
    assert alice.order.state == Order.State.FAILED


def test_a_checkout_that_was_left_is_closed(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    stripe_fake.world.expire(alice.begin(pack="500"))
    alice.hear()
    assert (alice.order.state, alice.balance.pack) == (Order.State.EXPIRED, 0)


def test_taxes_are_collected_when_the_operator_wants_it(stripe_fake: StripeFake, settings: Settings) -> None:
    settings.STRIPE = stripe_settings(stripe_fake.url, with_tax=True)
    Buyer(stripe_fake).begin(pack="500")
    sent = read_form(stripe_fake.requests[-1].body)
    assert (sent["automatic_tax"], sent["tax_id_collection"]) == ({"enabled": "true"}, {"enabled": "true"})


def test_a_server_without_stripe_sells_nothing(stripe_fake: StripeFake, settings: Settings) -> None:
    settings.STRIPE = StripeSettings("nobody")
    alice = Buyer(stripe_fake)
    refused = alice.post("/api/billing/checkout", {"pack": "500"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unsupported")
    assert Client().post("/webhooks/stripe").status_code == 404


def test_what_is_offered_says_its_price_and_what_a_credit_comes_to() -> None:
    assert [(offer.slug, offer.cents, offer.cents_per_credit) for offer in shop.packs_offered()] == [
        ("500", 2_000, 4.0),
        ("1500", 5_400, 3.6),
        ("4000", 12_800, 3.2),
    ]
    free, pro = shop.plans_offered()
    assert (free.name, free.cents, free.daily_credits) == ("free", 0, 50)
    assert (pro.name, pro.cents, pro.daily_credits, pro.period_credits) == ("pro", 1_900, 150, 3_000)
    assert pro.cents_per_credit == pytest.approx(0.633, abs=0.001)


def test_one_person_is_one_customer_however_often_it_is_asked_at_once(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    alice.begin(pack="500")
    first = alice.customer
    StripeCustomer.objects.filter(pk=alice.person.pk).delete()  # as if the answer had been lost
    alice.begin(pack="500")
    assert alice.customer == first
