"""What fails on the way of a search costs its stage, and is said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from asgiref.sync import async_to_sync
from pytest_django import Settings

from retrieval.embedders.choosing import embedder_named
from retrieval.search import search
from tests.fakes.ollama_server import OllamaFake
from tests.harness.knowledge import add_document, add_embedded, make_base
from tests.people import make_alice

find = async_to_sync(search)


async def by_length(query: str, texts: Sequence[str]) -> list[float]:
    return [float(len(text)) for text in texts]


async def broken(query: str, texts: Sequence[str]) -> list[float]:
    raise RuntimeError("out of order")


async def too_few(query: str, texts: Sequence[str]) -> list[float]:
    return [1.0]


async def not_numbers(query: str, texts: Sequence[str]) -> list[float]:
    return [float("nan") for _ in texts]


def test_without_an_embedder_the_words_find_and_it_is_said() -> None:
    alice = make_alice()
    base = make_base(alice, embedder="")
    add_document(base, "An otter.", "A heron.")
    found = find(alice, "otter", knowledge_base=base.slug)
    assert [passage.text for passage in found.passages] == ["An otter."]
    assert found.passages[0].ranks.vector is None
    assert found.degraded == ("There is no embedder, so passages were found by keyword only.",)


def test_an_embedder_that_is_not_set_up_here_is_named() -> None:
    alice = make_alice()
    base = make_base(alice, embedder="voyage/voyage-3-large/1024")
    add_document(base, "An otter.")
    found = find(alice, "otter", knowledge_base=base.slug)
    assert len(found.passages) == 1
    assert found.degraded == (
        "The embedder voyage/voyage-3-large/1024 is not set up here, so passages were found by keyword only.",
    )


def test_an_embedder_that_does_not_answer_is_said_with_its_reason(settings: Settings) -> None:
    settings.OLLAMA_BASE_URL = "http://127.0.0.1:9"
    alice = make_alice()
    base = make_base(alice, embedder="ollama/nomic-embed-text/768")
    add_document(base, "An otter.")
    found = find(alice, "otter", knowledge_base=base.slug)
    assert [passage.text for passage in found.passages] == ["An otter."]
    (said,) = found.degraded
    assert "OLLAMA_BASE_URL" in said
    assert said.endswith("So passages were found by keyword only.")


def test_vectors_of_a_service_find_what_words_do_not(ollama_fake: OllamaFake) -> None:
    alice = make_alice()
    base = make_base(alice, embedder="ollama/nomic-embed-text/768")
    add_document(base, "Credits reset at midnight.", "Herons eat fish.", by=embedder_named(base.embedder))
    found = find(alice, "credits", knowledge_base=base.slug)
    assert not found.degraded
    assert (found.passages[0].ranks.keyword, found.passages[0].ranks.vector) == (1, 1)


def test_knowledge_bases_of_different_embedders_are_searched_at_once(ollama_fake: OllamaFake) -> None:
    alice = make_alice()
    by_ollama, by_wordllama = make_base(alice, embedder="ollama/nomic-embed-text/768"), make_base(alice)
    add_document(by_ollama, "Credits reset at midnight.", by=embedder_named(by_ollama.embedder))
    add_embedded(by_wordllama, "The credit is renewed each day.")
    found = find(alice, "credits", limit=100)
    mine = {p.knowledge_base: p for p in found.passages if p.knowledge_base in (by_ollama.slug, by_wordllama.slug)}
    assert len(mine) == 2
    assert all(passage.ranks.vector is not None for passage in mine.values())
    assert not found.degraded


def test_an_embedder_missing_from_one_knowledge_base_leaves_the_others_theirs() -> None:
    alice = make_alice()
    with_vectors, without = make_base(alice), make_base(alice, embedder="")
    add_embedded(with_vectors, "The physician prescribed quartzite.")
    add_document(without, "Nothing but quartzite here.")
    found = find(alice, "quartzite doctor", limit=100)
    mine = {p.text: p for p in found.passages if p.knowledge_base in (with_vectors.slug, without.slug)}
    assert mine["The physician prescribed quartzite."].ranks.vector is not None
    assert mine["Nothing but quartzite here."].ranks.vector is None
    assert mine["Nothing but quartzite here."].ranks.keyword is not None
    assert len(found.degraded) == 1


def test_an_empty_knowledge_base_degrades_nothing() -> None:
    alice = make_alice()
    base = make_base(alice, embedder="")
    found = find(alice, "otter", knowledge_base=base.slug)
    assert (found.passages, found.degraded) == ((), ())


def test_a_reranker_has_the_last_word_on_the_first_twenty() -> None:
    alice = make_alice()
    base = make_base(alice, embedder="")
    add_document(base, *(f"otter {'lake ' * number}" for number in range(30)))
    fused = find(alice, "otter", knowledge_base=base.slug, limit=30).passages
    found = find(alice, "otter", knowledge_base=base.slug, rerank=by_length)
    best = max(fused[:20], key=lambda passage: len(passage.text))
    assert len(found.passages) == 5
    assert found.passages[0].text == best.text
    assert found.passages[0].ranks.fused == best.ranks.fused
    assert [passage.ranks.reranked for passage in found.passages] == [1, 2, 3, 4, 5]
    assert found.passages[0].scores.reranked == len(best.text)


@pytest.mark.parametrize("rerank", [broken, too_few, not_numbers])
def test_without_its_reranker_a_search_keeps_the_first_order_and_says_so(rerank: object) -> None:
    alice = make_alice()
    base = make_base(alice)
    add_embedded(base, "An otter.", "A heron.")
    plain = find(alice, "otter", knowledge_base=base.slug)
    found = find(alice, "otter", knowledge_base=base.slug, rerank=rerank)
    assert found.passages == plain.passages
    assert found.degraded == ("Reranking failed, so passages stand in the order of the first search.",)
