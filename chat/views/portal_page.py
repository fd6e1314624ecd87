"""The way to Stripe's portal for mails and banners: made anew at each click, since Stripe's own lasts minutes only."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from billing import shop
from billing.errors import SaleError
from chat.views.billing import return_url, sale_refused
from chat.views.frame import person_of


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def portal(request: HttpRequest) -> HttpResponse:
    """Straight on to the portal, or back to the page of credits with the reason."""
    try:
        return HttpResponseRedirect(shop.open_portal(person_of(request), return_url=return_url()))
    except SaleError as error:
        messages.error(request, sale_refused(error).message)
        return HttpResponseRedirect(reverse("billing"))


urlpatterns = [path("billing/portal/", portal, name="billing_portal")]
