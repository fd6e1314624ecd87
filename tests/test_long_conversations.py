"""A conversation of 300 long answers is as quick as one of 40: no page reads more for it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection

from chat.models import Conversation, Item, Run
from chat.queries import branch_to
from klerai.accounts.models import Person
from tests.harness.doors import by_key
from tests.harness.frames import run_row
from tests.people import make_person, sign_in

pytestmark = pytest.mark.xdist_group("long")
LONG_ANSWER = "A sentence that takes its place. " * 120
LENGTHS = (40, 300)


@dataclass(slots=True)
class Read:
    """What was asked of the database, and how many rows came back."""

    queries: list[str] = field(default_factory=list)
    rows: int = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        result = execute(sql, params, many, context)
        self.queries.append(sql)
        self.rows += max(0, context["cursor"].rowcount)
        return result


@contextmanager
def reading() -> Iterator[Read]:
    read = Read()
    with connection.execute_wrapper(read):
        yield read


@pytest.fixture(scope="module")
def talks(server: str) -> Iterator[dict[int, Conversation]]:
    """Conversations of each length, all of one person; each begins with a real run and goes on with copies of it."""
    person = make_person()
    found = {length: _grown(server, person, length) for length in LENGTHS}
    yield found
    for talk in found.values():
        talk.delete()


def _grown(server: str, person: Person, length: int) -> Conversation:
    with by_key(server, person) as alice:
        first = run_row(alice.answer("What is 17.5 % of 2,480?")["run_id"])
    runs = [first]
    items: list[Item] = []
    for number in range(2, length + 1):
        run = copy(first)
        run.pk, run.run_id, run.number, run.depth = uuid.uuid4(), uuid.uuid4(), number, number
        run.parent = runs[-1]
        runs.append(run)
        for kind, ref, text in (("query", run.query_ref, "And?"), ("response", run.response_ref, LONG_ANSWER)):
            position = 0 if kind == "query" else 10_000
            items.append(
                Item(conversation=first.conversation, run=run, ref=ref, kind=kind, content=text, position=position)
            )
    Run.objects.bulk_create(runs[1:])
    Item.objects.bulk_create(items)
    first.conversation.tip, first.conversation.query_counter = runs[-1], length
    first.conversation.save()
    return first.conversation


def pages(talk: Conversation) -> dict[str, str]:
    """What a person opens, by what it is."""
    newest = talk.runs.get(number=talk.query_counter)
    return {
        "the conversation": f"/chat/{talk.pk}/",
        "one question in it": f"/chat/{talk.pk}/?at={talk.query_counter - 3}",
        "more of it": f"/chat/{talk.pk}/?last=35",
        "a run that has ended": f"/chat/runs/{newest.run_id}/",
    }


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["the conversation", "one question in it", "more of it", "a run that has ended"])
def test_what_a_page_reads_does_not_grow_with_the_conversation(talks: dict[int, Conversation], page: str) -> None:
    found = {}
    for length, talk in talks.items():
        client = sign_in(talk.person)
        client.get(pages(talk)[page])
        with reading() as read:
            response = client.get(pages(talk)[page])
        assert response.status_code == 200
        found[length] = (len(read.queries), read.rows)
    assert found[LENGTHS[0]] == found[LENGTHS[1]]


def test_the_page_shows_the_last_thirty_questions_and_leads_to_the_earlier_ones_in_place(
    talks: dict[int, Conversation],
) -> None:
    talk = talks[300]
    client = sign_in(talk.person)
    page = client.get(f"/chat/{talk.pk}/").content.decode()
    assert page.count('data-query-id="q') == 30
    assert "Earlier questions (270)" in page
    assert 'href="?last=60#q271"' in page
    more = client.get(f"/chat/{talk.pk}/?last=60").content.decode()
    assert more.count('data-query-id="q') == 60
    assert 'id="q271"' in more
    assert "Earlier questions (240)" in more
    whole = client.get(f"/chat/{talk.pk}/?last=99999").content.decode()
    assert whole.count('data-query-id="q') == 300
    assert "Earlier questions" not in whole


def test_a_link_to_an_early_question_shows_it(talks: dict[int, Conversation]) -> None:
    talk = talks[300]
    page = sign_in(talk.person).get(f"/chat/{talk.pk}/?at=250").content.decode()
    assert page.count('data-query-id="q') == 51
    assert 'id="q250"' in page
    assert 'href="?at=250&amp;last=81#q250"' in page


def test_what_stands_before_a_question_is_read_without_what_stands_before_that(talks: dict[int, Conversation]) -> None:
    for length, talk in talks.items():
        with reading() as read:
            branch = branch_to(talk.tip, last=10)
        assert [run.number for run in branch] == list(range(length - 9, length + 1))
        assert read.rows <= 11  # the end itself, and the ten


def test_the_thread_over_the_api_is_whole(talks: dict[int, Conversation], server: str) -> None:
    with by_key(server, talks[300].person) as alice:
        messages = alice.get(f"/api/conversations/{talks[300].pk}").json()["messages"]
    assert [message["query_id"] for message in messages] == [f"q{number}" for number in range(1, 301)]
