"""Deleting an account that pays for a plan: the plan is cancelled first, or nothing happens at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from billing import inbox, local_checkout, shop
from billing.models import LocalObject, Order, Plan, StripeCustomer, StripeEvent, Subscription
from billing.stripe_settings import StripeSettings, stripe_settings
from klerai.accounts.models import Person
from klerai.env import Environment
from tests.fakes.stripe_server import StripeFake
from tests.people import PASSWORD, make_alice, sign_in
from tests.selling import Buyer

DELETE = "/settings/delete/"
SILENT = StripeSettings("stripe", secret_key="sk_test_x", webhook_secret="whsec_1", api_base="http://127.0.0.1:9")


@pytest.fixture
def test_checkout(settings: Settings) -> Settings:
    settings.LOCAL_MODE = True
    settings.STRIPE = stripe_settings(Environment({}), local=True, secret="a secret of this machine")
    return settings


def paid_for_pro(person: Person, *, is_known: bool) -> str:
    """Their customer. What was paid is known here when its announcements have been applied."""
    shop.start_checkout(person, plan="pro", return_url="http://testserver/billing/")
    local_checkout.pay(Order.objects.get(person_id=person.pk).session_id)
    customer = StripeCustomer.objects.get(pk=person.pk).stripe_id
    if is_known:
        for event in StripeEvent.objects.filter(customer_id=customer):
            inbox.apply(event.pk)
    return customer


def subscription_for(person: Person) -> Subscription:
    StripeCustomer.objects.create(person_id=person.pk, stripe_id=f"cus_{person.pk.hex}")
    now = timezone.now()
    return Subscription.objects.create(
        stripe_id=f"sub_{person.pk.hex}",
        person_id=person.pk,
        plan=Plan.objects.get(pk="pro"),
        status="active",
        started_at=now,
        period_start=now,
        period_end=now + timedelta(days=30),
        paid_until=now + timedelta(days=30),
        applied_at=now,
    )


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "paid a moment ago"])
def test_the_plan_is_cancelled_at_once_and_then_everything_goes(test_checkout: Settings, is_known: bool) -> None:
    alice = make_alice()
    customer = paid_for_pro(alice, is_known=is_known)
    browser, person_id = sign_in(alice), alice.pk
    if is_known:
        assert "is cancelled at once, before anything is deleted" in browser.get(DELETE).content.decode()
    assert browser.post(DELETE, {"password": PASSWORD})["Location"] == "/goodbye/"
    ended = Subscription.objects.get(person_id=person_id)
    assert (ended.status, ended.ended_at is not None) == ("canceled", True)
    assert not Person.objects.filter(pk=person_id).exists()
    assert not StripeCustomer.objects.filter(stripe_id=customer).exists()
    assert not LocalObject.objects.filter(customer_id=customer).exists()


def test_when_stripe_does_not_answer_nothing_is_deleted_and_the_page_says_so(settings: Settings) -> None:
    settings.STRIPE = SILENT
    alice = make_alice()
    subscription = subscription_for(alice)
    page = sign_in(alice).post(DELETE, {"password": PASSWORD})
    assert page.status_code == 422
    assert "because Stripe does not answer. Nothing was deleted. Try again" in page.content.decode()
    subscription.refresh_from_db()
    assert subscription.ended_at is None
    assert Person.objects.filter(pk=alice.pk).exists()


def test_a_plan_of_a_seller_that_is_no_longer_set_up_keeps_the_account(settings: Settings) -> None:
    settings.STRIPE = replace(SILENT, seller="nobody")
    alice = make_alice()
    subscription_for(alice)
    page = sign_in(alice).post(DELETE, {"password": PASSWORD})
    assert page.status_code == 422
    assert "could not be cancelled here. Nothing was deleted." in page.content.decode()
    assert Person.objects.filter(pk=alice.pk).exists()


@pytest.mark.parametrize("wanted", [{"pack": "500"}, {"plan": "pro"}], ids=["pack", "plan"])
def test_a_checkout_that_was_begun_cannot_be_paid_once_its_person_has_left(
    stripe_fake: StripeFake, wanted: dict[str, str]
) -> None:
    gone, stays = Buyer(stripe_fake), Buyer(stripe_fake)
    begun, others = gone.begin(**wanted), stays.begin(**wanted)
    assert sign_in(gone.person).post(DELETE, {"password": PASSWORD})["Location"] == "/goodbye/"
    assert stripe_fake.world.get(begun)["status"] == "expired"
    assert stripe_fake.world.get(others)["status"] == "open"
