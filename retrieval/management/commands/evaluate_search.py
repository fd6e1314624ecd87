"""`manage.py evaluate_search`: how well each leg of the search finds what people judged relevant."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError

from klerai.accounts.models import Person
from retrieval.embedders.choosing import reranker_by_settings
from retrieval.errors import NoSuchKnowledgeBase
from retrieval.evaluation import Figures, figures
from retrieval.management.commands.search import person_named
from retrieval.passages import Passage
from retrieval.ranking import MOST_FUSED, rank
from retrieval.search import CANDIDATES, search

LEGS = ("keyword", "vector", "fused", "reranked")
DOCUMENTS = 20


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    query: str
    relevant: Mapping[str, float]


Legs = dict[str, list[str] | None]


class Command(BaseCommand):
    help = "Prints nDCG@10, recall@10 and MRR@10 of each leg of the search over judged queries."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help='JSON lines: {"id", "query", "relevant": {"external_id": grade}}')
        parser.add_argument("--kb", required=True, metavar="SLUG")
        parser.add_argument("--user", metavar="EMAIL", help="search as this person")
        parser.add_argument("--json", action="store_true", help="a line a case and the summary last")

    def handle(self, *args: Any, **options: Any) -> None:
        cases = _read(Path(options["file"]))
        person = person_named(options["user"])
        try:
            found, degraded = async_to_sync(_search_all)(person, cases, options["kb"])
        except NoSuchKnowledgeBase as error:
            raise CommandError(str(error), returncode=2) from error
        for sentence in sorted(degraded):
            self.stderr.write(sentence)
        if options["json"]:
            for case, legs in zip(cases, found, strict=True):
                self.stdout.write(json.dumps({"id": case.id, "legs": legs}, ensure_ascii=False))
            self.stdout.write(json.dumps({"summary": _summary(cases, found)}))
            return
        self.stdout.write(f"{len(cases)} queries     nDCG@10  recall@10  MRR@10")
        for leg, mean in _means(cases, found).items():
            self.stdout.write(f"{leg:<16} {mean.ndcg:7.3f}  {mean.recall:9.3f}  {mean.mrr:6.3f}")


def _read(file: Path) -> list[Case]:
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [
            Case(
                str(line["id"]),
                str(line["query"]),
                {str(name): float(grade) for name, grade in line["relevant"].items()},
            )
            for line in lines
        ]
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.", returncode=2) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"{file} has a line that is no judged query: {error}.", returncode=2) from error


async def _search_all(person: Person | None, cases: Sequence[Case], slug: str) -> tuple[list[Legs], set[str]]:
    found: list[Legs] = []
    degraded: set[str] = set()
    rerank = reranker_by_settings()
    for case in cases:
        ranked = await rank(person, case.query, knowledge_base=slug, most=MOST_FUSED)
        degraded.update(ranked.degraded)
        legs: Legs = {leg: _documents(ranked.passages, leg) for leg in LEGS}
        if rerank is not None:
            last = await search(person, case.query, knowledge_base=slug, limit=CANDIDATES, rerank=rerank)
            degraded.update(last.degraded)
            legs["reranked"] = _documents(last.passages, "reranked")
        found.append(legs)
    return found, degraded


def _documents(passages: Sequence[Passage], leg: str) -> list[str] | None:
    """The documents of a leg by their best passage; None when it did not run or saw nothing."""
    placed = {place: passage for passage in passages if (place := getattr(passage.ranks, leg)) is not None}
    names = (placed[place].external_id or str(placed[place].document_id) for place in sorted(placed))
    return list(dict.fromkeys(names))[:DOCUMENTS] or (None if leg == "reranked" else [])


def _means(cases: Sequence[Case], found: Sequence[Legs]) -> dict[str, Figures]:
    each = {
        leg: [figures(legs[leg] or [], case.relevant) for case, legs in zip(cases, found, strict=True)]
        for leg in LEGS
        if any(legs[leg] is not None for legs in found)
    }
    return {leg: Figures.mean(one) for leg, one in each.items()}


def _summary(cases: Sequence[Case], found: Sequence[Legs]) -> dict[str, float]:
    return {
        f"{leg}.{name}@10": round(getattr(mean, name), 4)
        for leg, mean in _means(cases, found).items()
        for name in ("ndcg", "recall", "mrr")
    }
