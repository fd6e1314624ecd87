"""The buttons of the page of credits: to end, keep or change the plan."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from billing import shop
from billing.errors import SaleError
from chat.views.billing import sale_refused
from chat.views.frame import person_of
from klerai.accounts.models import Person


@login_required
@require_POST
def change_plan(request: HttpRequest) -> HttpResponse:
    """Done at once, and said on the page; or refused there, with the reason."""
    try:
        messages.success(
            request, _act(person_of(request), request.POST.get("action", ""), request.POST.get("plan", ""))
        )
    except SaleError as error:
        messages.error(request, sale_refused(error).message)
    return HttpResponseRedirect(reverse("billing"))


def _act(person: Person, action: str, plan: str) -> str:
    match action:
        case "cancel":
            ends = shop.cancel_at_period_end(person)
            day = (ends.cancels_at or ends.period_end).astimezone(person.zone)
            return f"{ends.plan.title} ends on {day:%-d %B}. Until then nothing changes, and your packs stay for good."
        case "keep":
            kept = shop.cancel_at_period_end(person, wanted=False)
            return f"{kept.plan.title} goes on, and renews on {kept.period_end.astimezone(person.zone):%-d %B}."
        case _:
            changed = shop.change_plan(person, plan=plan)
            return f"You are on {changed.plan.title} now. The difference was charged to your card."


urlpatterns = [path("billing/plan/", change_plan, name="change_plan")]
