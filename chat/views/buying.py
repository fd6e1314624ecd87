"""The way from a page to the checkout: a plan or a pack is chosen by a button, and Stripe asks for the rest."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from billing import shop
from billing.errors import SaleError
from chat.views.billing import return_url, sale_refused
from chat.views.frame import person_of


@login_required
@require_POST
def buy(request: HttpRequest) -> HttpResponse:
    """On to the checkout, or to the person's credits with the reason."""
    wanted = {name: request.POST[name] for name in ("plan", "pack") if request.POST.get(name)}
    try:
        return HttpResponseRedirect(shop.start_checkout(person_of(request), **wanted, return_url=return_url()))
    except SaleError as error:
        refused = sale_refused(error)
        messages.error(request, " ".join(refused.details.get("fields", {}).get("pack", [])) or refused.message)
        return HttpResponseRedirect(reverse("billing"))


urlpatterns = [path("billing/buy/", buy, name="buy")]
