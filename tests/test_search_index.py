"""The counts that BM25 is made of stay those of the chunks that are there."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from asgiref.sync import async_to_sync
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klerai.accounts.models import Person
from retrieval.analysis import terms
from retrieval.keyword_index import forget_document
from retrieval.models import Chunk, Document, IndexedChunk, KeywordStatistics, KnowledgeBase, PostingBlock, Term
from retrieval.postings import CHUNKS_A_BLOCK, POSTING
from retrieval.search import search
from tests.harness.knowledge import add_document, delete_document, make_base, replace_document
from tests.people import make_alice

WORDS = ("otter", "heron", "lake", "getUserName", "max_tokens", "ice")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=3)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "replace", "delete", "forget twice"]), st.integers(0, 4), TEXTS), max_size=8
)


def assert_counts_are_right(base: KnowledgeBase) -> None:
    """Every figure against those counted anew from the chunks."""
    chunks = {chunk.pk: Counter(terms(chunk.text)) for chunk in Chunk.objects.filter(knowledge_base=base)}
    having = Counter(term for counts in chunks.values() for term in counts)
    assert dict(Term.objects.filter(knowledge_base=base).values_list("lexeme", "chunks")) == having
    indexed = IndexedChunk.objects.filter(knowledge_base=base)
    numbers = dict(indexed.values_list("number", "chunk"))
    assert {
        (numbers[block * CHUNKS_A_BLOCK + int(place)], lexeme): (occurrences, length)
        for block, lexeme, packed in PostingBlock.objects.filter(term__knowledge_base=base).values_list(
            "number", "term__lexeme", "postings"
        )
        for place, occurrences, length in np.frombuffer(packed, dtype=POSTING)
    } == {
        (chunk, term): (count, sum(counts.values()))
        for chunk, counts in chunks.items()
        for term, count in counts.items()
    }
    statistics = KeywordStatistics.objects.filter(knowledge_base=base).first() or KeywordStatistics()
    assert statistics.chunks == len(chunks)
    assert statistics.total_length == sum(sum(counts.values()) for counts in chunks.values())
    assert dict(indexed.values_list("chunk", "length")) == {pk: sum(counts.values()) for pk, counts in chunks.items()}


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES)
def test_adding_replacing_and_deleting_in_any_order_leaves_exact_counts(
    changes: list[tuple[str, int, list[str]]],
) -> None:
    base = make_base(make_alice())
    documents: list[Document] = []
    for change, number, texts in changes:
        if change == "add" or not documents:
            documents.append(add_document(base, *texts))
        elif change == "replace":
            replace_document(documents[number % len(documents)], *texts)
        elif change == "delete":
            delete_document(documents.pop(number % len(documents)))
        else:
            document = documents.pop(number % len(documents))
            forget_document(document.pk)
            delete_document(document)
    assert_counts_are_right(base)


def test_chunks_beyond_one_block_of_postings_are_found_and_forgotten_as_others_are() -> None:
    alice = make_alice()
    base = make_base(alice, embedder="")
    add_document(base, "otter")
    KeywordStatistics.objects.filter(knowledge_base=base).update(next_number=CHUNKS_A_BLOCK - 2)
    crossing = add_document(base, *(f"otter lake {'ice ' * number}" for number in range(5)))
    assert PostingBlock.objects.filter(term__knowledge_base=base, term__lexeme="otter").count() == 2
    assert_counts_are_right(base)
    found = async_to_sync(search)(alice, "otter lake", knowledge_base=base.slug).passages
    assert [passage.text.count("ice") for passage in found] == [0, 1, 2, 3, 4]
    delete_document(crossing)
    assert PostingBlock.objects.filter(term__knowledge_base=base).count() == 1
    assert_counts_are_right(base)


def test_a_word_said_more_often_than_can_be_counted_counts_as_often_as_can() -> None:
    alice = make_alice()
    base = make_base(alice, embedder="")
    add_document(base, "otter " * 70_000, "heron")
    (found,) = async_to_sync(search)(alice, "otter", knowledge_base=base.slug).passages
    assert found.text.startswith("otter")


def test_documents_that_come_and_go_at_once_wait_for_each_other_without_a_deadlock() -> None:
    base = make_base(make_alice())
    old = [add_document(base, f"otter {number}", "heron lake", "ice ice") for number in range(4)]
    everything = [f"otter heron lake ice getUserName max_tokens {number} {number % 7}" for number in range(30)]

    def add(words: list[str]) -> None:
        add_document(base, *words)
        add_document(base, *reversed(words))

    work: list[Callable[[], None]] = [lambda: add(everything), lambda: add(everything[::-1])]
    work += [lambda document=document: replace_document(document, *everything[:5]) for document in old[:2]]
    work += [lambda document=document: delete_document(document) for document in old[2:]]
    start = threading.Barrier(len(work), timeout=30)

    def at_once(job: Callable[[], None]) -> None:
        try:
            start.wait()
            job()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(work)) as pool:
        list(pool.map(at_once, work))
    assert_counts_are_right(base)


def test_a_deleted_document_is_found_no_more_and_its_words_leave_no_trace_in_scores() -> None:
    alice = make_alice()
    base = make_base(alice, embedder="")
    add_document(base, "otter lake", "heron")
    before = async_to_sync(search)(alice, "otter heron", knowledge_base=base.slug)
    gone = add_document(base, "otter otter", "quartzite heron")
    delete_document(gone)
    assert async_to_sync(search)(alice, "otter heron", knowledge_base=base.slug) == before
    assert not async_to_sync(search)(alice, "quartzite", knowledge_base=base.slug).passages


def test_a_knowledge_base_and_a_person_take_their_postings_with_them() -> None:
    alice = make_alice()
    kept, gone = make_base(alice), make_base(alice)
    for base in (kept, gone):
        add_document(base, "otter lake", "heron")
    terms_gone = list(Term.objects.filter(knowledge_base=gone).values_list("pk", flat=True))
    gone.delete()
    assert not PostingBlock.objects.filter(term_id__in=terms_gone).exists()
    assert_counts_are_right(kept)
    terms_kept = list(Term.objects.filter(knowledge_base=kept).values_list("pk", flat=True))
    Person.objects.get(pk=alice.pk).delete()
    assert not PostingBlock.objects.filter(term_id__in=terms_kept).exists()
