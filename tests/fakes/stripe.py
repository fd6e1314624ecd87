"""The fake Stripe as a test holds it: running, and the settings pointed at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from billing.models import Price
from billing.stripe_settings import StripeSettings
from tests.fakes.stripe_server import SECRET, StripeFake, running_stripe

KEY = "sk_test_that_nobody_may_read"
PRICES = {"pro": "price_pro", "500": "price_500", "1500": "price_1500", "4000": "price_4000"}


def stripe_settings(url: str, **more: object) -> StripeSettings:
    return StripeSettings("stripe", KEY, SECRET, url, PRICES, **more)  # type: ignore[arg-type]  # what a test changes


@pytest.fixture(scope="session")
def stripe_server(database: object) -> Iterator[StripeFake]:
    """One for all tests: a world only grows, and people never meet in it."""
    for name, price_id in PRICES.items():
        Price.objects.filter(plan_id=name, stripe_price_id="").update(stripe_price_id=price_id)
        Price.objects.filter(pack_id=name, stripe_price_id="").update(stripe_price_id=price_id)
    with running_stripe() as fake:
        yield fake


@pytest.fixture
def stripe_fake(stripe_server: StripeFake, settings: Settings) -> Iterator[StripeFake]:
    settings.STRIPE = stripe_settings(stripe_server.url)
    yield stripe_server
    stripe_server.troubles.clear()
    stripe_server.requests.clear()
    stripe_server.world.late_seconds = 0
