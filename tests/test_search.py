"""Finding passages: true BM25 beside vectors, over what a person may read and nothing else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klerai.accounts.models import Person
from klerai.env import BadSetting, Environment
from retrieval.analysis import terms
from retrieval.errors import NoSuchKnowledgeBase
from retrieval.knowledge import DEFAULT_SLUG
from retrieval.models import KnowledgeBase
from retrieval.passages import Found
from retrieval.ranking import Wanted, passages_in
from retrieval.scope import scope_in
from retrieval.search import search
from tests.harness.knowledge import add_document, add_embedded, make_base
from tests.people import make_alice, make_charlie

WORDS = ("otter", "heron", "lake", "river", "stone", "maxTokens", "reed", "ice")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
find = async_to_sync(search)


def bm25(query: str, texts: Sequence[str], *, k1: float = 1.5, b: float = 0.75) -> dict[str, float]:
    """The textbook's score of each text that has a word of the query."""
    corpus = [Counter(terms(f"\n{text}")) for text in texts]
    mean = sum(sum(text.values()) for text in corpus) / len(corpus)
    scores: dict[str, float] = {}
    for written, text in zip(texts, corpus, strict=True):
        score = 0.0
        for term in set(terms(query)) & set(text):
            having = sum(term in other for other in corpus)
            idf = math.log(1 + (len(corpus) - having + 0.5) / (having + 0.5))
            length = 1 - b + b * sum(text.values()) / mean
            score += idf * text[term] * (k1 + 1) / (text[term] + k1 * length)
        if score:
            scores[written] = score
    return scores


def keyword_scores(found: Found) -> dict[str, float]:
    return {passage.text: passage.scores.keyword or 0 for passage in found.passages}


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(TEXTS, min_size=1, max_size=15, unique=True), query=TEXTS)
def test_the_keyword_leg_is_the_textbooks_bm25(texts: list[str], query: str) -> None:
    alice = make_alice()
    base = make_base(alice, embedder="")
    for text in texts[1:]:
        add_document(base, text)
    add_document(base, texts[0])
    found = find(alice, query, knowledge_base=base.slug, limit=100)
    assert keyword_scores(found) == pytest.approx(bm25(query, texts), rel=1e-6)
    ranks = [passage.ranks.keyword for passage in found.passages]
    assert ranks == list(range(1, len(ranks) + 1))


@override_settings(BM25_K1=0.9, BM25_B=0.4)
def test_k1_and_b_are_settings_that_need_no_new_index() -> None:
    alice, texts = make_alice(), ["otter otter lake", "otter river river stone reed ice", "heron"]
    base = make_base(alice, embedder="")
    add_document(base, *texts)
    found = find(alice, "otter river", knowledge_base=base.slug)
    assert keyword_scores(found) == pytest.approx(bm25("otter river", texts, k1=0.9, b=0.4), rel=1e-6)


@pytest.mark.parametrize("value", ["-1", "10.5", "much", "nan", "inf"])
def test_a_nonsensical_k1_stops_the_start_with_its_name(value: str) -> None:
    with pytest.raises(BadSetting, match=r"BM25_K1 is .*; it must be a number from 0 to 10\."):
        Environment({"BM25_K1": value}).number("BM25_K1", 1.5, at_least=0, at_most=10)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(TEXTS, min_size=3, max_size=15, unique=True), query=TEXTS)
def test_with_few_postings_to_spend_the_rarest_word_counts_alone(texts: list[str], query: str) -> None:
    base = make_base(make_alice(), embedder="")
    add_document(base, *texts)
    having = Counter(term for written in texts for term in set(terms(written)))
    known = sorted((having[term], term) for term in set(terms(query)) if having[term])
    found = passages_in(scope_in([base]), Wanted(frozenset(terms(query))), most=100, budget=1)
    scores = {passage.text: passage.scores.keyword for passage in found}
    assert scores == pytest.approx(bm25(known[0][1], texts) if known else {}, rel=1e-6)


def test_an_identifier_is_found_however_it_is_written() -> None:
    alice = make_alice()
    base = make_base(alice)
    add_embedded(base, "Pass max_tokens to bound the answer.", "Otters live in rivers.", "Tokens are counted.")
    for query in ("maxTokens", "MAX_TOKENS", "max-tokens", "client.max_tokens"):
        assert find(alice, query, knowledge_base=base.slug).passages[0].text.startswith("Pass max_tokens")


def test_a_passage_carries_the_rank_and_the_score_of_every_stage() -> None:
    alice = make_alice()
    base = make_base(alice)
    document = add_embedded(
        base, "Daily credits reset at midnight.", "Herons eat fish.", external_id="credits", title="Credits"
    )
    best, other = find(alice, "When do credits reset?", knowledge_base=base.slug).passages
    assert (best.document_id, best.external_id, best.title) == (document.pk, "credits", "Credits")
    assert document.text[best.start : best.end] == best.text
    assert best.knowledge_base == base.slug
    assert (best.ranks.keyword, best.ranks.vector, best.ranks.fused, best.ranks.reranked) == (1, 1, 1, None)
    assert (other.ranks.keyword, other.ranks.vector, other.ranks.fused) == (None, 2, 2)
    assert other.scores.keyword == 0
    assert best.scores.fused == pytest.approx(0.5 + 0.5 * ((best.scores.vector or 0) + 1) / 2)


@override_settings(SEARCH_FUSION="reciprocal_rank")
def test_ranks_can_be_fused_in_place_of_scores() -> None:
    alice = make_alice()
    base = make_base(alice)
    add_embedded(base, "Daily credits reset at midnight.", "Herons eat fish.")
    best, other = find(alice, "When do credits reset?", knowledge_base=base.slug).passages
    assert (best.scores.fused, other.scores.fused) == (pytest.approx(2 / 61), pytest.approx(1 / 62))


def test_words_nobody_wrote_still_find_what_is_near() -> None:
    alice = make_alice()
    base = make_base(alice)
    add_embedded(base, "The physician prescribed a medicine.", "The train leaves at noon.")
    best = find(alice, "doctors", knowledge_base=base.slug).passages[0]
    assert best.text.startswith("The physician")
    assert best.ranks.keyword is None


def test_more_words_widen_the_search_by_keyword_and_weigh_less_than_the_query_itself() -> None:
    alice = make_alice()
    base = make_base(alice, embedder="")
    add_document(base, "otter alone", "heron alone", "stone alone")
    assert len(find(alice, "otter", knowledge_base=base.slug).passages) == 1
    widened = find(alice, "otter", knowledge_base=base.slug, more_words="heron otters").passages
    assert [passage.text for passage in widened] == ["otter alone", "heron alone"]
    assert widened[1].scores.keyword == pytest.approx((widened[0].scores.keyword or 0) / 2)


@pytest.mark.parametrize("query", ["", " \n\t", "\0\0", "\u200b"])
def test_a_blank_query_finds_nothing(query: str) -> None:
    alice = make_alice()
    base = make_base(alice)
    add_embedded(base, "otter")
    assert find(alice, query, knowledge_base=base.slug) == Found(())


@pytest.mark.parametrize(
    "query",
    [
        *(
            "otter\0",
            "'; DROP TABLE retrieval_chunk; --",
            "%s %(scope)s %",
            "{leg} {}",
            "\ud800 otter",
            "😀🎉",
            "\\",
            "“”",
        ),
        *("otter " * 5_500, "x" * 33_000, " ".join(f"word{number}" for number in range(4_000))),
    ],
    ids=lambda query: ascii(query[:12]),
)
def test_any_text_is_a_fine_query(query: str) -> None:
    alice = make_alice()
    base = make_base(alice)
    add_embedded(base, "An otter’s lake.", "A heron.")
    found = find(alice, query, knowledge_base=base.slug)
    assert not found.degraded
    assert len(found.passages) == 2
    if "otter" in query:
        assert found.passages[0].text == "An otter’s lake."


def test_several_knowledge_bases_are_counted_as_one() -> None:
    alice = make_alice()
    one, two = make_base(alice, embedder=""), make_base(alice, embedder="")
    texts = ["otter lake", "otter otter stone reed", "quartzite otter", "quartzite reed ice ice"]
    add_document(one, *texts[:3])
    add_document(two, *texts[3:])
    both = passages_in(scope_in([one, two]), Wanted(frozenset(terms("otter quartzite"))), most=100)
    scores = {passage.text: passage.scores.keyword for passage in both}
    assert scores == pytest.approx(bm25("otter quartzite", texts))
    found = find(alice, "otter quartzite", limit=100)
    assert {one.slug, two.slug} <= {passage.knowledge_base for passage in found.passages}


def test_a_stranger_finds_nothing_of_it_and_is_told_that_it_does_not_exist() -> None:
    alice, charlie = make_alice(), make_charlie()
    base = make_base(alice)
    add_embedded(base, "The canary sings at zephyrhollow.")
    assert find(alice, "zephyrhollow").passages
    for person in (charlie, None):
        assert all("zephyrhollow" not in passage.text for passage in find(person, "zephyrhollow", limit=100).passages)
        with pytest.raises(NoSuchKnowledgeBase):
            find(person, "zephyrhollow", knowledge_base=base.slug)


def test_what_strangers_have_changes_neither_results_nor_scores() -> None:
    alice, charlie = make_alice(), make_charlie()
    base = make_base(alice)
    add_embedded(base, "An otter by the lake.", "A heron by the river.", "Otters and herons.")
    before = find(alice, "otter heron lake", knowledge_base=base.slug)
    theirs = make_base(charlie, slug=base.slug)
    for _ in range(3):
        add_embedded(theirs, "otter otter heron lake", "heron", "lake " * 40)
    assert find(alice, "otter heron lake", knowledge_base=base.slug) == before


@pytest.mark.thorough
def test_of_fifty_tenants_nobody_ever_finds_a_canary_of_another() -> None:
    people = [make_alice() for _ in range(50)]
    canaries = [f"canary{number:02d}qx" for number in range(50)]
    bases = [make_base(person, slug="papers") for person in people]
    for base, canary in zip(bases, canaries, strict=True):
        for number in range(20):
            add_embedded(base, f"Report {number} on otters, herons and the lake says {canary} in secret.")
    async_to_sync(_prowl)(people, canaries)
    for number, base in enumerate(bases):
        victim = canaries[number - 1]
        assert not [text for text in _raw(base, victim) if victim in text]


async def _prowl(people: Sequence[Person], canaries: Sequence[str]) -> None:
    """Everybody quotes somebody else's secret, in every way a search can be asked for."""
    for number, (person, own) in enumerate(zip(people, canaries, strict=True)):
        victim = canaries[number - 7]
        for query in (victim, f"Report on otters says {victim} in secret.", f"' OR owner_id IS NOT NULL -- {victim}"):
            for slug in (DEFAULT_SLUG, "papers"):
                found = await search(person, query, knowledge_base=slug, limit=100)
                papers = [passage for passage in found.passages if passage.knowledge_base == "papers"]
                assert len(papers) == 20
                assert all(own in passage.text for passage in papers)
        for slug in ("papers' OR '1'='1", "papers%", "", str(person.pk)):
            with pytest.raises(NoSuchKnowledgeBase):
                await search(person, victim, knowledge_base=slug)


def _raw(base: KnowledgeBase, word: str) -> list[str]:
    """What is found of a word by keyword in one knowledge base, whoever asks."""
    found = passages_in(scope_in([base]), Wanted(frozenset(terms(word))), most=100)
    return [passage.text for passage in found]
