"""A run in the words of OpenAI's chat completions: whole, or in chunks as it happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from chat.events import ContentChunk, ContentReplaced, Logged, MessageComplete, ReasoningChunk, RunStarted
from chat.models import Run

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"
BETWEEN_TURNS = "\n\n"
TYPES = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
}


def error_type(status: int) -> str:
    """OpenAI's word for a status."""
    return "server_error" if status >= 500 else TYPES.get(status, "invalid_request_error")


def completion(run: Run, terminal: Logged, *, reasoning: str) -> Json:
    """The answer in one piece."""
    message: Json = {"role": "assistant", "content": terminal.data["text"], "refusal": None}
    if reasoning:
        message["reasoning_content"] = reasoning
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {
        **_head(run, "chat.completion"),
        "choices": [choice],
        "usage": usage(terminal.data["receipt"]),
        "klerai": ours(run, terminal),
    }


def usage(receipt: Json) -> Json:
    """Over every model call of the run; what came from a vendor's cache is counted among the prompt's tokens."""
    tokens = receipt["tokens"]
    return {
        "prompt_tokens": tokens["input"],
        "completion_tokens": tokens["output"],
        "total_tokens": tokens["input"] + tokens["output"],
        "prompt_tokens_details": {"cached_tokens": tokens["cached"]},
    }


def ours(run: Run, terminal: Logged) -> Json:
    """What OpenAI has no word for."""
    return {
        "run_id": str(run.run_id),
        "conversation_id": str(run.conversation_id),
        "text": terminal.data["text"],
        "citations": terminal.data["citations"],
        "receipt": terminal.data["receipt"],
    }


class Chunks:
    """Turns the events of a run into chunks.

    Nothing that was sent can be unsaid in them: words before a tool call stay in front of the answer, and of a part
    that is replaced only what goes on from the words already sent follows. The last chunk has the text as it stands.
    """

    def __init__(self, run: Run, *, with_usage: bool) -> None:
        self._run = run
        self._with_usage = with_usage
        self._turn = 0
        self._told = ""

    def of(self, event: Logged) -> Iterator[bytes]:
        match event.type:
            case RunStarted.type:
                yield self._chunk({"role": "assistant", "content": ""})
            case ReasoningChunk.type:
                yield self._chunk({"reasoning_content": event.data["text"]})
            case ContentChunk.type:
                yield self._words(event.data["text"], event.data["turn"])
            case ContentReplaced.type if event.data["text"].startswith(self._told):
                yield self._words(event.data["text"].removeprefix(self._told), self._turn)
            case MessageComplete.type:
                yield self._chunk({}, finish_reason="stop", klerai=ours(self._run, event))
                if self._with_usage:
                    yield self._chunk(None, usage=usage(event.data["receipt"]))
                yield DONE

    def _words(self, text: str, turn: int) -> bytes:
        is_new = turn != self._turn
        gap = BETWEEN_TURNS if is_new and self._told else ""
        self._told = text if is_new else self._told + text
        self._turn = turn
        return self._chunk({"content": gap + text})

    def _chunk(self, delta: Json | None, *, finish_reason: str | None = None, **more: Any) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
        nothing = {"usage": None} if self._with_usage else {}
        chunk = {**_head(self._run, "chat.completion.chunk"), "choices": choices, **nothing, **more}
        return b"data: %s\n\n" % orjson.dumps(chunk)


def _head(run: Run, kind: str) -> Json:
    created = int(run.created_at.timestamp())
    return {"id": f"chatcmpl-{run.run_id}", "object": kind, "created": created, "model": run.mode}
