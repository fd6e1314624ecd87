"""A model on one's own machine, by Ollama's HTTP interface."""

from __future__ import annotations

from collections.abc import Sequence

import httpx2
from django.conf import settings

from klerai.http import vendor_client
from retrieval.embedders.asking import Fault, Patience, Vendor, ask, fault_of_status, post, unreadable
from retrieval.embedders.base import Vector
from retrieval.embedders.batches import Limits, embed_in_batches
from retrieval.embedders.vectors import BadVectors, unit_vectors

MODEL = "nomic-embed-text"
DIMENSION = 768
LIMITS = Limits(texts=16, bytes=200_000)  # what a machine without a graphics card does well within the timeout
VENDOR = Vendor("Ollama", "OLLAMA_BASE_URL")


class Ollama:
    """The model wants to be told in words what a text is. Its first request waits for it to be loaded."""

    def __init__(self, *, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()

    @property
    def name(self) -> str:
        return f"ollama/{MODEL}/{DIMENSION}"

    @property
    def dimension(self) -> int:
        return DIMENSION

    async def embed(self, text: str) -> Vector:
        return (await self._embed([text], "search_query: ", is_awaited=True))[0]

    async def batch_embed(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embed(texts, "search_document: ", is_awaited=False)

    async def aclose(self) -> None:
        pass

    async def _embed(self, texts: Sequence[str], prefix: str, *, is_awaited: bool) -> list[Vector]:
        seconds = self._patience.timeout_seconds
        async with vendor_client(settings.OLLAMA_BASE_URL, timeout_seconds=seconds) as client:

            async def batch(texts: list[str]) -> list[Vector]:
                body = {"model": MODEL, "input": [prefix + text for text in texts], "truncate": True}

                async def request() -> list[Vector]:
                    return _vectors(await post(client, "/api/embed", body, vendor=VENDOR), count=len(texts))

                return await ask(VENDOR, request, self._patience, is_awaited=is_awaited)

            return await embed_in_batches(texts, batch, limits=LIMITS, dimension=DIMENSION)


def _vectors(response: httpx2.Response, *, count: int) -> list[Vector]:
    if response.status_code != 200:
        raise _fault_of(response)
    try:
        return unit_vectors(response.json()["embeddings"], count=count, dimension=DIMENSION)
    except BadVectors as error:
        raise unreadable(VENDOR, str(error)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(VENDOR) from error


def _fault_of(response: httpx2.Response) -> Fault:
    try:
        said = str(response.json()["error"])
    except (KeyError, TypeError, ValueError):
        said = ""
    if response.status_code == 404 and "model" in said:
        return Fault(f"Ollama does not have the model {MODEL}. Run `ollama pull {MODEL}`.", may_pass=False)
    return fault_of_status(VENDOR, response.status_code, said)
