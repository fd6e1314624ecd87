"""The test checkout: the pages of local mode, through the same inbox, and nowhere but on this machine."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from types import ModuleType
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import clear_url_caches, include, path
from pytest_django import Settings

from billing import credits, inbox, local_pages, shop
from billing.models import LocalObject, StripeEvent
from billing.plans import plan_of
from billing.stripe_settings import StripeSettings, stripe_settings
from klerai import urls
from klerai.accounts.models import Person
from klerai.env import Environment
from tests.people import make_charlie, make_person, sign_in


@pytest.fixture
def local_mode(settings: Settings) -> Iterator[Settings]:
    """The product as `up` runs it on this machine, without a key of Stripe."""
    with_pages = ModuleType("tests.with_local_pages")
    with_pages.urlpatterns = [*urls.urlpatterns, path("", include(local_pages.urlpatterns))]  # type: ignore[attr-defined]
    for name in ("handler400", "handler403", "handler404", "handler500"):
        setattr(with_pages, name, getattr(urls, name))
    settings.LOCAL_MODE = True
    settings.STRIPE = stripe_settings(Environment({}), local=True, secret="a secret of this machine")
    settings.ROOT_URLCONF = with_pages
    clear_url_caches()
    yield settings
    clear_url_caches()


def where(url: str) -> str:
    """The path, since a test's server has another name than the settings know."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def work_off(person: Person) -> None:
    """What the worker does with what was announced of this person."""
    customer = f"cus_local_{person.pk.hex}"
    for event in StripeEvent.objects.filter(customer_id=customer, state="received").order_by("received_at"):
        inbox.apply(event.pk)


def buy(person: Person, **wanted: str) -> Client:
    browser = sign_in(person)
    checkout = where(shop.start_checkout(person, **wanted, return_url="http://testserver/billing/"))
    page = browser.get(checkout).content.decode()
    assert "no card is asked for and no money moves" in page
    paid = browser.post(checkout, {"action": "pay"})
    assert (paid.status_code, where(paid["Location"]).startswith("/billing/?order=")) == (302, True)
    work_off(person)
    return browser


def test_a_pack_is_bought_by_a_click_and_arrives_through_the_inbox(local_mode: Settings) -> None:
    alice = make_person()
    browser = sign_in(alice)
    checkout = where(shop.start_checkout(alice, pack="500", return_url="http://testserver/billing/"))
    assert b"Pay $20 with the test card" in browser.get(checkout).content
    browser.post(checkout, {"action": "pay"})
    assert credits.balance_of(alice).pack == 0  # the page grants nothing
    work_off(alice)
    assert credits.balance_of(alice).pack == 500
    browser.post(checkout, {"action": "pay"})
    work_off(alice)
    assert credits.balance_of(alice).pack == 500
    assert b"This checkout is over" in browser.get(checkout).content


def test_leaving_buys_nothing(local_mode: Settings) -> None:
    alice = make_person()
    checkout = where(shop.start_checkout(alice, pack="500", return_url="http://testserver/billing/"))
    left = sign_in(alice).post(checkout, {"action": "leave"})
    assert where(left["Location"]) == "/billing/"
    work_off(alice)
    assert credits.balance_of(alice).pack == 0


def test_a_subscription_lives_through_the_portal_to_its_end(local_mode: Settings) -> None:
    alice = make_person()
    browser = buy(alice, plan="pro")
    assert (plan_of(alice).name, credits.balance_of(alice).daily) == ("pro", 150)
    portal = where(shop.open_portal(alice, return_url="http://testserver/billing/"))

    def press(action: str) -> str:
        assert action.encode() in browser.get(portal).content
        assert browser.post(portal, {"action": action}).status_code == 302
        work_off(alice)
        return shop.status_of(alice)

    assert press("renew") == "active"
    assert press("fail") == "past_due"
    assert shop.banner_for(alice) is not None
    assert press("recover") == "active"
    press("cancel")
    press("keep")
    press("cancel")
    assert plan_of(alice).name == "pro"
    press("renew")
    assert (plan_of(alice).name, shop.status_of(alice)) == ("free", "active")
    assert b"You have no subscription" in browser.get(portal).content
    buy(alice, plan="pro")
    press("fail")
    press("give_up")
    assert plan_of(alice).name == "free"


def test_the_checkout_of_somebody_else_does_not_exist(local_mode: Settings) -> None:
    alice, charlie = make_person(), make_charlie()
    checkout = where(shop.start_checkout(alice, pack="500", return_url="http://testserver/billing/"))
    stranger = sign_in(charlie)
    unknown = f"/local/checkout/{uuid.uuid4()}/"
    for address in (checkout, unknown, "/local/portal/"):
        assert stranger.get(address).status_code == stranger.post(address, {"action": "pay"}).status_code == 404
    assert Client().post(checkout, {"action": "pay"}).status_code == 302  # to the login
    work_off(alice)
    assert credits.balance_of(alice).pack == 0


@pytest.mark.parametrize(
    ("is_local", "seller", "headers"),
    [
        (False, "local", {}),
        (True, "stripe", {}),
        (True, "nobody", {}),
        (True, "local", {"X-Forwarded-For": "203.0.113.9"}),
    ],
)
def test_the_test_checkout_exists_nowhere_else(
    local_mode: Settings, is_local: bool, seller: str, headers: dict[str, str]
) -> None:
    alice = make_person()
    checkout = where(shop.start_checkout(alice, pack="500", return_url="http://testserver/billing/"))
    browser = sign_in(alice)
    local_mode.LOCAL_MODE = is_local
    local_mode.STRIPE = StripeSettings(seller, webhook_secret="whsec_1")  # type: ignore[arg-type]  # each of the three
    for address in (checkout, "/local/portal/"):
        assert browser.get(address, headers=headers).status_code == 404
        assert browser.post(address, {"action": "pay"}, headers=headers).status_code == 404
    assert LocalObject.objects.get(content__client_reference_id=str(shop_order(checkout))).content["status"] == "open"


def shop_order(checkout: str) -> uuid.UUID:
    return uuid.UUID(checkout.strip("/").rpartition("/")[2])


def test_outside_local_mode_its_addresses_are_not_even_there() -> None:
    alice = make_person()
    for address in ("/local/portal/", f"/local/checkout/{uuid.uuid4()}/"):
        assert sign_in(alice).get(address).status_code == 404
    assert not any("local/" in str(pattern.pattern) for pattern in urls.urlpatterns)


def test_a_key_of_stripe_puts_the_test_checkout_away() -> None:
    variables = {"STRIPE_SECRET_KEY": "sk_test_1", "STRIPE_WEBHOOK_SECRET": "whsec_1"}
    assert stripe_settings(Environment(variables), local=True, secret="x").seller == "stripe"
    assert stripe_settings(Environment({}), local=True, secret="x").seller == "local"
    assert stripe_settings(Environment({}), local=False, secret="x").seller == "nobody"
    one, other = (stripe_settings(Environment({}), local=True, secret=secret).webhook_secret for secret in "xy")
    assert one != other
