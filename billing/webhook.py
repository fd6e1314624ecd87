"""`POST /webhooks/stripe`: verify, write down, answer. The work is the worker's."""

from __future__ import annotations

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from billing import inbox
from billing.errors import BadAnnouncement, BadSignature
from klerai.api import BODY_LIMIT, error_json, not_allowed, not_found_json, too_large_json
from klerai.failpoints import failpoint

logger = structlog.get_logger(__name__)


@csrf_exempt
def stripe_webhook(request: HttpRequest) -> HttpResponse:
    """400 for whatever is not Stripe's and ours; 200 for the rest, also the second time."""
    if request.method != "POST":
        return not_allowed(["POST"])
    if settings.STRIPE.seller == "nobody":
        return not_found_json()
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit() or int(length) > BODY_LIMIT:
        return too_large_json()
    raw = request.read(BODY_LIMIT + 1)
    if len(raw) > BODY_LIMIT:
        return too_large_json()
    try:
        facts = inbox.read(raw, request.headers.get("Stripe-Signature", ""), now=timezone.now())
    except (BadSignature, BadAnnouncement) as error:
        logger.warning("webhook_refused", reason=f"{type(error).__name__}: {error}")
        return error_json("invalid", "This is not an announcement of ours. Nothing was written.", 400, fields={})
    inbox.take_in(facts)
    failpoint("stripe_after_inbox")
    return JsonResponse({"received": True})


urlpatterns = [path("webhooks/stripe", stripe_webhook, name="stripe_webhook")]
