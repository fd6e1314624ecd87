"""The prices as everybody sees them: read from the rows, honest about what a credit comes to, with a way to buy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.test import Client
from pytest_django import Settings

from billing.models import Order, Pack, Price
from billing.stripe_settings import stripe_settings
from chat.models import Run
from klerai.env import Environment
from tests.people import make_person, sign_in
from tests.short_of import short_of_the_period, short_of_today


@pytest.fixture
def sold(settings: Settings) -> None:
    """By the test checkout of local mode."""
    settings.LOCAL_MODE = True
    settings.STRIPE = stripe_settings(Environment({}), local=True, secret="a secret of this machine")


def words(browser: Client, path: str = "/pricing/") -> str:
    page = browser.get(path)
    assert page.status_code == 200
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.content.decode())).split())


def test_a_stranger_sees_what_a_credit_comes_to(sold: None) -> None:
    page = words(Client())
    assert "All prices are in US dollars (USD)." in page
    assert "Free $0 50 credits a day Up to 10 plain questions a day Up to 1,500 credits in 30 days" in page
    assert "Pro $19 a month 0.63 ¢ a credit if you use all 3,000; 1.3 ¢ if you use half" in page
    assert "At 150 a day the month is used up in 20 days" in page
    assert "A whole day’s 150 then come to 95.0 ¢" in page
    assert "$20 for 500, once 4.0 ¢ a credit, about 6 times Pro’s" in page
    assert "A plain question 5 3.2 ¢ 20.0 ¢" in page
    assert "Never more than, unless you raise it 25" in page
    assert "Buying is a rehearsal on this server" in page


def test_the_prices_are_those_of_the_rows(sold: None, dearer: None) -> None:
    page = words(Client())
    assert "Pro $24.50 a month" in page
    assert "0.82 ¢ a credit" in page


@pytest.fixture
def dearer() -> Iterator[None]:
    """Pro costs more from today on."""
    price = Price.objects.create(plan_id="pro", cents=2450, starts_on=datetime.now(UTC).date())
    yield
    price.delete()


def test_a_plan_or_pack_that_is_not_offered_or_has_no_price_yet_is_not_shown(sold: None) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=2)).date()
    pack = Pack.objects.create(slug="9000", title="Pack of 9,000 credits", credits=9000)
    Price.objects.create(pack=pack, cents=25000, starts_on=tomorrow)
    try:
        assert "9,000" not in words(Client())
    finally:
        Price.objects.filter(pack=pack).delete()
        pack.delete()


def test_where_nothing_is_sold_it_says_so_and_offers_nothing() -> None:
    alice = sign_in(make_person())
    page = words(alice)
    assert "Nothing is for sale on this server: everybody has the free plan" in page
    assert "Free your plan $0" in page
    for absent in ("Pro", "$19", "Packs", "¢"):
        assert absent not in page
    assert "/billing/buy/" not in alice.get("/pricing/").content.decode()
    assert alice.post("/billing/buy/", {"pack": "500"})["Location"] == "/billing/"
    assert "Nothing is for sale on this server" in words(alice, "/billing/")


def test_somebody_sees_their_own_plan_marked_and_their_own_ceiling(sold: None) -> None:
    alice = make_person()
    alice.ceiling_credits = 40
    alice.save(update_fields=["ceiling_credits"])
    page = words(sign_in(alice))
    assert "Free your plan" in page
    assert "Pro your plan" not in page
    assert "unless you raise it 40" in page
    pro = words(sign_in(short_of_the_period()))
    assert "Pro your plan" in pro
    assert "Take Pro" not in pro
    assert "Change in the portal" in pro


@pytest.mark.parametrize("wanted", [{"plan": "pro"}, {"pack": "1500"}])
def test_a_button_starts_the_checkout(sold: None, wanted: dict[str, str]) -> None:
    alice = make_person()
    leading = sign_in(alice).post("/billing/buy/", wanted)
    assert leading.status_code == 302
    assert "/local/checkout/" in leading["Location"]
    order = Order.objects.get(person_id=alice.pk)
    assert (order.price.plan_id or order.price.pack_id) == next(iter(wanted.values()))


@pytest.mark.parametrize("wanted", [{}, {"pack": "none"}, {"plan": "free"}, {"plan": "pro", "pack": "500"}])
def test_what_is_not_for_sale_is_refused_in_words(sold: None, wanted: dict[str, str]) -> None:
    alice = make_person()
    browser = sign_in(alice)
    assert browser.post("/billing/buy/", wanted)["Location"] == "/billing/"
    assert "That is not for sale." in words(browser, "/billing/")
    assert not Order.objects.filter(person_id=alice.pk).exists()


def test_nobody_buys_without_signing_in_or_by_a_link(sold: None) -> None:
    assert Client().post("/billing/buy/", {"pack": "500"})["Location"].startswith("/accounts/login/")
    assert sign_in(make_person()).get("/billing/buy/").status_code == 405


def test_landing_and_footers_lead_there() -> None:
    for path in ("/", "/terms/", "/accounts/login/"):
        assert 'href="/pricing/"' in Client().get(path).content.decode()


def test_the_ways_out_name_the_limit_and_what_can_be_bought(sold: None) -> None:
    poor = short_of_today()
    browser = sign_in(poor)
    page = words(browser, "/billing/ways-out/")
    assert "You have 4 credits; a question needs 5. 46 of today’s 50 credits are used" in page
    assert "Buy 500 credits, $20 Take Pro, $19 a month See your plan" in page
    assert "Nothing was charged, and your question is still in the box." in page
    assert not Run.objects.filter(person=poor).exists()


def test_on_the_largest_plan_only_packs_are_a_way_out(sold: None) -> None:
    page = words(sign_in(short_of_the_period()), "/billing/ways-out/")
    assert "2,997 of this period’s 3,000 credits are used; the next 3,000 begin on" in page
    assert "Buy 500 credits, $20 See your plan" in page
    assert "Take Pro" not in page


def test_where_nothing_is_sold_the_way_out_is_to_wait() -> None:
    page = words(sign_in(short_of_today()), "/billing/ways-out/")
    assert "your day begins anew at 00:00, Europe/Berlin" in page
    assert "See your plan" in page
    for absent in ("Buy", "Take", "Packs", "$"):
        assert absent not in page


def test_who_has_credits_again_is_told_to_send() -> None:
    assert "You have 50 credits again." in words(sign_in(make_person()), "/billing/ways-out/")
    assert Client().get("/billing/ways-out/").status_code == 302
