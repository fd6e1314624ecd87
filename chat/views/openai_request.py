"""A chat completion as OpenAI's clients ask for it, read into a question of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chat.errors import Refusal
from chat.profiles import PROFILES
from chat.questions import MAX_HISTORY, read_uuid

INSTRUCTIONS = ("system", "developer")
# What would change the answer and is not done here, with the values that ask for nothing.
_UNSUPPORTED: Mapping[str, tuple[Any, ...]] = {
    **{name: ([],) for name in ("tools", "functions")},
    **dict.fromkeys(("tool_choice", "function_call"), ("none", "auto")),
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "stop": ([],),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    **dict.fromkeys(("audio", "prediction", "web_search_options", "moderation"), ()),
}


@dataclass(frozen=True, slots=True)
class Completion:
    """`body` is what any door asks with; `with_usage` says whether a stream ends with a chunk that tells the tokens."""

    body: dict[str, Any]
    is_streamed: bool
    with_usage: bool


def read_completion(asked: Mapping[str, Any], *, idempotency_key: str) -> Completion:
    """The question in the last message of the user. Raises Refusal, whose `param` says what was wrong.

    What stands before it is the history that replaces memory; a conversation is temporary unless one is named. Wishes
    that change how a model writes, such as `temperature`, are the modes' own business and have no effect.
    """
    _refuse_unsupported(asked)
    mode = asked.get("model")
    if not isinstance(mode, str):
        raise _invalid("model", f"Name one of {', '.join(PROFILES)}.")
    if mode not in PROFILES:
        raise unknown_model(mode)
    question, history = _parted(asked.get("messages"))
    conversation = _object(asked, "metadata").get("conversation_id")
    body: dict[str, Any] = {"message": question, "mode": mode}
    body |= {"temporary": True} if conversation is None else {"conversation_id": conversation}
    if history:
        body["history"] = history
    if idempotency_key:
        if read_uuid(idempotency_key) is None:
            raise _invalid("Idempotency-Key", "Send a UUID.")
        body["run_id"] = idempotency_key
    return Completion(
        body,
        is_streamed=_flag(asked, "stream"),
        with_usage=_flag(_object(asked, "stream_options"), "include_usage", of="stream_options."),
    )


def unknown_model(name: str) -> Refusal:
    message = f"There is no model {name[:80]!r}. A model here is a mode: {', '.join(PROFILES)}. Nothing was charged."
    return Refusal("model_not_found", message, status=404, param="model")


def _refuse_unsupported(asked: Mapping[str, Any]) -> None:
    for name, harmless in _UNSUPPORTED.items():
        if asked.get(name) is not None and asked[name] not in harmless:
            raise _unsupported(name, f"KlerAI does not take {name} from its clients")


def _parted(messages: Any) -> tuple[str, list[dict[str, str]]]:
    """The question, and what stands around it: the newest messages, with all instructions as one in front."""
    if not isinstance(messages, list) or not messages:
        raise _invalid("messages", "Send a list of messages.")
    said = [_message(place, message) for place, message in enumerate(messages)]
    asked = max((place for place, (role, _) in enumerate(said) if role == "user"), default=None)
    if asked is None:
        raise _invalid("messages", "There is no message of the user.")
    if any(role == "assistant" for role, _ in said[asked:]):
        raise _invalid("messages", "The user has to have the last word: an answer is not begun for the assistant.")
    wanted = "\n\n".join(text for role, text in said if role in INSTRUCTIONS and text)
    talk = [{"role": role, "content": text} for role, text in said[:asked] if role not in INSTRUCTIONS and text]
    front = [{"role": "system", "content": wanted}] if wanted else []
    return said[asked][1], [*front, *talk[-MAX_HISTORY:]]


def _message(place: int, message: Any) -> tuple[str, str]:
    where = f"messages.{place}"
    if not isinstance(message, Mapping):
        raise _invalid(where, "Send an object with a role and a content.")
    match message.get("role"):
        case "user" | "assistant" | "system" | "developer" as role:
            if message.get("tool_calls") or message.get("function_call"):
                raise _unsupported(where, "Calls of a client's tools are not taken")
            return role, "\n".join(_texts(f"{where}.content", message.get("content"), may_lack=role == "assistant"))
        case "tool" | "function":
            raise _unsupported(where, "Results of a client's tools are not taken")
    raise _invalid(f"{where}.role", "Send user, assistant, system or developer.")


def _texts(where: str, content: Any, *, may_lack: bool) -> Iterator[str]:
    match content:
        case str():
            yield content
        case None if may_lack:
            return
        case list():
            for part in content:
                yield _text_of(where, part)
        case _:
            raise _invalid(where, "Send a text, or a list of parts that are texts.")


def _text_of(where: str, part: Any) -> str:
    match part:
        case {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
            return text
        case {"type": str(kind)} if kind not in ("text", "refusal"):
            raise _unsupported(where, f"Parts of the type {kind[:40]!r} are not taken, only texts")
    raise _invalid(where, "Send parts with a type and a text.")


def _flag(found: Mapping[str, Any], name: str, *, of: str = "") -> bool:
    value = found.get(name)
    if value is not None and not isinstance(value, bool):
        raise _invalid(f"{of}{name}", "Send true or false.")
    return bool(value)


def _object(asked: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = asked.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise _invalid(name, "Send an object.")
    return value or {}


def _invalid(param: str, problem: str) -> Refusal:
    message = f"{param}: {problem} Nothing was charged."
    return Refusal("invalid", message, status=400, param=param, fields={param: [problem]})


def _unsupported(param: str, what: str) -> Refusal:
    return Refusal("unsupported", f"{what} ({param}). Nothing was charged.", status=400, param=param)
