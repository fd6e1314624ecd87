"""What the web said to a person: kept with its question, found again by keywords, and read by nobody else."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from klerai.accounts.models import Person
from retrieval.analysis import terms
from retrieval.errors import KeywordsRefused, NoSuchWebResult
from retrieval.keyphrases import GUIDANCE as GUIDANCE
from retrieval.keyphrases import checked
from retrieval.keyword_extraction import extracted
from retrieval.models import Keyword, KeywordLink, WebResult

LONGEST_TEXT = 20_000
MOST_FOUND = 3
_MOST_QUERY_TERMS = 300


@dataclass(frozen=True, slots=True)
class Page:
    """A page the web's answer went by. `date` is what its publisher says, or empty."""

    title: str
    url: str
    snippet: str
    date: str = ""


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """An answer in which `[n]` stands for the n-th of `pages`, and the model that wrote it."""

    text: str
    pages: tuple[Page, ...]
    model: str = ""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer of an earlier search, and which of its keywords the query contains."""

    ref: str
    query: str
    answer: WebAnswer
    asked_at: datetime
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Indexed:
    """How many keywords now lead to the result, and whether some of them were there before or given twice."""

    count: int
    has_merged: bool


def keep(person_id: UUID, query: str, answer: WebAnswer, *, conversation_id: UUID, question_ref: str) -> str:
    """Store an answer with its question; the ID it has from now on, such as `web-1f09c2ab`."""
    result = WebResult.objects.create(
        person_id=person_id,
        ref=f"web-{secrets.token_hex(4)}",
        conversation_id=conversation_id,
        question_ref=question_ref,
        query=query,
        text=answer.text[:LONGEST_TEXT],
        citations=[asdict(page) for page in answer.pages],
        model=answer.model[:80],
    )
    return result.ref


@transaction.atomic
def index(
    person_id: UUID, keywords: Sequence[str], *, result_ref: str, conversation_id: UUID, question_ref: str
) -> Indexed:
    """Let the keywords lead to one of the person's results. A known keyword keeps what it leads to already.

    Raises KeywordsRefused and NoSuchWebResult; nothing is stored then.
    """
    phrases = checked(keywords)
    result = WebResult.objects.filter(person_id=person_id, ref=result_ref).first()
    if result is None:
        raise NoSuchWebResult(result_ref)
    forms = [phrase.form for phrase in phrases]
    known = Keyword.objects.filter(person_id=person_id, form__in=forms).count()
    Keyword.objects.bulk_create(
        [Keyword(person_id=person_id, form=one.form, text=one.text, terms=list(one.terms)) for one in phrases],
        ignore_conflicts=True,
    )
    KeywordLink.objects.bulk_create(
        [
            KeywordLink(keyword_id=key, result=result, conversation_id=conversation_id, question_ref=question_ref)
            for key in Keyword.objects.filter(person_id=person_id, form__in=forms).values_list("pk", flat=True)
        ],
        ignore_conflicts=True,
    )
    return Indexed(len(phrases), has_merged=known > 0 or len(phrases) < len(keywords))


def index_unnamed(conversation_id: UUID, question_ref: str) -> int:
    """Give the results of a question that no keyword leads to keywords of our own; how many got some."""
    named = 0
    for result in WebResult.objects.filter(conversation_id=conversation_id, question_ref=question_ref, links=None):
        keywords = extracted(result.query, [page["title"] for page in result.citations], result.text)
        with suppress(KeywordsRefused):
            index(
                result.person_id,
                keywords,
                result_ref=result.ref,
                conversation_id=conversation_id,
                question_ref=question_ref,
            )
            named += 1
    return named


def found_by_keywords(person: Person, query: str, *, most: int = MOST_FOUND) -> list[KeptAnswer]:
    """The person's answers with a keyword whose words all stand in the query, those with most of it first.

    Of two that have as much, the newer one.
    """
    asked = list(dict.fromkeys(terms(query)))[:_MOST_QUERY_TERMS]
    links = KeywordLink.objects.filter(
        keyword__person=person, result__person=person, keyword__terms__contained_by=asked
    ).values_list("result", "keyword__text", "keyword__terms")
    matched: defaultdict[UUID, dict[str, set[str]]] = defaultdict(dict)
    for result, text, words in links:
        matched[result][text] = set(words)
    rows = WebResult.objects.filter(person=person, pk__in=matched)
    best = sorted(rows, key=lambda row: (len(set().union(*matched[row.pk].values())), row.created_at), reverse=True)
    return [_kept(row, tuple(sorted(matched[row.pk]))) for row in best[:most]]


def forget_conversation(conversation_id: UUID) -> None:
    """What was found in a conversation goes with it, and so do the keywords that lead to nothing else."""
    results = WebResult.objects.filter(conversation_id=conversation_id)
    keywords = list(Keyword.objects.filter(links__result__in=results).values_list("pk", flat=True))
    results.delete()
    Keyword.objects.filter(pk__in=keywords, links=None).delete()


def _kept(row: WebResult, keywords: tuple[str, ...]) -> KeptAnswer:
    pages = tuple(Page(**page) for page in row.citations)
    return KeptAnswer(row.ref, row.query, WebAnswer(row.text, pages, row.model), row.created_at, keywords)
