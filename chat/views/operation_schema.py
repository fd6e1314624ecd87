"""An operation of the API as OpenAPI words it: what is sent, what comes back, and every refusal there may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from klerai.accounts.access import Access
from klerai.accounts.schema import security
from klerai.json_schema import TEXT, Json, named

REFUSALS = {
    400: "The request makes no sense; `fields` says where.",
    401: "Nobody: no key, a wrong one, or one that was revoked.",
    402: "Not enough credits; the limit is named.",
    403: "Not for this key, or not for this person.",
    404: "There is nothing here, or it is not yours.",
    405: "This address takes other methods only.",
    409: "Something else is under way, was said before, or was stopped.",
    410: "The words of a temporary conversation are gone.",
    413: "Too large, or more than the plan has room for.",
    415: "Sent as something else than this address reads.",
    422: "Held back by a safety check; nothing was charged.",
    429: "Too many requests, or questions at a time; the limit is named.",
    500: "Something broke on our side; nothing was charged.",
    502: "The answer did not come about as its mode demands; nothing was charged.",
    503: "Not now; nothing was charged.",
    504: "It took too long and was ended; nothing was charged.",
}
HEADERS = {
    "RateLimit-Policy": "Every limit on requests by key: its name, requests and seconds.",
    "RateLimit": "For every limit: the requests left, and the seconds until it resets.",
    "RateLimit-Limit": "Of the nearest limit.",
    "RateLimit-Remaining": "Requests left.",
    "RateLimit-Reset": "Seconds until it resets.",
}


def operation(
    name: str,
    words: str,
    *,
    tag: str,
    answers: Json,
    opens_to: Sequence[Access] | None,
    body: Json | None = None,
    parameters: Sequence[Json] = (),
    refusals: Iterable[int] = (),
) -> Json:
    """What a view outside the REST framework says of itself. Open to everybody when `opens_to` is None."""
    said: Json = {"operationId": name, "description": words, "tags": [tag], "parameters": list(parameters)}
    if body is not None:
        said["requestBody"] = {"required": True, "content": body}
    refused = {str(status): _refusal(status) for status in refusals}
    return {**said, "security": security(opens_to) if opens_to else [], "responses": {**answers, **refused}}


def refused(*statuses: int) -> dict[int, Json]:
    """How a view of the REST framework names refusals that do not follow from what it is."""
    return {status: named("Error") for status in statuses}


def answer(content: Json, *, status: int = 200, words: str = "") -> Json:
    return {str(status): {"description": words or "Done.", "content": content}}


def as_json(shape: Json) -> Json:
    return {"application/json": {"schema": shape}}


def as_events(example: str) -> Json:
    """Server-sent events; OpenAPI 3.1 has no words for what stands in one."""
    return {"text/event-stream": {"schema": {}, "example": example}}


def in_path(name: str, shape: Json = TEXT) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": shape}


def in_header(name: str, shape: Json, words: str) -> Json:
    return {"name": name, "in": "header", "schema": shape, "description": words}


def in_query(name: str, shape: Json, words: str) -> Json:
    return {"name": name, "in": "query", "schema": shape, "description": words}


def with_refusals(path: str, said: Json) -> Json:
    """The operation with a line for lists, the refusals that follow from what it is, and the headers a key gets."""
    statuses = set[int]()
    if said.get("security"):
        statuses |= {401, 403, 429}
    if said.get("requestBody"):
        statuses |= {400, 413, 415}
    if said.get("parameters"):
        statuses.add(400)
    if "{" in path:
        statuses.add(404)
    found = {status: _in_one_place(status, response) for status, response in said["responses"].items()}
    for status in statuses:
        found.setdefault(str(status), _refusal(status))
    if said.get("security"):
        found = {status: _with_headers(response) for status, response in found.items()}
    first, _, _ = said["description"].partition(". ")
    return {"summary": first.rstrip("."), **said, "responses": dict(sorted(found.items()))}


def components() -> Json:
    """The refusals, once each; and the headers."""
    content = as_json(named("Error"))
    responses: Json = {
        f"Refused{status}": {"description": words, "content": content} for status, words in REFUSALS.items()
    }
    wait = {"description": "Seconds after which trying again makes sense.", "schema": {"type": "integer"}}
    for status in (429, 503):
        responses[f"Refused{status}"]["headers"] = {"Retry-After": wait}
    headers = {name: {"description": words, "schema": TEXT} for name, words in HEADERS.items()}
    return {"responses": responses, "headers": headers}


def _in_one_place(status: str, response: Any) -> Json:
    """A refusal by its reference, whoever named it."""
    is_refusal = response.get("content") == as_json(named("Error"))
    return _refusal(int(status)) if is_refusal else dict(response)


def _refusal(status: int) -> Json:
    return {"$ref": f"#/components/responses/Refused{status}"}


def _with_headers(response: Any) -> Json:
    if "$ref" in response:
        return dict(response)
    stated = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}
    return {**response, "headers": {**response.get("headers", {}), **stated}}
