"""Sales in the admin: dated prices, purchases found from either side, announcements replayed, nothing past edited."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from billing.models import Order, Pack, Payment, Price, Reconciliation, StripeEvent
from chat.models import McpServer
from klerai.accounts.models import Person
from tests.account_rows import SECRET, make_belongings
from tests.people import make_alice, make_charlie, make_person, sign_in

LEDGER = "/admin/billing/transaction/"


@pytest.fixture
def boss(settings: Settings) -> Client:
    settings.LOCAL_MODE = True  # where staff need no second factor
    return sign_in(make_person("boss", is_admin=True))


def text_of(boss: Client, path: str, **query: str) -> str:
    page = boss.get(path, query)
    assert page.status_code == 200, path
    return str(page.content.decode())


@pytest.mark.thorough
@pytest.mark.parametrize("model", admin.site._registry, ids=lambda model: model._meta.label)
def test_every_page_of_the_admin_opens_keeps_the_policy_and_shows_no_words(boss: Client, model: type) -> None:
    alice = make_alice()
    make_belongings(alice)
    Reconciliation.objects.create(started_at=timezone.now())
    McpServer.objects.get_or_create(name="books", defaults={"url": "https://example.org/mcp"})
    label = f"{model._meta.app_label}_{model._meta.model_name}"
    addresses = [reverse(f"admin:{label}_changelist")]
    row = model._default_manager.order_by("-pk").first()
    if row is not None:
        addresses.append(reverse(f"admin:{label}_change", args=[row.pk]))
    for address in addresses:
        page = boss.get(address)
        assert page.status_code == 200, address
        assert "default-src 'none'" in page["Content-Security-Policy"]
        assert "unsafe" not in page["Content-Security-Policy"]
        body = page.content.decode()
        assert SECRET not in body
        assert not re.search(
            r"<script(?![^>]*(?:src=|nonce=|type=\"application/json\"))[^>]*>|<[^<>]*\son[a-z]+=", body
        )
    assert boss.get(reverse(f"admin:{label}_add")).status_code in (200, 403)


def test_a_ledger_is_found_from_a_payment_and_back(boss: Client) -> None:
    alice, charlie = make_alice(), make_charlie()
    hers = make_belongings(alice)
    make_belongings(charlie)
    Payment.objects.filter(person_id=alice.pk).update(charge=f"ch_{alice.pk.hex}")
    payment, order = Payment.objects.get(person_id=alice.pk), Order.objects.get(person_id=alice.pk)
    terms = (
        payment.pk,
        payment.charge,
        str(order.pk),
        alice.email,
        str(alice.pk),
        f"cus_{alice.pk.hex}",
        str(hers.live.pk),
    )
    for term in terms:
        page = text_of(boss, LEDGER, q=term)
        assert alice.email in page
        assert charlie.email not in page
    assert f'href="/admin/billing/payment/?q={alice.pk}"' in page
    payments = text_of(boss, "/admin/billing/payment/", q=str(alice.pk))
    assert payment.pk in payments
    assert f'href="{LEDGER}?q={alice.pk}"' in payments
    assert alice.email not in text_of(boss, LEDGER, q=str(uuid.uuid4()))


def test_a_price_is_changed_by_a_new_row_and_the_past_stays(boss: Client) -> None:
    pack = Pack.objects.create(slug=f"p{uuid.uuid4().hex[:8]}", title="Try", credits=100, is_offered=False)
    today = timezone.now().date()
    asked = {"pack": pack.pk, "plan": "", "cents": "500", "stripe_price_id": ""}
    add = "/admin/billing/price/add/"
    assert re.search(f'<a href="{add}[^"]*" class="addlink"', text_of(boss, "/admin/billing/price/"))
    late = boss.post(add, {**asked, "starts_on": str(today - timedelta(days=1))})
    assert "what was asked for in the past stays true" in late.content.decode()
    assert boss.post(add, {**asked, "starts_on": str(today)}).status_code == 302
    assert boss.post(add, {**asked, "cents": "900", "starts_on": str(today + timedelta(days=5))}).status_code == 302
    later, now = Price.objects.filter(pack=pack)
    for price, status in ((now, 403), (later, 302)):
        changed = {**asked, "cents": "700", "starts_on": str(price.starts_on)}
        assert boss.post(f"/admin/billing/price/{price.pk}/change/", changed).status_code == status
        assert boss.post(f"/admin/billing/price/{price.pk}/delete/", {"post": "yes"}).status_code == status
    assert list(Price.objects.filter(pack=pack).values_list("cents", flat=True)) == [500]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "model", ["account", "transaction", "order", "payment", "subscription", "stripeevent", "reversal", "reconciliation"]
)
def test_not_even_a_superuser_adds_changes_or_deletes_in_the_books(boss: Client, model: str) -> None:
    alice = make_alice()
    make_belongings(alice)
    assert boss.get(f"/admin/billing/{model}/add/").status_code == 403
    registered = next(each for each in admin.site._registry if each._meta.label_lower == f"billing.{model}")
    row = registered._default_manager.first()
    if row is not None:
        where = reverse(f"admin:billing_{model}_change", args=[row.pk])
        assert boss.post(where, {"balance": "1000"}).status_code == 403
        assert boss.post(where.replace("/change/", "/delete/"), {"post": "yes"}).status_code == 403


def test_an_announcement_is_replayed_by_queueing_it_again(boss: Client) -> None:
    alice = make_alice()
    make_belongings(alice)
    event = StripeEvent.objects.get(customer_id=f"cus_{alice.pk.hex}")
    done = boss.post("/admin/billing/stripeevent/", {"action": "replay", "_selected_action": [event.pk]}, follow=True)
    assert "Announcements queued again: 1." in done.content.decode()
    event.refresh_from_db()
    assert event.state == StripeEvent.State.RECEIVED
    assert ProcrastinateJob.objects.filter(task_name="apply_stripe_event", args__event_id=event.pk).count() == 1


def test_somebody_who_only_looks_replays_nothing(settings: Settings) -> None:
    settings.LOCAL_MODE = True
    looker = make_person("looker")
    Person.objects.filter(pk=looker.pk).update(is_staff=True)
    assert sign_in(looker).get("/admin/billing/stripeevent/").status_code == 403
