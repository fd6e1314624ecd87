"""Terms, privacy, refunds and contact: true for this server, the operator's to rewrite, linked where they matter."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from django.conf import settings as configured
from django.test import Client
from pytest_django import Settings

from klerai.mail import Smtp
from klerai.models import LegalPage
from tests.people import make_alice, make_person, sign_in

PAGES = ("terms", "privacy", "refunds", "contact")


def words(path: str) -> str:
    page = Client().get(path)
    assert page.status_code == 200
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.content.decode())).split())


def written(slug: str, text: str) -> Client:
    """What an operator saves in the admin."""
    staff = sign_in(make_person("staff", is_admin=True))
    saved = staff.post(f"/admin/klerai/legalpage/{slug}/change/", {"text": text})
    assert saved.status_code == 302, saved.content.decode()
    return staff


@pytest.fixture(autouse=True)
def _drafts_again(settings: Settings) -> object:
    settings.LOCAL_MODE = True  # where staff need no second factor
    yield
    LegalPage.objects.update(text="")


@pytest.mark.parametrize("slug", PAGES)
def test_every_draft_is_a_page_without_loose_ends(slug: str) -> None:
    page = Client().get(f"/{slug}/").content.decode()
    assert f"<h1>{slug.capitalize()}</h1>" in page
    assert "<h3>" in page
    assert not re.search(r"\{\w+\}", page)


def test_the_contact_page_names_the_address_mail_comes_from(settings: Settings) -> None:
    settings.DEFAULT_FROM_EMAIL = "Us <help@example.org>"
    assert "By e-mail: help@example.org." in words("/contact/")


@pytest.mark.parametrize("slug", ["terms", "refunds"])
def test_prices_are_said_to_be_in_us_dollars(slug: str) -> None:
    assert "All prices are in US dollars (USD)." in words(f"/{slug}/")


def test_without_keys_nobody_is_named_who_is_not_asked() -> None:
    told = words("/privacy/")
    assert "Context7 is sent the name of a product" in told
    for name in ("Anthropic", "Voyage", "Perplexity", "Stripe", "mail server"):
        assert name not in told


def test_everybody_who_is_set_up_is_named(settings: Settings) -> None:
    access = {**configured.MODEL_ACCESS}
    access["anthropic"] = replace(access["anthropic"], base_url="https://models.example.org", is_set=True)
    access["deepseek"] = replace(access["deepseek"], is_set=True)
    settings.STRATEGY, settings.MODEL_ACCESS, settings.EMBEDDER = "anthropic", access, "voyage"
    settings.PERPLEXITY_API_KEY = "key"
    settings.DELIVERY = Smtp("mail.example.org", 25, "", "", "smtp")
    settings.STRIPE = replace(configured.STRIPE, seller="stripe")
    told = words("/privacy/")
    assert "Anthropic (models.example.org) is sent your question" in told
    assert re.search(r"DeepSeek \(\S+\) is sent the same when its mode is chosen", told)
    assert "Voyage AI is sent the texts of your documents" in told
    assert "Perplexity is sent a query" in told
    assert "The mail server mail.example.org is sent your address" in told
    assert "Stripe is sent your e-mail" in told


def test_the_operators_words_take_the_place_of_the_draft_until_they_are_emptied() -> None:
    staff = written("terms", "## House rules\n\nBe kind at {site}. {unknown} stays.")
    assert "House rules Be kind at testserver. {unknown} stays." in words("/terms/")
    assert "A draft." not in words("/terms/")
    staff.post("/admin/klerai/legalpage/terms/change/", {"text": ""})
    assert "A draft." in words("/terms/")


def test_the_operators_markdown_is_cleaned_like_any_other() -> None:
    written("terms", "<script>alert(1)</script> [x](javascript:alert(1)) ![y](https://evil.example/p.png)")
    page = Client().get("/terms/").content.decode()
    assert "<script>alert" not in page
    assert 'href="javascript' not in page
    assert "<img" not in page


def test_nobody_but_staff_writes_them_and_there_are_always_four() -> None:
    alice = sign_in(make_alice())
    assert alice.post("/admin/klerai/legalpage/terms/change/", {"text": "Mine"}).status_code in (302, 403)
    assert "Mine" not in words("/terms/")
    staff = sign_in(make_person("staff", is_admin=True))
    assert staff.get("/admin/klerai/legalpage/add/").status_code == 403
    assert staff.post("/admin/klerai/legalpage/terms/delete/", {"post": "yes"}).status_code == 403
    assert LegalPage.objects.count() == 4


@pytest.mark.parametrize("path", ["/", "/accounts/signup/", "/accounts/login/", "/terms/"])
def test_public_pages_link_them(path: str) -> None:
    page = Client().get(path).content.decode()
    for slug in PAGES:
        assert f'href="/{slug}/"' in page


def test_the_form_of_signing_up_says_what_is_agreed_to() -> None:
    assert "you agree to the Terms" in words("/accounts/signup/")


def test_the_page_of_credits_links_terms_and_refunds_and_says_the_currency() -> None:
    page = sign_in(make_alice()).get("/billing/").content.decode()
    assert "Prices are in US dollars." in page
    assert 'href="/refunds/"' in page
