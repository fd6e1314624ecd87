"""The doors for OpenAI's clients: chat completions, in which a model is a mode, and the list of models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from datetime import UTC, datetime
from functools import wraps
from typing import Any

import orjson
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import path

from chat.asking import ask, follow
from chat.errors import Refusal
from chat.events import Logged, MessageComplete, ReasoningChunk, RunFailed
from chat.models import Run
from chat.profiles import PROFILES, Profile, missing_tools
from chat.views.event_stream import PING, event_stream, with_pauses
from chat.views.openai_answers import Chunks, completion, error_type
from chat.views.openai_request import Completion, read_completion, unknown_model
from chat.views.runs import STATUS, as_api_error, failure_json
from chat.wiring import Runtime, runtime_of
from klerai.accounts.access import Access
from klerai.accounts.authentication import for_person
from klerai.accounts.models import Person
from klerai.api import read_json

MADE = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def worded_for_openai(door: View) -> View:
    """Let every error of a door carry `type` and `param` too, for which OpenAI's clients look."""

    @wraps(door)
    async def worded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = await door(request, *args, **kwargs)
        if response.status_code >= 400 and isinstance(response, JsonResponse):
            error = json.loads(response.content)["error"]
            response.content = json.dumps({"error": worded_error(error, response.status_code)}).encode()
        return response

    return worded


def worded_error(error: dict[str, Any], status: int) -> dict[str, Any]:
    param = next(iter(error.get("fields") or ()), None)
    return {"type": error_type(status), "param": param, **error}


@worded_for_openai
@for_person("POST")
async def completions(request: HttpRequest, person: Person) -> HttpResponseBase:
    """Ask, as a chat completion. The run goes on when the client leaves, and nobody is there to confirm a call."""
    runtime = runtime_of(request.scope)  # type: ignore[attr-defined]
    body = await asyncio.to_thread(read_json, request)
    try:
        wanted = read_completion(body, idempotency_key=request.headers.get("Idempotency-Key", ""))
        run = await ask(runtime, person, wanted.body, is_attended=False)
    except Refusal as refusal:
        raise as_api_error(refusal) from refusal
    if wanted.is_streamed:
        return event_stream(run, _chunks(runtime, run, wanted))
    return await _whole(runtime, run)


@worded_for_openai
@for_person("GET", opens_to=(Access.READ, Access.CHAT))
async def models(request: HttpRequest, person: Person) -> HttpResponseBase:
    """The modes that can be used here."""
    names = frozenset(runtime_of(request.scope).tools)  # type: ignore[attr-defined]
    found = [model_json(mode) for mode in PROFILES.values() if not missing_tools(mode, names)]
    return JsonResponse({"object": "list", "data": found})


@worded_for_openai
@for_person("GET", opens_to=(Access.READ, Access.CHAT))
async def model(request: HttpRequest, person: Person, name: str) -> HttpResponseBase:
    names = frozenset(runtime_of(request.scope).tools)  # type: ignore[attr-defined]
    if name not in PROFILES or missing_tools(PROFILES[name], names):
        raise as_api_error(unknown_model(name))
    return JsonResponse(model_json(PROFILES[name]))


def model_json(mode: Profile) -> dict[str, Any]:
    known = {"id": mode.name, "object": "model", "created": MADE, "owned_by": "klerai"}
    return {**known, "title": mode.title, "description": mode.description}


async def _whole(runtime: Runtime, run: Run) -> JsonResponse:
    reasoning: list[str] = []
    async with aclosing(follow(runtime, run)) as events:
        async for event in events:
            if event.type == ReasoningChunk.type:
                reasoning.append(event.data["text"])
            elif event.type == MessageComplete.type:
                return JsonResponse(completion(run, event, reasoning="".join(reasoning)))
            elif event.type == RunFailed.type:
                return failure_json(run, event)
    raise as_api_error(Refusal("not_found", "There is nothing here, or it is not yours.", status=404))


async def _chunks(runtime: Runtime, run: Run, wanted: Completion) -> AsyncGenerator[bytes]:
    chunks = Chunks(run, with_usage=wanted.with_usage)
    async with aclosing(with_pauses(follow(runtime, run))) as events:
        async for event in events:
            if event is None:
                yield PING
            elif event.type == RunFailed.type:
                yield _mid_stream_error(run, event)
            else:
                for chunk in chunks.of(event):
                    yield chunk


def _mid_stream_error(run: Run, event: Logged) -> bytes:
    error = json.loads(failure_json(run, event).content)["error"]
    return b"data: %s\n\n" % orjson.dumps({"error": worded_error(error, STATUS.get(error["code"], 500))})


urlpatterns = [
    path("v1/chat/completions", completions, name="openai_completions"),
    path("v1/models", models, name="openai_models"),
    path("v1/models/<str:name>", model, name="openai_model"),
]
