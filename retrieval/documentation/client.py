"""Context7 over HTTP: its search and its documentation, in the API of today (v2) and in the one before (v1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx2
import orjson
from django.conf import settings

from klerai.http import vendor_client
from retrieval.documentation.faults import Fault, Kind, fault_of_status, too_slow, unreachable, unreadable
from retrieval.documentation.libraries import Library, is_library_id, libraries_in
from retrieval.documentation.sections import MOST_TOKENS, Section, sections_of_json, sections_of_text

TIMEOUT_SECONDS = 30.0
MOST_BYTES = 8_000_000
_LONGEST_QUERY = 500
_EMPTY = ("No content available", "No context data available")


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


async def find_libraries(name: str, about: str, *, seconds: float) -> list[Library]:
    """The libraries that fit a name; `about` is what is wanted of them. Raises Fault."""
    name, about = name[:_LONGEST_QUERY], about[:_LONGEST_QUERY]
    match settings.CONTEXT7.version:
        case "v1":
            answer = await _get("/v1/search", {"query": name}, seconds)
        case _:
            answer = await _get("/v2/libs/search", {"libraryName": name, "query": about or name}, seconds)
    if answer.status == 404:
        raise unreadable("is not at the address given")
    found = _json(_good(answer).body)
    if not isinstance(found, dict | list):
        raise unreadable()
    return libraries_in(found)


async def read_library(library_id: str, topic: str, *, seconds: float) -> list[Section]:
    """What a library's documentation has on a topic, none when it has nothing. Raises Fault."""
    topic = topic[:_LONGEST_QUERY]
    match settings.CONTEXT7.version:
        case "v1":
            asked = {"type": "txt", "tokens": str(MOST_TOKENS), **({"topic": topic} if topic else {})}
            answer = await _get(f"/v1{quote(library_id, safe='/@~+')}", asked, seconds)
        case _:
            asked = {"libraryId": library_id, "query": topic or "overview", "type": "json"}
            answer = await _get("/v2/context", asked, seconds)
    return await asyncio.to_thread(_sections, _good(answer).body)


async def _get(path: str, parameters: Mapping[str, str], seconds: float) -> _Answer:
    """One answer, whatever its status, within `seconds` altogether."""
    key = settings.CONTEXT7.key
    headers = {"Accept": "application/json, text/plain"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        async with (
            asyncio.timeout(seconds),
            vendor_client(settings.CONTEXT7.base_url, timeout_seconds=seconds, headers=headers) as client,
            client.stream("GET", path, params=dict(parameters)) as response,
        ):
            return _Answer(response.status_code, response.headers, await _body(response))
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise too_slow(seconds) from error
    except httpx2.HTTPError as error:
        raise unreachable() from error


async def _body(response: httpx2.Response) -> bytes:
    read = bytearray()
    async for piece in response.aiter_bytes():
        read += piece
        if len(read) > MOST_BYTES:
            raise unreadable(f"gave more than {MOST_BYTES // 1_000_000} MB")
    return bytes(read)


def _good(answer: _Answer) -> _Answer:
    """The answer if it is documentation; a library that moved is told by its new id."""
    if answer.status == 200:
        return answer
    said = _json(answer.body)
    moved_to = said.get("redirectUrl") if isinstance(said, dict) else None
    if answer.status in (301, 302, 307, 308) and isinstance(moved_to, str) and is_library_id(moved_to):
        raise Fault(Kind.MOVED, "Context7 moved this library more than once.", moved_to=moved_to)
    raise fault_of_status(answer.status, answer.headers)


def _sections(body: bytes) -> list[Section]:
    text = body.decode("utf-8", "replace").strip()
    if not text or text.startswith(_EMPTY):
        return []
    found = _json(body)
    if isinstance(found, dict):
        if not {"codeSnippets", "infoSnippets"} & found.keys():
            raise unreadable()
        return sections_of_json(found)
    return sections_of_text(text)


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
