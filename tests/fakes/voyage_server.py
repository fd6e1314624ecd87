"""A small server that speaks Voyage AI's embeddings and rerank: `python -m tests.fakes.voyage_server --port 0`."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fakes.outside import Answer, OutsideFake, Seen, Step, serve_by_hand
from tests.fakes.vectors import vector_of

DIMENSIONS = (256, 512, 1024, 2048)
MODELS = ("voyage-3-large", "voyage-3.5", "voyage-4-large")
RERANKERS = ("rerank-2.5", "rerank-2.5-lite")
MOST_INPUTS, MOST_TOKENS = 1_000, 120_000


@dataclass(slots=True)
class VoyageFake(OutsideFake):
    """Answers in base64 when asked to, as the SDK does; errors are `{"detail": …}`."""

    def answer(self, seen: Seen) -> Answer:
        key = seen.headers.get("authorization", "").removeprefix("Bearer ")
        if not key or key.startswith("invalid"):
            return 401, {"detail": "Provided API key is invalid."}
        match seen.path:
            case "/v1/embeddings":
                return _embeddings(seen.body)
            case "/v1/rerank":
                return _reranked(seen.body)
        return 404, {"message": "Not Found"}

    def error(self, step: Step) -> Any:
        return {"detail": "You have not yet added your payment method" if step.status == 429 else "Something broke."}

    def spoilt(self, body: Any, wrong: str) -> Any:
        data = body["data"]
        match wrong:
            case "count":
                return {**body, "data": data[1:]}
            case "form":
                return {"object": "list"}
        vector = np.full(512 if wrong == "dimension" else 1024, np.nan if wrong == "nan" else 0.1)
        return {**body, "data": [{**entry, "embedding": _packed(vector.tolist())} for entry in data]}


def _embeddings(body: dict[str, Any]) -> Answer:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    dimension = body.get("output_dimension") or 1024
    if not texts or len(texts) > MOST_INPUTS or not all(texts):
        return 400, {"detail": f"The input must be 1 to {MOST_INPUTS} texts, none of them empty."}
    if body["model"] not in MODELS or dimension not in DIMENSIONS:
        return 400, {"detail": "Model or output_dimension is not supported."}
    tokens = sum(len(text) // 4 + 1 for text in texts)
    if tokens > MOST_TOKENS:
        return 400, {"detail": f"The max allowed tokens per submitted batch is {MOST_TOKENS}."}
    vectors = [vector_of(text, dimension, kind=body.get("input_type") or "") for text in texts]
    shown = [_packed(vector) if body.get("encoding_format") == "base64" else vector for vector in vectors]
    data = [{"object": "embedding", "embedding": vector, "index": index} for index, vector in enumerate(shown)]
    return 200, {"object": "list", "data": data, "model": body["model"], "usage": {"total_tokens": tokens}}


def _packed(vector: list[float]) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def _reranked(body: dict[str, Any]) -> Answer:
    """The share of the question's words that a text has, best first."""
    if body["model"] not in RERANKERS or not body["documents"]:
        return 400, {"detail": "Model is not supported, or there are no documents."}
    asked = set(body["query"].lower().split())
    shares = [len(asked & set(text.lower().split())) / len(asked) for text in body["documents"]]
    data = [{"index": index, "relevance_score": share} for index, share in enumerate(shares)]
    data.sort(key=lambda entry: -entry["relevance_score"])
    return 200, {"object": "list", "data": data, "model": body["model"], "usage": {"total_tokens": 26}}


if __name__ == "__main__":
    serve_by_hand(VoyageFake(), __doc__)
