"""What the settings say about selling: by Stripe, by the test checkout of local mode, or not at all."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from klerai.env import BadSetting, Environment

Seller = Literal["stripe", "local", "nobody"]
API_BASE = "https://api.stripe.com"
PAGES = ("https://checkout.stripe.com", "https://billing.stripe.com")


@dataclass(frozen=True, slots=True)
class StripeSettings:
    """`prices` names Stripe's price ids by plan or pack, for those that have none in the admin."""

    seller: Seller
    secret_key: str = field(default="", repr=False)
    webhook_secret: str = field(default="", repr=False)
    api_base: str = ""
    prices: Mapping[str, str] = field(default_factory=dict)
    with_tax: bool = False

    @property
    def is_live(self) -> bool:
        """Whether money moves: Stripe marks the keys, and everything made with them."""
        return "_live_" in self.secret_key

    @property
    def pages(self) -> tuple[str, ...]:
        """Where a form of ours may lead to: also to a stand-in for Stripe, which has its pages beside its API."""
        if self.seller != "stripe":
            return ()
        return PAGES if self.api_base == API_BASE else (*PAGES, self.api_base)


def stripe_settings(env: Environment, *, local: bool, secret: str) -> StripeSettings:
    """`secret` signs the announcements of the test checkout, which exists in local mode without a key only.

    Raises BadSetting for a key without its webhook secret: whoever knew the address could give themselves credits.
    """
    key = env.secret("STRIPE_SECRET_KEY")
    if not key:
        return StripeSettings("local", webhook_secret=_local_secret(secret)) if local else StripeSettings("nobody")
    if not key.startswith(("sk_test_", "sk_live_", "rk_test_", "rk_live_")):
        raise BadSetting("STRIPE_SECRET_KEY", "is not a secret key of Stripe; these begin with sk_test_ or sk_live_.")
    webhook_secret = env.secret("STRIPE_WEBHOOK_SECRET")
    if not webhook_secret:
        raise BadSetting(
            "STRIPE_WEBHOOK_SECRET",
            "is missing, and STRIPE_SECRET_KEY is set. Without it nobody could tell Stripe's announcements from forged "
            "ones. Copy it from the webhook endpoint in Stripe's dashboard.",
        )
    if not webhook_secret.startswith("whsec_"):
        raise BadSetting("STRIPE_WEBHOOK_SECRET", "is not a webhook secret of Stripe; these begin with whsec_.")
    return StripeSettings(
        "stripe",
        secret_key=key,
        webhook_secret=webhook_secret,
        api_base=env.url("STRIPE_API_BASE", API_BASE),
        prices=_prices(env.words("STRIPE_PRICES")),
        with_tax=env.flag("STRIPE_TAX"),
    )


def _prices(words: list[str]) -> dict[str, str]:
    named = dict(word.partition("=")[::2] for word in words)
    if not all(name and price.startswith("price_") for name, price in named.items()):
        raise BadSetting(
            "STRIPE_PRICES", "must name a price id for each plan or pack, such as pro=price_1A,500=price_2B."
        )
    return named


def _local_secret(secret: str) -> str:
    return "whsec_" + hmac.new(secret.encode(), b"test checkout", hashlib.sha256).hexdigest()
