"""What `manage.py check` says about selling."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register


@register()
def selling(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """The settings refuse the worst themselves; this finds what they could have been changed into since."""
    stripe = settings.STRIPE
    found: list[CheckMessage] = []
    if stripe.seller == "local" and not settings.LOCAL_MODE:
        found.append(
            Error("The test checkout is on outside local mode: anybody could buy without paying.", id="billing.E001")
        )
    if stripe.seller == "stripe" and not stripe.webhook_secret:
        found.append(Error("STRIPE_WEBHOOK_SECRET is missing, and Stripe is on.", id="billing.E002"))
    if stripe.is_live and not settings.IS_HTTPS:
        found.append(
            Warning("STRIPE_SECRET_KEY is a live key, and KLERAI_BASE_URL is not https://.", id="billing.W001")
        )
    return found
