"""The ledger as its person reads it: every row in words, chosen by what, when and where, and the same as a file."""

from __future__ import annotations

import csv
import io
import re
import uuid
from datetime import UTC, date, datetime, timedelta
from html import unescape
from urllib.parse import urlencode

from django.test import Client

from billing import credits
from billing.pricing import Line
from klerai.accounts.models import Person
from tests.credit_people import verified, with_packs
from tests.fakes.stripe_server import StripeFake
from tests.harness.doors import by_session
from tests.people import make_charlie, sign_in
from tests.selling import Buyer
from tests.test_credits_page import read, spend

PAGE, FILE = "/billing/ledger/", "/billing/ledger.csv"


def listed(person: Person, **wanted: object) -> list[tuple[str, int, int]]:
    """What, change and balance of each row on the page."""
    html = sign_in(person).get(f"{PAGE}?{urlencode(wanted)}").content.decode()
    rows = re.findall(r'<td class="whole">(.*?)</td>.*?"Change">(.*?)</td>.*?"Balance">(.*?)</td>', html, re.DOTALL)
    return [(_plain(what.partition("<br>")[0]), _number(change), _number(balance)) for what, change, balance in rows]


def written(server: str, person: Person, **wanted: object) -> list[dict[str, str]]:
    """The rows of the file, as a browser gets it."""
    with by_session(server, person) as there:
        answer = there.get(f"{FILE}?{urlencode(wanted)}")
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="klerai-ledger-')
    assert "content-length" not in answer.headers
    return list(csv.DictReader(io.StringIO(answer.text)))


def _plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def _number(text: str) -> int:
    return int(text.replace("−", "-").replace(",", ""))


def test_every_row_says_what_it_was_and_leads_there(server: str, stripe_fake: StripeFake) -> None:
    with by_session(server) as alice:
        asked = alice.answer("What is 17.5 % of 2,480?")
        buyer = Buyer(stripe_fake, alice.person)
        session = buyer.buy(pack="500")
        stripe_fake.world.refund(session["payment_intent"], 2_000)
        buyer.hear()
        today = f"{datetime.now(UTC):%-d %B}"
        assert listed(alice.person) == [
            ("Refund of a pack", -500, 43),
            ("Pack of 500 credits", 500, 543),
            ("What is 17.5 % of 2,480?", -7, 43),
            (f"Credits for {today}", 50, 50),
        ]
        html = sign_in(alice.person).get(PAGE).content.decode()
        assert f'href="/billing/receipts/{asked["run_id"]}/"' in html
        assert f'href="/chat/{asked["conversation_id"]}/?at=1#q1"' in html
        assert html.count(f'href="/billing/?order={buyer.order.pk}"') == 2
        alice.http.delete(f"/api/conversations/{asked['conversation_id']}")
        assert ("A question whose conversation was deleted", -7, 43) in listed(alice.person)


def test_the_words_of_a_temporary_question_stand_in_no_ledger(server: str) -> None:
    with by_session(server) as alice:
        alice.answer("What is 17.5 % of 2,480?", temporary=True)
        assert ("A question of a temporary conversation", -7, 43) in listed(alice.person)
        assert all("17.5" not in row["what"] for row in written(server, alice.person))


def test_each_balance_is_the_one_before_and_the_change_though_questions_overlap() -> None:
    person = verified()
    one, other = uuid.uuid4(), uuid.uuid4()
    credits.hold(person, run_id=one, amount=7)
    credits.hold(person, run_id=other, amount=5)
    credits.settle(person, run_id=one, lines=[Line("base", None, 1, 5, 5)])
    credits.grant(person, amount=10, reason="Gift")
    credits.release(person, run_id=other)
    rows = listed(person)
    assert [(change, balance) for _, change, balance in rows] == [(0, 55), (10, 55), (-5, 45), (50, 50)]
    holds = listed(person, kind="holds")
    assert [change for _, change, _ in holds] == [0, 10, -5, 0, 0, 50]
    assert [balance for *_, balance in holds] == [55, 55, 45, 50, 50, 50]
    assert rows[0][0].startswith("Not charged: ")
    assert holds[3][0].startswith("Set aside for: ")


def test_rows_are_chosen_by_what_they_are(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake, verified())
    spend(alice.person, 5, now=datetime.now(UTC) - timedelta(days=1))
    spend(alice.person, 7)
    alice.buy(pack="500")
    released = uuid.uuid4()
    credits.hold(alice.person, run_id=released, amount=5)
    credits.release(alice.person, run_id=released)

    def changes(kind: str) -> list[int]:
        return [change for _, change, _ in listed(alice.person, kind=kind)]

    assert changes("questions") == [-7, -5]
    assert changes("uncharged") == [0]
    assert changes("daily") == [50, -45, 50]
    assert changes("packs") == [500]
    assert changes("") == [0, 500, -7, 50, -45, -5, 50]


def test_dates_are_days_of_the_persons_own_calendar() -> None:
    person = with_packs(100)  # on 20 November at noon UTC
    Person.objects.filter(pk=person.pk).update(time_zone="Pacific/Auckland")
    late = datetime(2026, 11, 20, 11, 30, tzinfo=UTC)  # already 21 November in Auckland
    run_id = spend(person, 5, now=late)
    assert credits.settlement_of(person, run_id=run_id)

    def chosen(since: object = "", until: object = "") -> int:
        return len(listed(person, kind="questions", since=since, until=until))

    assert chosen("2026-11-21", "2026-11-21") == 1
    assert chosen(until="2026-11-20") == chosen("2026-11-22") == 0
    assert chosen() == chosen("0001-01-01", date.max) == 1


def test_a_choice_that_makes_no_sense_is_said_beside_its_field_and_lists_nothing() -> None:
    person = verified()
    credits.balance_of(person)
    for field, value, said in (
        ("since", "yesterday", "Write a date, such as 2026-11-20."),
        ("until", "2026-02-30", "Write a date, such as 2026-11-20."),
        ("kind", "gold", "Choose one of the list."),
        ("conversation", "x\0y", "There is no such conversation, or it is not yours."),
    ):
        shown = read(person, f"{PAGE}?{urlencode({field: value})}")
        assert said in shown, field
        assert "Nothing is listed until the choice above is put right." in shown
        back = sign_in(person).get(f"{FILE}?{urlencode({field: value})}")
        assert (back.status_code, back["Location"].partition("?")[0]) == (302, PAGE)


def test_a_conversation_is_chosen_and_somebody_elses_is_none(server: str) -> None:
    with by_session(server) as alice, by_session(server, make_charlie()) as charlie:
        first = alice.answer("What is 1 + 1?")
        alice.answer("What is 2 + 2?")
        alice.answer("What is 3 + 3?", conversation_id=first["conversation_id"])
        found = listed(alice.person, conversation=first["conversation_id"])
        assert [what for what, *_ in found] == ["What is 3 + 3?", "What is 1 + 1?"]
        hers, nobodys = (
            read(charlie.person, f"{PAGE}?conversation={id}") for id in (first["conversation_id"], uuid.uuid4())
        )
        assert "There is no such conversation, or it is not yours." in hers
        assert hers == nobodys
        assert "1 + 1" not in read(charlie.person, PAGE)
        assert all("1 + 1" not in row["what"] for row in written(server, charlie.person))


def test_pages_go_through_all_of_a_choice_once() -> None:
    person = with_packs(1_000)
    for _ in range(45):
        spend(person, 5)
    browser, address, found = sign_in(person), f"{PAGE}?kind=questions", []
    while address:
        html = browser.get(address).content.decode()
        found += [int(each.replace(",", "")) for each in re.findall(r'"Balance">([\d,]+)<', html)]
        older = re.search(r'href="([^"]+)">Older entries', html)
        address = PAGE + unescape(older[1]) if older else ""
    assert found == list(range(775, 1_000, 5))


def test_the_file_has_the_rows_of_the_page(server: str) -> None:
    person = with_packs(1_000)
    for _ in range(12):
        spend(person, 5)
    rows = written(server, person, kind="questions")
    assert [int(row["daily"]) + int(row["pack"]) for row in rows] == [-5] * 12
    assert [row["pack_after"] for row in rows] == [str(each) for each in range(940, 1_000, 5)]
    assert {row["kind"] for row in written(server, person)} == {"grant", "settle"}
    assert len(written(server, person, kind="holds")) == 25
    assert len(written(server, person, kind="packs")) == 1


def test_a_long_ledger_is_whole_in_its_file(server: str) -> None:
    person = with_packs(2_000)
    for _ in range(255):
        spend(person, 5)
    numbers = [int(row["number"]) for row in written(server, person, kind="holds")]
    assert len(set(numbers)) == 511
    assert numbers == sorted(numbers, reverse=True)


def test_words_that_a_spreadsheet_would_compute_stay_words(server: str) -> None:
    formulas = ('=HYPERLINK("https://example.org";"Click")', "+1", "-1", "@SUM(A1)", "\t=1", "  =1+1", "＝1+1")
    with by_session(server) as alice:
        for formula in formulas[:2]:
            alice.answer(formula)
        for formula in formulas:
            credits.grant(alice.person, amount=1, reason=formula)
        cells = [row["what"] for row in written(server, alice.person)]
    assert len(cells) == len(formulas) + 3
    assert not [cell for cell in cells if cell.lstrip(" ").startswith(tuple("=+-@\t\r\n＝＋－＠"))]
    assert "'=HYPERLINK" in " ".join(cells)


def test_the_ledger_is_its_persons_alone() -> None:
    for path in (PAGE, FILE):
        gone = Client().get(path)
        assert (gone.status_code, gone["Location"]) == (302, f"/accounts/login/?next={path}")
        assert sign_in(verified()).post(path).status_code == 405
