"""The page of credits: what limits somebody, their plan, what they bought, and where it went."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from billing import credits
from billing.models import Order, Payment, Price
from billing.pricing import Line
from billing.stripe_settings import StripeSettings
from klerai.accounts.models import Person
from tests.credit_people import newcomer, verified
from tests.fakes.stripe_server import StripeFake
from tests.harness.doors import by_session
from tests.people import make_charlie, sign_in
from tests.selling import Buyer
from tests.test_billing_plans import subscribed

PAGES = ("/", "/billing/", "/billing/ledger/", "/settings/", "/knowledge/")


def words(page: HttpResponse) -> str:
    """What a reader sees, in one line."""
    body = re.sub(r"<head>.*?</head>", " ", page.content.decode(), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def read(person: Person, path: str = "/billing/") -> str:
    return words(sign_in(person).get(path))  # type: ignore[arg-type]  # the test client's own class


def spend(person: Person, amount: int, *, now: datetime | None = None) -> uuid.UUID:
    run_id = uuid.uuid4()
    credits.hold(person, run_id=run_id, amount=amount, now=now)
    credits.settle(person, run_id=run_id, lines=[Line("base", None, 1, amount, amount)], now=now)
    return run_id


def on_pro(*, used_before: int, used_today: int, zone: str = "UTC") -> Person:
    """Somebody in the fourth week of a month of Pro."""
    person, now = verified(zone=zone), timezone.now()
    start = now - timedelta(days=24)
    subscribed(person, start=start, now=start)
    for day in range(24):
        if amount := min(150, used_before - 150 * day):
            spend(person, amount, now=start + timedelta(days=day))
        if used_before <= 150 * (day + 1):
            break
    if used_today:
        spend(person, used_today, now=now)
    return person


def press(person: Person, path: str, **fields: str) -> str:
    """What the page says that comes after a button."""
    return words(sign_in(person).post(path, fields, follow=True))  # type: ignore[arg-type]  # as above


def test_both_limits_of_pro_stand_there_and_the_one_that_binds_is_named(stripe_fake: StripeFake) -> None:
    person = on_pro(used_before=2_798, used_today=150)
    credits.grant(person, amount=500, reason="Pack of 500 credits")
    spend(person, 26)
    shown = read(person)
    assert "474 credits left, all from packs" in shown
    assert "Today limits you now 150 of 150 used Resets at 00:00, UTC, in " in shown
    assert "This month limits you from tomorrow 2,948 of 3,000 used, 52 left Resets on " in shown
    assert "Packs 474 of 500 left Never expire." in shown
    assert "Today’s 150 credits are used. Answers now draw on your packs. At 00:00, UTC, in " in shown
    assert "52 more come, not 150: that is what this month still holds." in shown


def test_a_month_that_is_used_up_binds_though_the_day_is_not(stripe_fake: StripeFake) -> None:
    person = on_pro(used_before=2_900, used_today=100)
    shown = read(person)
    assert "0 credits left" in shown
    assert "This month limits you now 3,000 of 3,000 used, 0 left" in shown
    assert "This month’s 3,000 credits are used; the next 3,000 start on " in shown
    assert "more come" not in shown


def test_times_are_those_of_the_persons_zone() -> None:
    person = verified(zone="Asia/Kathmandu")
    shown = read(person)
    assert "Resets at 00:00, Asia/Kathmandu, in " in shown
    assert "Times in Asia/Kathmandu." in shown


def test_what_is_set_aside_for_an_answer_is_said(server: str) -> None:
    person = verified()
    credits.hold(person, run_id=uuid.uuid4(), amount=7)
    assert "7 credits more are set aside for what is being answered now" in read(person)


def test_a_plan_is_bought_cancelled_and_kept_on_the_page(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    assert "Subscribe to Pro Pro is $19 a month: 150 credits a day, at most 3,000 a month" in read(alice.person)
    gone = sign_in(alice.person).post("/billing/buy/", {"plan": "pro"})
    assert gone.status_code == 302
    stripe_fake.world.pay(gone["Location"].rpartition("/")[2])
    alice.hear()
    shown = read(alice.person)
    assert "Plan Pro, $19 a month A day 150 credits A month at most 3,000 Renews " in shown
    assert "Subscribe to" not in shown
    assert "Pro ends on " in press(alice.person, "/billing/plan/", action="cancel")
    assert alice.subscription.cancels_at is not None
    assert "Ends " in read(alice.person)
    assert "Pro goes on, and renews on " in press(alice.person, "/billing/plan/", action="keep")
    assert alice.subscription.cancels_at is None
    stripe_fake.world.end(alice.subscription.pk)
    alice.hear()
    shown = read(alice.person)
    assert "Today stays as it began; from then on it is 50 a day." in shown
    assert "Plan Free A day 50 credits" in shown
    assert "Subscribe to Pro" in shown


def test_buttons_for_what_is_not_there_say_so_and_change_nothing(stripe_fake: StripeFake) -> None:
    alice, charlie = Buyer(stripe_fake), make_charlie()
    alice.buy(plan="pro")
    for action in ("cancel", "keep", "change", "nonsense"):
        shown = press(charlie, "/billing/plan/", action=action, plan="pro")
        assert "there is nothing to manage" in shown or "That is not for sale" in shown or "not accepted" in shown
    assert alice.subscription.cancels_at is None
    for wanted in ({"pack": "501"}, {"plan": "gold"}, {"plan": "pro", "pack": "500"}, {}):
        assert "not for sale" in press(charlie, "/billing/buy/", **wanted)
    assert "You have a subscription already." in press(alice.person, "/billing/buy/", plan="pro")
    assert not Order.objects.filter(person_id=charlie.pk).exists()


@pytest.mark.parametrize("path", ["/billing/buy/", "/billing/plan/"])
def test_buying_needs_a_form_of_our_own(path: str) -> None:
    assert sign_in(verified(), enforce_csrf_checks=True).post(path, {"pack": "500"}).status_code == 403
    assert sign_in(verified()).get(path).status_code == 405
    assert Client().post(path, {"pack": "500"}).status_code == 302


def test_the_page_after_paying_asks_us_and_grants_nothing(stripe_fake: StripeFake) -> None:
    alice, charlie = Buyer(stripe_fake), make_charlie()
    session = alice.begin(pack="500")
    back = f"/billing/?order={alice.order.pk}"
    waiting = sign_in(alice.person).get(back).content.decode()
    assert "data-awaited" in waiting
    assert "js/purchase.js" in waiting
    assert "Your credits arrive in a few seconds" in waiting
    assert alice.balance.pack == 0
    stripe_fake.world.pay(session)
    assert "data-awaited" in sign_in(alice.person).get(back).content.decode()
    alice.hear()
    arrived = sign_in(alice.person).get(back)
    assert "500 credits arrived. 500 credits for $20, bought on " in words(arrived)  # type: ignore[arg-type]
    assert b"data-awaited" not in arrived.content
    for address in (back, "/billing/?order=nonsense", f"/billing/?order={uuid.uuid4()}"):
        assert "arrived" not in read(charlie, address)


def test_a_checkout_that_came_to_nothing_says_so(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    alice.begin(pack="500")
    back = f"/billing/?order={alice.order.pk}"
    told = {
        Order.State.EXPIRED: "Nothing was bought. The checkout for ",
        Order.State.FAILED: "The payment did not go through.",
    }
    for state, said in told.items():
        Order.objects.filter(pk=alice.order.pk).update(state=state)
        assert said in read(alice.person, back)
    Order.objects.filter(pk=alice.order.pk).update(problem="It came to 1 usd.")
    shown = read(alice.person, back)
    assert f"with the number {alice.order.pk}" in shown
    assert "1 usd" not in shown
    long_ago = timezone.now() - timedelta(hours=1)
    Order.objects.filter(pk=alice.order.pk).update(state=Order.State.OPEN, created_at=long_ago)
    assert "Not paid yet." in read(alice.person, back)


def test_each_pack_says_what_is_left_of_it_and_what_went_back(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake, newcomer())
    alice.buy(pack="500")
    credits.grant(alice.person, amount=40, reason="Sorry for Tuesday")
    alice.buy(pack="500")
    spend(alice.person, 510)
    shown = read(alice.person)
    assert "Packs 530 of 540 left" in shown
    assert re.search(r"Sorry for Tuesday \d+ \w+ \d+ 40 30 ", shown)
    second = Payment.objects.filter(person_id=alice.person.pk).latest("order__created_at")
    stripe_fake.world.refund(second.pk, 1_000)
    alice.hear()
    shown = read(alice.person)
    assert "250 went back with a refund or a dispute" in shown
    assert "Packs 280 of 290 left" in shown
    assert f'href="/billing/?order={second.order_id}"' in sign_in(alice.person).get("/billing/").content.decode()


def test_an_open_payment_is_said_on_every_page(stripe_fake: StripeFake) -> None:
    alice, charlie = Buyer(stripe_fake), make_charlie()
    alice.buy(plan="pro")
    browser, other = sign_in(alice.person), sign_in(charlie)
    assert "Your last payment failed" not in words(browser.get("/billing/"))  # type: ignore[arg-type]
    stripe_fake.world.renew(alice.subscription.pk, is_paid=False)
    alice.hear()
    for path in PAGES:
        page = browser.get(path).content.decode()
        assert "Your last payment failed" in page, path
        assert 'href="/billing/portal/"' in page, path
        assert b"Your last payment failed" not in other.get(path).content, path
    shown = read(alice.person)
    assert "Payment open since " in shown
    assert "Renews" not in shown


def test_where_nothing_is_sold_no_button_pretends(settings: Settings) -> None:
    settings.STRIPE = StripeSettings("nobody")
    shown = read(verified())
    assert "Subscribe" not in shown
    assert "Buy" not in shown
    assert "50 credits left" in shown


def test_usage_is_the_same_sum_by_day_by_mode_and_by_tool(server: str) -> None:
    with by_session(server) as alice:
        alice.answer("What is 17.5 % of 2,480?")
        deleted = alice.answer("What is 2 + 2?", mode="quick")
        alice.answer("How do daily credits reset?", mode="grounded")
        spent = 50 - alice.get("/api/billing").json()["balance"]["daily"]
        by_mode, by_tool = (read(alice.person, f"/billing/?usage={name}") for name in ("mode", "tool"))
        assert f"{spent} credits, 3 questions" in by_mode
        assert "Assistant 1 7 " in by_mode
        assert "Quick 1 7 " in by_mode
        assert "Questions themselves 3 15 " in by_tool
        assert "Calculator 2 4 " in by_tool
        for page in (by_mode, by_tool):
            assert f"Total {spent} " in page
        page = alice.get("/billing/")
        assert page.text.count('<rect class="accent"') == 1
        assert 'role="img" aria-label="Credits used on each of the last 14 days' in page.text
        assert f"Total 3 {spent} " in read(alice.person)
        alice.http.delete(f"/api/conversations/{deleted['conversation_id']}")
        assert "Deleted conversations 1 7 " in read(alice.person, "/billing/?usage=mode")
        assert f"{spent} credits, 3 questions" in read(alice.person, "/billing/?usage=nonsense")


def test_days_of_usage_are_the_persons_own_and_end_after_fourteen() -> None:
    person = verified(zone="Pacific/Auckland")
    now = timezone.now()
    credits.grant(person, amount=100, reason="Gift", now=now - timedelta(days=20))
    spend(person, 60, now=now - timedelta(days=15))
    spend(person, 55, now=now - timedelta(days=3))
    spend(person, 5, now=now)
    today = now.astimezone(person.zone)
    shown = read(person)
    assert "60 credits, 2 questions" in shown
    assert f"{today - timedelta(days=3):%-d %B} 1 50 5 55 " in shown
    assert f"{today:%-d %B} 1 5 0 5 " in shown


def test_a_receipt_and_a_purchase_stay_true_when_prices_change(server: str, stripe_fake: StripeFake) -> None:
    """An answer of another price list, and a pack that was bought before it became dearer."""
    with by_session(server) as alice:
        run = alice.answer("What is 17.5 % of 2,480?")
        before = alice.get(f"/api/runs/{run['run_id']}").json()["receipt"]
    old = {
        **before,
        "quote": {"at_least": 4, "at_most": 20},
        "lines": [
            {"item": "base", "ref": "q1", "quantity": 1, "unit_price": 4, "credits": 4},
            {"item": "tool", "ref": "q1-t1", "quantity": 1, "unit_price": 3, "credits": 3, "note": "calculator"},
        ],
    }
    alice.person.runs.filter(run_id=run["run_id"]).update(receipt=old)
    with by_session(server, alice.person) as again:
        assert again.get(f"/api/runs/{run['run_id']}").json()["receipt"] == old
        shown = read(alice.person, f"/billing/receipts/{run['run_id']}/")
    assert "quoted: from 4, at most 20" in shown
    assert "Question q1 1 4 4" in shown
    assert "Calculator q1-t1 1 3 3" in shown
    assert "Total 7" in shown
    buyer = Buyer(stripe_fake, alice.person)
    buyer.buy(pack="500")
    dearer = Price.objects.create(pack_id="500", cents=2_500, starts_on=datetime.now(UTC).date())
    try:
        assert "500 credits $25 5.0 ¢ a credit" in read(alice.person)
        assert "500 credits for $20, bought on " in read(alice.person, f"/billing/?order={buyer.order.pk}")
    finally:
        dearer.delete()
