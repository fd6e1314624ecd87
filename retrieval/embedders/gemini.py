"""Google's Gemini embeddings, over its HTTP interface."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import httpx2
from django.conf import settings

from klerai.http import vendor_client
from retrieval.embedders.asking import Fault, Patience, Vendor, ask, fault_of_status, post, rejected_key, unreadable
from retrieval.embedders.base import Vector
from retrieval.embedders.batches import Limits, embed_in_batches
from retrieval.embedders.vectors import BadVectors, unit_vectors

MODEL = "gemini-embedding-001"
DIMENSION = 768
LIMITS = Limits(texts=100, bytes=1_000_000)
_PATH = f"/v1/models/{MODEL}:batchEmbedContents"


class Gemini:
    """768 of the model's 3072 numbers. Only all of them would come at unit length, so we scale these."""

    def __init__(self, *, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()

    @property
    def name(self) -> str:
        return f"gemini/{MODEL}/{DIMENSION}"

    @property
    def dimension(self) -> int:
        return DIMENSION

    async def embed(self, text: str) -> Vector:
        return (await self._embed([text], "RETRIEVAL_QUERY", is_awaited=True))[0]

    async def batch_embed(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embed(texts, "RETRIEVAL_DOCUMENT", is_awaited=False)

    async def aclose(self) -> None:
        pass

    async def _embed(self, texts: Sequence[str], task_type: str, *, is_awaited: bool) -> list[Vector]:
        vendor = Vendor("Gemini", "GEMINI_BASE_URL", "GEMINI_API_KEY", settings.GEMINI_API_KEY)
        headers = {"x-goog-api-key": vendor.key}
        seconds = self._patience.timeout_seconds
        async with vendor_client(settings.GEMINI_BASE_URL, headers=headers, timeout_seconds=seconds) as client:

            async def batch(texts: list[str]) -> list[Vector]:
                async def request() -> list[Vector]:
                    return _vectors(await post(client, _PATH, _body(texts, task_type), vendor=vendor), vendor, texts)

                return await ask(vendor, request, self._patience, is_awaited=is_awaited)

            return await embed_in_batches(texts, batch, limits=LIMITS, dimension=DIMENSION)


def _body(texts: Sequence[str], task_type: str) -> dict[str, Any]:
    return {
        "requests": [
            {
                "model": f"models/{MODEL}",
                "content": {"parts": [{"text": text}], "role": "user"},
                "taskType": task_type,
                "outputDimensionality": DIMENSION,
            }
            for text in texts
        ]
    }


def _vectors(response: httpx2.Response, vendor: Vendor, texts: Sequence[str]) -> list[Vector]:
    if response.status_code != 200:
        raise _fault_of(response, vendor)
    try:
        rows = [embedding["values"] for embedding in response.json()["embeddings"]]
        return unit_vectors(rows, count=len(texts), dimension=DIMENSION)
    except BadVectors as error:
        raise unreadable(vendor, str(error)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(vendor) from error


def _fault_of(response: httpx2.Response, vendor: Vendor) -> Fault:
    """A bad key is a 400 here, and the wish for a wait stands in the body."""
    try:
        error = response.json()["error"]
        message, details = str(error.get("message", "")), list(error.get("details", []))
    except (KeyError, TypeError, ValueError, AttributeError):
        message, details = "", []
    if any(isinstance(detail, dict) and detail.get("reason") == "API_KEY_INVALID" for detail in details):
        return rejected_key(vendor)
    return fault_of_status(vendor, response.status_code, message, wait_seconds=_wished_wait(details))


def _wished_wait(details: list[Any]) -> float | None:
    for detail in details:
        if isinstance(detail, dict) and str(detail.get("@type", "")).endswith("google.rpc.RetryInfo"):
            seconds = re.fullmatch(r"(\d{1,6}(\.\d+)?)s", str(detail.get("retryDelay")))
            return float(seconds[1]) if seconds else None
    return None
