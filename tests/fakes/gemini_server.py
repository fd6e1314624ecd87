"""A small server that speaks Gemini's embeddings, v1 and v1beta: `python -m tests.fakes.gemini_server --port 0`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.fakes.outside import Answer, OutsideFake, Seen, Step, serve_by_hand
from tests.fakes.vectors import vector_of

MODEL = "models/gemini-embedding-001"
MOST_REQUESTS = 100
NORMALISED_DIMENSION = 3072
_PATH = re.compile(r"/v1(?:beta)?/(models/[\w.-]+):(batchEmbedContents|embedContent)")
_STATUSES = {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 403: "PERMISSION_DENIED"}
_LENGTH = 0.6


@dataclass(slots=True)
class GeminiFake(OutsideFake):
    """Vectors of fewer than 3072 numbers are not of unit length, as the real ones; a bad key is a 400."""

    waits_by_body: ClassVar[bool] = True

    def answer(self, seen: Seen) -> Answer:
        path = _PATH.fullmatch(seen.path)
        if path is None or path[1] != MODEL:
            return 404, _error(404, "NOT_FOUND", f"{seen.path} is not found")
        key = seen.headers.get("x-goog-api-key") or seen.params.get("key", "")
        if not key or key.startswith("invalid"):
            reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            return 400, _error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", reason)
        if path[2] == "embedContent":
            return 200, {"embedding": _embedding(seen.body)}
        requests = seen.body["requests"]
        if not 1 <= len(requests) <= MOST_REQUESTS:
            return 400, _error(400, "INVALID_ARGUMENT", f"at most {MOST_REQUESTS} requests can be in one batch")
        if any(request.get("model") != MODEL for request in requests):
            return 400, _error(400, "INVALID_ARGUMENT", "every request has to name the model")
        return 200, {"embeddings": [_embedding(request) for request in requests]}

    def error(self, step: Step) -> Any:
        details = []
        if step.wait is not None:
            details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{step.wait}s"}]
        return _error(step.status, _STATUSES.get(step.status, "UNKNOWN"), "Resource exhausted", *details)

    def spoilt(self, body: Any, wrong: str) -> Any:
        rows = body["embeddings"]
        match wrong:
            case "count":
                return {"embeddings": rows[1:]}
            case "form":
                return {"embedding": rows}
            case "dimension":
                return {"embeddings": [{"values": row["values"][:-1]} for row in rows]}
        return {"embeddings": [{"values": [float("nan")] * len(row["values"])} for row in rows]}


def _embedding(request: dict[str, Any]) -> dict[str, Any]:
    dimension = request.get("outputDimensionality", NORMALISED_DIMENSION)
    text = " ".join(part["text"] for part in request["content"]["parts"])
    length = 1 if dimension == NORMALISED_DIMENSION else _LENGTH
    return {"values": [length * number for number in vector_of(text, dimension, kind=request.get("taskType", ""))]}


def _error(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


if __name__ == "__main__":
    serve_by_hand(GeminiFake(), __doc__)
