"""The door of seed 001: a question in, a grounded answer with its sources and confidence out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import path

from chat.asking import ask, outcome
from chat.errors import Refusal
from chat.events import Logged, MessageComplete
from chat.models import Run
from chat.profiles import GROUNDED
from chat.views.runs import as_api_error, failure_json
from chat.wiring import runtime_of
from klerai.accounts.authentication import for_person
from klerai.accounts.models import Person
from klerai.api import ApiError, read_json
from klerai.failpoints import failpoint

_NAMES = {"message": "query", "conversation_id": "session_id"}  # what a question calls it, and what this door does


@for_person("POST")
async def query(request: HttpRequest, person: Person) -> HttpResponseBase:
    """Ask in the mode grounded and wait for the end. The session is a conversation; without one it begins one."""
    runtime = runtime_of(request.scope)  # type: ignore[attr-defined]
    try:
        body = await asyncio.to_thread(read_json, request)
        run = await ask(runtime, person, _question(body), is_attended=False)
        terminal = await outcome(runtime, run)
    except Refusal as refusal:
        raise _in_our_words(as_api_error(refusal)) from refusal
    failpoint("before_response")
    if terminal.type != MessageComplete.type:
        return failure_json(run, terminal)
    return JsonResponse(answer_json(run, terminal))


def answer_json(run: Run, terminal: Logged) -> dict[str, Any]:
    """What came from inside and outside is what the answer really cites, whatever the model said of it."""
    sources, receipt = terminal.data["citations"], terminal.data["receipt"]
    origins = [source["origin"] for source in sources]
    return {
        "answer": terminal.data["text"],
        "sources": sources,
        "confidence_score": terminal.data.get("confidence"),
        "used_internal_kb": "internal" in origins,
        "used_external_kb": any(origin != "internal" for origin in origins),
        "session_id": str(run.conversation_id),
        "run_id": str(run.run_id),
        "credits_used": receipt["credits"],
        "receipt": receipt,
    }


def _question(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same question as the other doors take it."""
    named = {ours: body[theirs] for ours, theirs in _NAMES.items() if theirs in body}
    kept = {name: body[name] for name in ("kb_id", "run_id", "max_credits") if name in body}
    return {**kept, **named, "mode": GROUNDED.name}


def _in_our_words(error: ApiError) -> ApiError:
    """The error with the fields under the names they have here."""
    fields = error.details.get("fields", {})
    for ours, theirs in _NAMES.items():
        if ours in fields:
            error.details["fields"] = {theirs: fields[ours]}
            error.message = error.message.replace(f"{ours}:", f"{theirs}:", 1)
    return error


urlpatterns = [path("api/chat/query", query, name="api_chat_query")]
