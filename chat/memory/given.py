"""A past that the client gives with its question, in the place of memory: for this run, and kept nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from chat.memory.recall import Recalled, tokens_of
from chat.memory.tokens import count
from chat.memory.working import NO_ANSWER
from chat.messages import AssistantMessage, Message, UserMessage
from chat.questions import Said

BEGUN = "[The assistant wrote first.]"


def given_past(history: Sequence[Said], *, window: int) -> Recalled:
    """The newest messages of it, as many as the mode's window holds, each as it was said."""
    talk = [said for said in history if said.role != "system" and said.text.strip()]
    messages = _alternating(talk[-window:])
    return Recalled(
        tuple(messages),
        full_tokens=sum(count(said.text) for said in history),
        sent_tokens=tokens_of(messages) + count(instructions_in(history)),
        asked=tuple(said.text for said in history if said.role != "assistant"),
        is_tainted=any(said.role == "assistant" for said in talk),  # nobody knows what such an answer rests on
    )


def instructions_in(history: Sequence[Said]) -> str:
    """What the client's program asks of every answer: words of the person, beside the house's own rules."""
    wanted = "\n\n".join(said.text for said in history if said.role == "system" and said.text.strip())
    return f'<instructions from="the client">\n{wanted}\n</instructions>' if wanted else ""


def _alternating(talk: Sequence[Said]) -> list[Message]:
    """Question and answer in turns, from the first to the last: not every vendor takes two of a kind."""
    messages: list[Message] = []
    for role, several in groupby(talk, key=lambda said: said.role):
        text = "\n\n".join(said.text for said in several)
        if role == "assistant" and not messages:
            messages.append(UserMessage(BEGUN))
        messages.append(UserMessage(text) if role == "user" else AssistantMessage(text))
    if messages and isinstance(messages[-1], UserMessage):
        messages.append(AssistantMessage(NO_ANSWER))
    return messages
