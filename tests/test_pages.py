"""The pages as the server sends them: true, escaped, the person's own, and strict about scripts."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from html import unescape
from pathlib import Path

import httpx
import pytest
from django.contrib.staticfiles import finders
from django.utils import timezone

from billing.credits import grant
from klerai.accounts.models import Person
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import fails
from tests.harness.doors import Visitor, by_key, by_session
from tests.people import make_charlie, make_person, make_unverified
from tests.serving import VENDOR_KEY

SUM = "What is 17.5 % of 2,480?"
PAGES = ("/", "/billing/", "/settings/", "/setup/")


def words(page: httpx.Response) -> str:
    """What a reader without scripts sees, in one line."""
    body = re.sub(r"<template.*?</template>|<head>.*?</head>", " ", page.text, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def form(there: Visitor, path: str, **fields: str) -> httpx.Response:
    return there.http.post(path, data=fields, follow_redirects=True)


def asked(there: Visitor, message: str = SUM, **body: object) -> dict[str, str]:
    answer = there.answer(message, **body)
    return {name: str(answer[name]) for name in ("conversation_id", "run_id", "message_id")}


def addresses(run: dict[str, str]) -> tuple[str, ...]:
    return (
        f"/chat/{run['conversation_id']}/",
        f"/chat/runs/{run['run_id']}/",
        f"/billing/receipts/{run['run_id']}/",
    )


def test_a_stranger_reads_what_this_is_and_what_it_costs(server: str) -> None:
    page = httpx.get(server, trust_env=False)
    assert "Answers you can check, priced before you ask." in words(page)
    assert re.search(r"Question every answered question 5", words(page))
    assert "GitHub" not in words(page), "no price for a tool this server does not have"
    assert "Message" not in words(page)


def test_an_answered_question_is_on_its_page_with_activity_and_receipt(server: str) -> None:
    with by_session(server) as alice:
        run = asked(alice)
        page = alice.get(addresses(run)[0])
        assert f'data-run-id="{run["run_id"]}" data-query-id="q1" data-state="completed"' in page.text
        shown = words(page)
        assert SUM in shown
        assert "<strong>434</strong>" in page.text
        assert re.search(r"Used the calculator · 1 tool ·", shown)
        assert re.search(r"7 credits · 1 tool · ", shown)
        assert re.search(r"Question 5 Calculator 2 From today’s credits 7", shown)
        assert "43 credits left" in shown


def test_the_piece_that_is_fetched_after_an_answer_is_the_one_of_the_page(server: str) -> None:
    with by_session(server) as alice:
        run = asked(alice)
        page, piece, _ = (alice.get(address) for address in addresses(run))
        assert piece.text.strip() in page.text


def test_a_receipt_adds_up_and_leads_back(server: str) -> None:
    with by_session(server) as alice:
        run = asked(alice)
        page = alice.get(addresses(run)[2])
        shown = words(page)
        assert "Question q1 1 5 5" in shown
        assert "Calculator q1-t1 1 2 2" in shown
        assert "Total 7" in shown
        assert "Before 50 After 43" in shown
        assert f'href="/chat/{run["conversation_id"]}/?at=1#q1"' in page.text


def test_what_belongs_to_somebody_else_does_not_exist(server: str) -> None:
    with by_session(server) as alice, by_session(server, make_charlie()) as charlie:
        run = asked(alice, "What is 31 × 3?")
        nobodys = {name: str(uuid.uuid4()) for name in run}
        for hers, nothing in zip(addresses(run), addresses(nobodys), strict=True):
            assert alice.get(hers).status_code == 200
            refused, missing = charlie.get(hers), charlie.get(nothing)
            assert refused.status_code == missing.status_code == 404
            assert words(refused) == words(missing)
        assert "31 × 3" not in charlie.get("/").text
        assert run["conversation_id"] not in charlie.get(f"/sidebar/?current={run['conversation_id']}").text


def test_a_stranger_is_sent_to_the_door_and_back(server: str) -> None:
    with by_session(server) as alice:
        run = asked(alice)
    for path in (*addresses(run), *PAGES[1:], "/sidebar/"):
        answer = httpx.get(server + path, trust_env=False)
        assert (answer.status_code, answer.headers["location"]) == (302, f"/accounts/login/?next={path}")


def test_what_a_person_writes_is_text_everywhere(server: str) -> None:
    nasty = "<script>alert(1)</script> \"onclick='x' {{ 7|add:1 }} 2 + 3"
    with by_session(server) as alice:
        form(alice, "/settings/name/", name="<img src=x onerror=y>")
        run = asked(alice, nasty)
        for path in (*addresses(run), *PAGES):
            page = alice.get(path)
            assert "<script>alert" not in page.text
            assert "<img" not in page.text
        assert "<script>alert(1)</script>" in words(alice.get(addresses(run)[0]))


def test_versions_lead_to_each_other_and_show_their_own_branch(server: str) -> None:
    with by_session(server) as alice:
        run = asked(alice, "What is 1 + 1?")
        asked(alice, "What is 5 + 5?", conversation_id=run["conversation_id"])
        asked(alice, "What is 2 + 2?", conversation_id=run["conversation_id"], parent=None)
        page = addresses(run)[0]
        latest, first = alice.get(page), alice.get(f"{page}?at=1")
        assert "2 of 2" in words(latest)
        assert "5 + 5" not in words(latest)
        assert f'href="{page}?at=1#q1"' in latest.text
        assert "1 of 2" in words(first)
        assert "What is 5 + 5?" in words(first)
        assert f'href="{page}?at=3#q3"' in first.text
        assert "2 of 2" in words(alice.get(f"{page}?at=99999999999999999999"))


def test_a_failed_question_says_what_happened_what_it_cost_and_what_to_do(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(fails(400, "No."), forever=True)
    with by_session(vendor_server) as alice:
        run_id = str(uuid.uuid4())
        alice.refused("Will this be answered?", status=503, run_id=run_id)
        piece = alice.get(f"/chat/runs/{run_id}/")
        assert "The model did not answer. 3 models were tried. Nothing was charged." in words(piece)
        assert "0 credits · failed, not charged" in words(piece)
        assert re.search(r"<button[^>]*data-again>.*Retry</button>", piece.text, re.DOTALL)
        receipt = words(alice.get(f"/billing/receipts/{run_id}/"))
        assert "no answer, so nothing is charged" in receipt
        assert "Total 0" in receipt


def test_billing_says_what_is_left_and_why(server: str) -> None:
    with by_session(server) as alice:
        asked(alice)
        shown = words(alice.get("/billing/"))
        assert "43 credits left" in shown
        assert "Enough for up to 8 plain questions." in shown
        assert "7 of 50 used" in shown
        assert "Resets at 00:00, UTC" in shown
        assert re.search(r"What is 17.5 % of 2,480\? in its conversation daily −7 43", shown)
        assert re.search(r"Credits for \d+ \w+ daily \+50 50", shown)


def test_billing_counts_packs_and_pages_back_through_the_ledger(server: str) -> None:
    person = make_person()
    for number in range(23):
        grant(person, amount=10, reason=f"Gift {number}")
    with by_session(server, person) as alice:
        newest = alice.get("/billing/")
        assert "280 credits left" in words(newest)
        assert "Packs 230 of 230 left" in words(newest)
        assert "Gift 22 packs +10" in words(newest)
        assert "Gift 2 packs +10" not in words(newest)
        whole = alice.get("/billing/ledger/")
        assert "Gift 1 packs +10" not in words(whole)
        older = re.search(r'href="(\?before=\d+)"', whole.text)
        assert older
        assert "Gift 1 packs +10" in words(alice.get(f"/billing/ledger/{older[1]}"))
        assert "Gift 22" in words(alice.get("/billing/ledger/?before=nonsense"))


def test_somebody_unverified_is_told_what_is_missing(server: str) -> None:
    with by_session(server, make_unverified()) as alice:
        assert "Confirm your e-mail address" in words(alice.get("/billing/"))
        assert "from 5; you have 0" in words(alice.get("/"))


def test_a_name_and_a_ceiling_are_saved_and_change_the_quote(server: str) -> None:
    with by_session(server) as alice:
        assert "Your name was saved." in words(form(alice, "/settings/name/", name="Robin"))
        assert "costs at most 40 credits now" in words(form(alice, "/settings/ceiling/", ceiling="40"))
        shown = words(alice.get("/"))
        assert "Robin" in shown
        assert "from 5, at most 40 credits" in shown


@pytest.mark.parametrize(("mode", "least"), [("assistant", 5), ("grounded", 7), ("quick", 5), ("research", 5)])
def test_the_quote_is_that_of_the_mode_before_in_and_after_a_question(server: str, mode: str, least: int) -> None:
    with by_session(server) as alice:
        assert re.search(rf'value="{mode}" [^>]*data-least="{least}"', alice.get("/").text)
        frames = alice.events("How do daily credits reset?", mode=mode, max_credits=20)
        assert frames[0].data["quote"] == {"at_least": least, "at_most": 20}
        receipt = frames[-1].data["receipt"]
        assert receipt["quote"] == {"at_least": least, "at_most": 20}
        assert least <= receipt["credits"] <= 20
        assert f"from {least}, at most 25 credits" in words(alice.get(f"/chat/{frames[0].data['conversation_id']}/"))
        assert f"quoted: from {least}, at most 20" in words(alice.get(f"/billing/receipts/{receipt['run_id']}/"))


@pytest.mark.parametrize("ceiling", ["4", "1001", "-1", "many", "", "9" * 30])
def test_a_ceiling_that_makes_no_sense_is_refused_in_words(server: str, ceiling: str) -> None:
    with by_session(server) as alice:
        answer = form(alice, "/settings/ceiling/", ceiling=ceiling)
        assert answer.status_code == 422
        assert 'aria-invalid="true"' in answer.text
        assert Person.objects.get(pk=alice.person.pk).ceiling_credits == 25


def test_the_time_zone_moves_once_in_thirty_days(server: str) -> None:
    with by_session(server) as alice:
        assert "no time zone “Mars/Base”" in words(form(alice, "/settings/time-zone/", time_zone="Mars/Base"))
        assert "midnight in Europe/Berlin" in words(form(alice, "/settings/time-zone/", time_zone="Europe/Berlin"))
        again = form(alice, "/settings/time-zone/", time_zone="Asia/Tokyo")
        assert again.status_code == 422
        assert "The time zone can be changed again on" in words(again)
        assert "00:00, Europe/Berlin" in words(alice.get("/billing/"))
        month_ago = timezone.now() - timedelta(days=31)
        Person.objects.filter(pk=alice.person.pk).update(time_zone_changed_at=month_ago)
        assert form(alice, "/settings/time-zone/", time_zone="Asia/Tokyo").status_code == 200


def test_a_key_is_shown_once_works_and_stops_when_revoked(server: str) -> None:
    with by_session(server) as alice, by_session(server, make_charlie()) as charlie:
        found = re.search(r"kl_\w+_[\w-]{20,}", form(alice, "/settings/keys/", name="notebook", scope="billing").text)
        assert found
        assert found[0] not in alice.get("/settings/").text
        headers = {"Authorization": f"Bearer {found[0]}"}
        assert httpx.get(f"{server}/api/billing", headers=headers, trust_env=False).status_code == 200
        revoke = re.search(r"/settings/keys/[0-9a-f-]+/revoke/", alice.get("/settings/").text)
        assert revoke
        assert form(charlie, revoke[0]).status_code == 404
        assert httpx.get(f"{server}/api/billing", headers=headers, trust_env=False).status_code == 200
        assert "was revoked" in words(form(alice, revoke[0]))
        assert httpx.get(f"{server}/api/billing", headers=headers, trust_env=False).status_code == 401


def test_a_theme_is_kept_and_nonsense_is_not(server: str) -> None:
    with by_session(server) as alice:
        assert 'data-theme="dark"' in form(alice, "/settings/theme/", theme="dark").text
        assert form(alice, "/settings/theme/", theme='dark" onload="x').status_code == 404
        away = alice.http.post(
            "/settings/theme/", data={"theme": "light"}, headers={"Referer": "https://example.org/billing/"}
        )
        assert away.headers["location"] == "/settings/"


@pytest.mark.parametrize("path", ["/settings/name/", "/settings/keys/", "/settings/theme/"])
def test_forms_from_other_sites_are_refused(server: str, path: str) -> None:
    with by_session(server) as alice:
        answer = alice.http.post(path, data={"theme": "dark"}, headers={"X-CSRFToken": "", "Origin": "https://e.org"})
        assert answer.status_code == 403


def test_set_up_names_every_variable_and_shows_no_secret(vendor_server: str, server: str) -> None:
    with by_session(server) as alice, by_session(vendor_server) as bob:
        shown = words(alice.get("/setup/"))
        for variable in ("ANTHROPIC_API_KEY", "EMAIL_URL", "REDIS_URL", "DATABASE_URL"):
            assert variable in shown
        assert VENDOR_KEY not in bob.get("/setup/").text


def test_every_page_keeps_the_strict_policy(server: str) -> None:
    with by_session(server) as alice:
        run = asked(alice)
        for path in (*PAGES, *addresses(run), "/nothing/here/"):
            page = alice.get(path)
            policy = page.headers["content-security-policy"]
            assert "unsafe" not in policy
            assert "default-src 'none'" in policy
            assert not re.search(r"\sstyle=|\son\w+=|<style|javascript:", page.text)
            assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page.text))


def test_a_page_that_is_not_there_says_so(server: str) -> None:
    page = httpx.get(f"{server}/nothing/here/", trust_env=False)
    assert page.status_code == 404
    assert "There is nothing here, or it is not yours." in words(page)


def test_our_own_styles_and_scripts_are_small(server: str) -> None:
    with by_session(server) as alice:
        page = alice.get("/").text
        names = set(re.findall(r'(?:href|src)="(/static/(?:css|js)/[^"]+)"', page))
        seen: dict[str, int] = {}
        while names:
            name = names.pop()
            text = Path(str(finders.find(name.removeprefix("/static/")))).read_text()
            seen[name] = len(text.encode())
            names |= {f"/static/js/{found}" for found in re.findall(r'from "\./([\w.]+)"', text)} - seen.keys()
        assert sum(seen.values()) < 150_000


def test_a_program_gets_no_pages(server: str) -> None:
    with by_key(server) as program:
        assert program.get("/billing/").status_code == 302
