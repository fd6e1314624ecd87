"""The doors of a run: ask, watch, read, stop. Plain async views; a run never belongs to one of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import UUID

import orjson
from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.urls import path

from chat.asking import ask, follow, outcome, with_words
from chat.confirming import confirm, read_answer
from chat.errors import Refusal
from chat.events import Logged, MessageComplete
from chat.memory.recall import summary_of
from chat.models import Run
from chat.queries import run_of
from chat.shapes import run_json
from chat.stopping import request_stop
from chat.views.event_stream import PING, event_stream, with_pauses
from chat.wiring import Runtime, runtime_of
from klerai.accounts.access import Access
from klerai.accounts.authentication import for_person
from klerai.accounts.models import Person
from klerai.api import ApiError, read_json
from klerai.database import in_database
from klerai.failpoints import failpoint

STATUS = {
    "insufficient_credits": 402,
    "safety_blocked": 422,
    "stopped": 409,
    "deadline_exceeded": 504,
    "model_unavailable": 503,
    "mandatory_tool_missing": 502,
    "response_tool_failed": 502,
    "interrupted": 503,
    "internal": 500,
}
SUMMARY_SECONDS = 10.0


@for_person("POST")
async def chat(request: HttpRequest, person: Person) -> HttpResponseBase:
    """Ask. JSON waits for the end; with `Accept: text/event-stream` the events come as they happen."""
    runtime = runtime_of(request.scope)  # type: ignore[attr-defined]
    try:
        body = await asyncio.to_thread(read_json, request)
        run = await ask(runtime, person, body, is_attended=_wants_events(request))
        if _wants_events(request):
            return _stream(runtime, run, after=0)
        terminal = await outcome(runtime, run)
        await runtime.runner.settled(run.pk, seconds=SUMMARY_SECONDS)
    except Refusal as refusal:
        raise as_api_error(refusal) from refusal
    return _reply(run, terminal, await in_database(summary_of, run))


@for_person("GET", opens_to=(Access.READ, Access.CHAT))
async def run_detail(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponseBase:
    shape = await in_database(_run_shape, person, run_id)
    return JsonResponse(shape)


@for_person("GET", opens_to=(Access.READ, Access.CHAT))
async def run_events(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponseBase:
    """The run's log from a place on, then live until its end."""
    try:
        run = with_words(await in_database(_run, person, run_id))
    except Refusal as refusal:
        raise as_api_error(refusal) from refusal
    return _stream(runtime_of(request.scope), run, after=_after(request))  # type: ignore[attr-defined]


@for_person("POST")
async def run_stop(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponseBase:
    run = await in_database(request_stop, person, run_id)
    if run is None:
        raise Http404
    runtime_of(request.scope).runner.stop(run.pk)  # type: ignore[attr-defined]
    return JsonResponse(await in_database(_run_shape, person, run_id))


@for_person("POST")
async def run_confirm(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponseBase:
    """Let a call that waits for its person run, or not."""
    body = await asyncio.to_thread(read_json, request)
    try:
        run = await in_database(confirm, person, run_id, read_answer(body))
    except Refusal as refusal:
        raise as_api_error(refusal) from refusal
    if run is None:
        raise Http404
    return JsonResponse(await in_database(_run_shape, person, run_id))


def as_api_error(refusal: Refusal) -> ApiError:
    wait = refusal.details.get("retry_after") or (10 if refusal.code == "rate_limited" else None)
    headers = {"Retry-After": str(wait)} if wait else {}
    return ApiError(refusal.code, refusal.message, status=refusal.status, headers=headers, **refusal.details)


def _reply(run: Run, terminal: Logged, summary: str) -> JsonResponse:
    failpoint("before_response")
    data = terminal.data
    if terminal.type != MessageComplete.type:
        return failure_json(run, terminal)
    receipt = data["receipt"]
    return JsonResponse(
        {
            "response": data["text"],
            "summary": summary,
            "conversation_id": str(run.conversation_id),
            "message_id": data["message_id"],
            "run_id": str(run.run_id),
            "citations": data["citations"],
            "credits_used": receipt["credits"],
            "credits_remaining": receipt["balance_after"],
            "receipt": receipt,
        }
    )


def failure_json(run: Run, terminal: Logged) -> JsonResponse:
    """The error a run ended in, as the answer to who asked."""
    data = terminal.data
    error = {**data["details"], **{name: data[name] for name in ("code", "message", "retryable", "receipt")}}
    return JsonResponse({"error": {**error, "run_id": str(run.run_id)}}, status=STATUS.get(data["code"], 500))


def _stream(runtime: Runtime, run: Run, *, after: int) -> StreamingHttpResponse:
    return event_stream(run, _server_sent(runtime, run, after))


async def _server_sent(runtime: Runtime, run: Run, after: int) -> AsyncGenerator[bytes]:
    """Events as SSE, with a comment every 15 s while nothing happens."""
    yield b": connected\n\n"
    async with aclosing(with_pauses(follow(runtime, run, after=after))) as events:
        async for event in events:
            if event is None:
                yield PING
            else:
                yield b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.type.encode(), orjson.dumps(event.data))


def _wants_events(request: HttpRequest) -> bool:
    return "text/event-stream" in request.headers.get("Accept", "")


def _after(request: HttpRequest) -> int:
    text = request.headers.get("Last-Event-ID") or request.GET.get("after") or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ApiError(
            "invalid",
            "after: Send the number of the last event you have.",
            status=400,
            fields={"after": ["Send the number of the last event you have."]},
        )
    return int(text)


def _run(person: Person, run_id: UUID) -> Run:
    run = run_of(person, run_id)
    if run is None:
        raise Http404
    return run


def _run_shape(person: Person, run_id: UUID) -> dict[str, Any]:
    return run_json(_run(person, run_id))


urlpatterns = [
    path("api/chat", chat, name="api_chat"),
    path("api/runs/<uuid:run_id>", run_detail, name="api_run"),
    path("api/runs/<uuid:run_id>/events", run_events, name="api_run_events"),
    path("api/runs/<uuid:run_id>/stop", run_stop, name="api_run_stop"),
    path("api/runs/<uuid:run_id>/confirm", run_confirm, name="api_run_confirm"),
]
