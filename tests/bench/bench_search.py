"""A hybrid search over many chunks, beside the in-process stacks that people use for one, in the same run.

    uv run --group peers python -m tests.bench.bench_search [--chunks 100000] [--queries 200] [--vocabulary FILE]

The text is made up: words of FILE (a corpus in JSON Lines; else of our own pages) as often as Zipf's law has them, and
as many rare names beside them. It is ingested by the product's own path into a scratch embedded PostgreSQL. The peers
get the same tokens, the same vectors and a vector search by one matrix product, which is kinder than their own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import psycopg

from klerai.postgres import APP, OWNER, EmbeddedServer

ROOT = Path(__file__).resolve().parent.parent.parent
WORDS_A_CHUNK, SPREAD = 147, 30
SLUG, TOP = "bench", 10
PEER_QUERIES, EXACT_QUERIES, WARM_UPS = 10, 50, 10
ENDINGS = ("ware", "ism", "ette", "ology", "port", "wick", "ford", "berg", "stad", "mont")


def make_texts(count: int, vocabulary: Path | None) -> list[str]:
    if vocabulary is not None:
        source = " ".join(json.loads(line)["text"] for line in vocabulary.read_text().splitlines())
    else:
        source = " ".join(file.read_text() for file in (ROOT / "README.md", *sorted(ROOT.glob("*/*.py"))))
    words = [word for word, _ in Counter(re.findall(r"\w+", source)).most_common()]
    words += [f"{word}{ending}" for word in words[200:700] for ending in ENDINGS]
    share = 1 / np.arange(1, len(words) + 1)
    random = np.random.default_rng(1)
    lengths = np.clip(random.normal(WORDS_A_CHUNK, SPREAD, count).astype(int), 20, 2 * WORDS_A_CHUNK)
    drawn = random.choice(np.array(words, dtype=object), int(lengths.sum()), p=share / share.sum())
    return [" ".join(part) for part in np.split(drawn, lengths.cumsum()[:-1])]


def make_queries(texts: Sequence[str], count: int) -> list[str]:
    """Three to nine words that stand in one text."""
    random = np.random.default_rng(7)
    sources = (texts[number].split() for number in random.choice(len(texts), count))
    return [" ".join(random.choice(words, int(random.integers(3, 10)))) for words in sources]


async def clocked(name: str, work: Callable[[str], Awaitable[object]], queries: Sequence[str]) -> float:
    for query in queries[:WARM_UPS]:
        await work(query)
    took = []
    for query in queries:
        begun = time.perf_counter()
        await work(query)
        took.append(1000 * (time.perf_counter() - begun))
    middle, late = statistics.quantiles(took, n=100)[49::45][:2]
    print(f"  {name:<44} p50 {middle:8.1f} ms  p95 {late:8.1f} ms")
    return middle


async def ingest(texts: Sequence[str]) -> None:
    from klerai.database import in_database
    from retrieval.ingestion.corpus import Row, batches_of, store
    from retrieval.knowledge import written

    base = await in_database(written, None, SLUG)
    begun = time.perf_counter()
    for batch in batches_of(Row(str(number), "", text) for number, text in enumerate(texts)):
        await store(base, batch)
    seconds = time.perf_counter() - begun
    print(f"ingested {len(texts):,} chunks in {seconds:.0f} s: {len(texts) / seconds:.0f} a second")


def index(owner_url: str) -> None:
    from retrieval.vector_index import ensure_indexes

    begun = time.perf_counter()
    ensure_indexes()
    print(f"made the index of vectors in {time.perf_counter() - begun:.0f} s")
    with psycopg.connect(owner_url, autocommit=True) as db:
        db.execute("VACUUM (ANALYZE)")  # as autovacuum does within a few minutes


async def measure(queries: Sequence[str]) -> float:
    from retrieval.search import search
    from tests.bench.search_legs import keyword_leg, same_as_exact, vector_leg

    print(f"{len(queries)} queries, one at a time")
    ours = await clocked(
        "search(): both legs, fused, 20 passages", lambda q: search(None, q, knowledge_base=SLUG, limit=20), queries
    )
    await clocked("keyword leg alone", await keyword_leg(SLUG), queries)
    await clocked("vector leg alone", await vector_leg(SLUG), queries)
    shared = await same_as_exact(SLUG, queries[:EXACT_QUERIES], top=TOP)
    print(f"  of exact BM25's first {TOP}, the keyword leg has {shared:.1%}")
    return ours


async def measure_peers(texts: Sequence[str], queries: Sequence[str], ours: float) -> None:
    from tests.bench.search_peers import Library, peers

    library = await Library.of(texts)
    for name, make in peers().items():
        begun = time.perf_counter()
        work = await make(library)
        print(f"{name}: built in {time.perf_counter() - begun:.0f} s", flush=True)
        theirs = await clocked(name, work, queries[:PEER_QUERIES])
        print(f"  {theirs / ours:.1f} × ours")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--vocabulary", type=Path)
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    texts = make_texts(options.chunks, options.vocabulary)
    queries = make_queries(texts, options.queries)
    with tempfile.TemporaryDirectory(prefix="klerai-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # the way through for the account the server runs as
        server = EmbeddedServer(Path(folder) / "data")
        server.start()
        try:
            os.environ |= {"DATABASE_URL": server.url(OWNER), "SECRET_KEY": "bench-" + "x" * 50}
            os.environ |= {"DJANGO_SETTINGS_MODULE": "klerai.settings", "KLERAI_EMBEDDER": "wordllama"}
            subprocess.run([sys.executable, ROOT / "manage.py", "migrate", "--verbosity=0"], check=True, cwd=ROOT)
            os.environ["DATABASE_URL"] = server.url(APP)

            import django

            django.setup()
            asyncio.run(ingest(texts))
            index(server.url(OWNER))
            ours = asyncio.run(measure(queries))
            if not options.no_peers:
                asyncio.run(measure_peers(texts, queries, ours))
            from django.db import connection

            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's has one
        finally:
            server.stop()


if __name__ == "__main__":
    main()
