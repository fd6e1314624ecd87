"""What the fake Messages server is told to say: turns, and how they go wrong on the way."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import asdict, dataclass, replace
from typing import Any

MARKER = re.compile(r"\[\[plan([^\]]*)\]\]")
WORDS = ("alpha ", "beta ", "gamma ", "delta ", "omega ", "kappa ", "sigma ", "theta ")
PLAN_ARGUMENTS = '{"query":"alpha beta","k":3}'


@dataclass(frozen=True, slots=True)
class Text:
    """Words, sent in `pieces`; None sends one delta a word."""

    text: str
    pieces: tuple[str, ...] | None = None
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning; its signature is made by the server and checked when it comes back."""

    text: str
    kind: str = "thinking"


@dataclass(frozen=True, slots=True)
class Redacted:
    """Reasoning the person may not see; it comes back as it went out or the request is refused."""

    payload: str
    kind: str = "redacted"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, its arguments in so many `pieces`. As a string they are sent as they stand, even broken."""

    name: str
    arguments: dict[str, Any] | str
    id: str = ""
    pieces: int = 6
    kind: str = "call"


Block = Text | Thinking | Redacted | Call


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model, and what becomes of it on the wire.

    `first_ms` passes before the first byte and `each_ms` between deltas. `stall` (headers, first_token, middle) falls
    silent there for good, and in `queued` and `kept_alive` sends comments for ever, from before the first word on or
    from the middle. `cut_at` drops the connection after that many bytes of the body, `ends_at` closes the body
    properly there, `split` sends chunks of that many bytes, and `pause_at` sends the body in two parts.
    `error_after` sends an error event after that many deltas, `opening` an event of one's own before all others.
    `status` other than 200 answers with an error; `is_dropped` closes the connection without any answer.
    """

    blocks: tuple[Block, ...] = ()
    stop_reason: str = ""
    category: str | None = None
    first_ms: float = 0
    each_ms: float = 0
    stall: str = ""
    cut_at: int | None = None
    ends_at: int | None = None
    split: int | None = None
    pause_at: int | None = None
    error_after: int | None = None
    opening: str | None = None
    is_dropped: bool = False
    status: int = 200
    error_type: str = "overloaded_error"
    message: str = "Overloaded"
    retry_after: str | None = None

    @property
    def ending(self) -> str:
        asks_for_tools = any(isinstance(block, Call) for block in self.blocks)
        return self.stop_reason or ("tool_use" if asks_for_tools else "end_turn")


def says(text: str, **how: Any) -> Turn:
    """A turn that answers in words."""
    return Turn((Text(text),), **how)


def calls(*wanted: Call, **how: Any) -> Turn:
    """A turn that asks for tools, all at once."""
    return Turn(tuple(wanted), **how)


ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def fails(status: int, message: str = "Scripted failure.", **how: Any) -> Turn:
    """A turn that is answered with an HTTP error."""
    return Turn(status=status, error_type=ERROR_TYPES.get(status, "api_error"), message=message, **how)


def to_json(turn: Turn) -> dict[str, Any]:
    return asdict(turn)


def from_json(written: dict[str, Any]) -> Turn:
    """A turn as a test posted it; unknown fields are an error."""
    return Turn(**{**written, "blocks": tuple(_block(block) for block in written.get("blocks", ()))})


def _block(written: dict[str, Any]) -> Block:
    kinds: dict[str, type[Block]] = {"text": Text, "thinking": Thinking, "redacted": Redacted, "call": Call}
    block = kinds[written["kind"]](**written)
    if isinstance(block, Text) and block.pieces is not None:
        return replace(block, pieces=tuple(block.pieces))
    return block


class Scripts:
    """The turns still to be said, by a key found in the newest person's words that hold one; "" answers anybody."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Turn]] = {}
        self._last_forever: dict[str, Turn] = {}

    def put(self, key: str, turns: list[Turn], *, forever: bool = False) -> None:
        self._waiting[key] = deque(turns)
        self._last_forever.pop(key, None)
        if forever:
            self._last_forever[key] = turns[-1]

    def clear(self) -> None:
        self._waiting.clear()
        self._last_forever.clear()

    def key_for(self, said: list[str]) -> str:
        """The key these messages carry, the newest message first; "" when none does."""
        keys = [key for key in self._waiting if key]
        for text in reversed(said):
            for key in keys:
                if key in text:
                    return key
        return ""

    def take(self, key: str) -> Turn | None:
        waiting = self._waiting.get(key)
        if waiting:
            return waiting.popleft()
        return self._last_forever.get(key)


def planned(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Turn | None:
    """The turn a `[[plan tools=2 tokens=200 ttft=20 itd=5]]` in the newest marked user message asks for.

    tools: turns that call a tool; parallel: calls in each; call: the tool's name (else the first offered); tokens:
    words of the answer; ttft and itd: milliseconds; fail: a status; err=1: an error in mid-stream; think=1: reasoning;
    final: the answer is a call of that tool.
    """
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user":
            marks = MARKER.findall(spoken(messages[index]))
            if marks:
                return _follow(dict(part.partition("=")[::2] for part in marks[-1].split()), messages[index:], tools)
    return None


def spoken(message: dict[str, Any]) -> str:
    """The person's own words in a message; tool results are not theirs."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(block.get("text", "") for block in content or () if block.get("type") == "text")


def _follow(plan: dict[str, str], since: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Turn:
    if plan.get("fail"):
        return fails(int(plan["fail"]), "scripted")
    pace: dict[str, Any] = {"first_ms": float(plan.get("ttft", 0)), "each_ms": float(plan.get("itd", 0))}
    lead: tuple[Block, ...] = (Thinking("Let me see. " * 4),) if plan.get("think") else ()
    name = plan.get("call") or (tools[0]["name"] if tools else "")
    if name and _tool_turns(since) < int(plan.get("tools", 0)):
        wanted = tuple(Call(name, PLAN_ARGUMENTS) for _ in range(int(plan.get("parallel", 1))))
        return Turn(lead + wanted, **pace)
    words = "".join(WORDS[index & 7] for index in range(int(plan.get("tokens", 50))))
    if plan.get("final"):
        return Turn((*lead, Call(plan["final"], '{"answer": "' + words + '"}')), **pace)
    middle = int(plan.get("tokens", 50)) // 2 if plan.get("err") else None
    return Turn((*lead, Text(words)), error_after=middle, **pace)


def _tool_turns(messages: list[dict[str, Any]]) -> int:
    return sum(
        any(block.get("type") == "tool_result" for block in message["content"])
        for message in messages
        if message.get("role") == "user" and isinstance(message.get("content"), list)
    )
