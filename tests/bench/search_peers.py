"""What others search with in one process, as far as it is installed, for bench_search."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from retrieval.analysis import terms
from retrieval.embedders.wordllama import WordLlama

Work = Callable[[str], Awaitable[object]]
Make = Callable[["Library"], Awaitable[Work]]
DEPTH = 20


class Library:
    """What all peers are given: the texts, their terms and the vectors, which are multiplied with a query's at once."""

    def __init__(self, texts: Sequence[str], vectors: Any) -> None:
        self.texts = list(texts)
        self.terms = {text: terms(text) for text in texts}
        self._vectors = np.array(vectors)

    @classmethod
    async def of(cls, texts: Sequence[str]) -> Library:
        return cls(texts, await WordLlama().batch_embed(texts))

    def terms_of(self, text: str) -> list[str]:
        return self.terms.get(text) or terms(text)

    def nearest(self, query: str) -> list[tuple[int, float]]:
        scores = self._vectors @ asyncio.run(WordLlama().embed(query))
        best = np.argpartition(-scores, DEPTH)[:DEPTH]
        return [(int(number), float(scores[number])) for number in best[np.argsort(-scores[best])]]


def peers() -> dict[str, Make]:
    found: dict[str, Make] = {"rank_bm25, same tokens (keyword only)": _rank_bm25}
    for package, name, make in (
        ("langchain_classic", "LangChain EnsembleRetriever", _langchain),
        ("llama_index", "LlamaIndex QueryFusionRetriever", _llama_index),
    ):
        if find_spec(package):
            found[name] = make
        else:
            print(f"{name} is not installed: `uv sync --group peers` has it.")
    return found


async def _rank_bm25(library: Library) -> Work:
    from rank_bm25 import BM25Okapi

    index = BM25Okapi([library.terms[text] for text in library.texts])

    async def work(query: str) -> object:
        return np.argsort(-index.get_scores(terms(query)))[:DEPTH]

    return work


async def _langchain(library: Library) -> Work:
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Vectors(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content=library.texts[number]) for number, _ in library.nearest(query)]

    keyword = BM25Retriever.from_texts(library.texts, preprocess_func=library.terms_of, k=DEPTH)
    both = EnsembleRetriever(retrievers=[keyword, Vectors()], weights=[0.5, 0.5])
    return lambda query: asyncio.to_thread(both.invoke, query)


async def _llama_index(library: Library) -> Work:
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = [TextNode(text=text, id_=str(number)) for number, text in enumerate(library.texts)]

    class Vectors(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            found = library.nearest(query_bundle.query_str)
            return [NodeWithScore(node=nodes[number], score=score) for number, score in found]

    keyword = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=DEPTH)
    both = QueryFusionRetriever(
        [keyword, Vectors()],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        similarity_top_k=DEPTH,
        num_queries=1,
        use_async=False,
    )
    return lambda query: asyncio.to_thread(both.retrieve, query)
