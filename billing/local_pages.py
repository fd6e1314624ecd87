"""The pages of the test checkout. They exist in local mode only, without a key of Stripe, and for this machine only."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from billing import local_checkout, shop
from billing.local_rows import LocalObject
from billing.stripe_rows import StripeCustomer
from klerai.accounts.addresses import is_loopback
from klerai.accounts.models import Person


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def checkout(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """One order of the person's, to be paid by a card that does not exist."""
    person = _person(request)
    order = shop.order_of(person, order_id)
    session = LocalObject.objects.filter(kind="session", pk=order.session_id).first() if order else None
    if order is None or session is None:
        raise Http404
    if request.method == "POST":
        if request.POST.get("action") == "pay":
            local_checkout.pay(session.pk)
            return HttpResponseRedirect(session.content["success_url"])
        local_checkout.leave(session.pk)
        return HttpResponseRedirect(session.content["cancel_url"])
    item = order.price.plan or order.price.pack
    context = {
        "item": item,
        "dollars": order.price.dollars,
        "is_plan": order.price.plan is not None,
        "is_open": session.content["status"] == "open",
        "back": session.content["cancel_url"],
    }
    return render(request, "local/checkout.html", context)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def portal(request: HttpRequest) -> HttpResponse:
    """The person's subscription, and what Stripe's portal and the passing of time would do to it."""
    person = _person(request)
    if not StripeCustomer.objects.filter(pk=person.pk).exists():
        raise Http404
    subscription = shop.subscription_of(person)
    if request.method == "POST":
        if subscription is not None and subscription.ended_at is None:
            _act(request.POST.get("action", ""), subscription.pk)
        return HttpResponseRedirect(request.get_full_path())
    back = request.GET.get("back", "")
    is_ours = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    context = {"subscription": subscription, "back": back if is_ours else "/billing/"}
    return render(request, "local/portal.html", context)


def _act(action: str, subscription_id: str) -> None:
    match action:
        case "cancel" | "keep":
            local_checkout.cancel(subscription_id, wanted=action == "cancel")
        case "renew" | "fail":
            local_checkout.end_period(subscription_id, is_paid=action == "renew")
        case "recover" | "give_up":
            local_checkout.settle_invoice(subscription_id, is_paid=action == "recover")


def _person(request: HttpRequest) -> Person:
    """Who asks. 404 wherever buying could be real, so that nobody pays with a card that does not exist."""
    is_local = settings.LOCAL_MODE and settings.STRIPE.seller == "local" and is_loopback(request)
    if not is_local or not isinstance(request.user, Person):
        raise Http404
    return request.user


urlpatterns = [
    path("local/checkout/<uuid:order_id>/", checkout, name="local_checkout"),
    path("local/portal/", portal, name="local_portal"),
]
