"""Searching, and measuring the search, from the terminal."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.core.management.base import CommandError

from klerai.accounts.models import Person
from retrieval.models import KnowledgeBase
from retrieval.passages import found_json
from retrieval.search import search
from tests.harness.knowledge import add_embedded, make_base
from tests.people import make_alice, make_charlie


@pytest.fixture(scope="module")
def library(database: object) -> tuple[Person, KnowledgeBase]:
    alice = make_alice()
    base = make_base(alice)
    texts = {"otters": "Otters live in rivers.", "herons": "Herons eat fish.", "trains": "Trains leave at noon."}
    for name, text in texts.items():
        add_embedded(base, text, f"More on {name}.", external_id=name, title=name.title())
    return alice, base


def printed(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


def refused(*arguments: str) -> tuple[str, int]:
    with pytest.raises(CommandError) as error:
        printed(*arguments)
    return str(error.value), error.value.returncode


def test_search_prints_the_best_passages(library: tuple[Person, KnowledgeBase]) -> None:
    alice, base = library
    assert printed("search", "where do otters live", "--kb", base.slug, "--user", alice.email).startswith(
        "1. Otters\n   Otters live in rivers."
    )


def test_json_is_what_the_search_endpoint_answers(library: tuple[Person, KnowledgeBase]) -> None:
    alice, base = library
    out = printed("search", "otters", "--kb", base.slug, "--user", alice.email, "--json", "--limit", "2")
    found = async_to_sync(search)(alice, "otters", knowledge_base=base.slug, limit=2)
    assert json.loads(out) == found_json(found)
    first = json.loads(out)["results"][0]
    assert first["document"]["external_id"] == "otters"
    assert set(first["ranks"]) == set(first["scores"]) == {"keyword", "vector", "fused", "reranked"}


def test_explain_shows_every_stage(library: tuple[Person, KnowledgeBase]) -> None:
    alice, base = library
    out = printed("search", "otters", "--kb", base.slug, "--user", alice.email, "--explain")
    best = async_to_sync(search)(alice, "otters", knowledge_base=base.slug).passages[0]
    for said in ("keyword", "vector", "fused", "reranked", f"#1 {best.scores.keyword:.4f}", f"{best.scores.fused:.4f}"):
        assert said in out


def test_a_stranger_and_nobody_are_told_that_there_is_no_such_knowledge_base(
    library: tuple[Person, KnowledgeBase],
) -> None:
    _, base = library
    charlie = make_charlie()
    for reader in ([], ["--user", charlie.email]):
        assert refused("search", "otters", "--kb", base.slug, *reader) == (
            f"There is no knowledge base “{base.slug}”.",
            2,
        )
    assert refused("search", "otters", "--user", "nobody@example.org")[1] == 2
    assert refused("search", "otters", "--limit", "0")[1] == 2


def judged(folder: Path, *lines: dict[str, Any] | str) -> str:
    file = folder / "questions.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return str(file)


def test_evaluate_search_prints_legs_and_figures(library: tuple[Person, KnowledgeBase], tmp_path: Path) -> None:
    alice, base = library
    file = judged(
        tmp_path,
        {"id": "1", "query": "where do otters live", "relevant": {"otters": 2, "herons": 1}},
        {"id": "2", "query": "when do trains leave", "relevant": {"nothing like it": 1}},
    )
    out = printed("evaluate_search", file, "--kb", base.slug, "--user", alice.email, "--json")
    first, second, last = map(json.loads, out.splitlines())
    assert first["id"] == "1"
    assert first["legs"]["reranked"] is None
    assert first["legs"]["keyword"][0] == first["legs"]["fused"][0] == "otters"
    assert sorted(first["legs"]["vector"]) == ["herons", "otters", "trains"]
    assert second["legs"]["keyword"] == ["trains"]
    summary = last["summary"]
    assert set(summary) == {
        f"{leg}.{figure}@10" for leg in ("keyword", "vector", "fused") for figure in ("ndcg", "recall", "mrr")
    }
    assert summary["keyword.mrr@10"] == 0.5
    assert summary["fused.recall@10"] == 0.5
    assert 0.4 < summary["fused.ndcg@10"] <= 0.5
    assert "nDCG@10" in printed("evaluate_search", file, "--kb", base.slug, "--user", alice.email)


def test_evaluate_search_says_what_is_wrong_with_its_file(tmp_path: Path) -> None:
    for line in ("not json", {"id": "1", "query": "x"}, {"id": "1", "query": "x", "relevant": ["x"]}):
        said, code = refused("evaluate_search", judged(tmp_path, line), "--kb", "default_kb")
        assert "has a line that is no judged query" in said
        assert code == 2
    assert "cannot be read" in refused("evaluate_search", str(tmp_path / "none"), "--kb", "default_kb")[0]
