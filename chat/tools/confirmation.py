"""What a run that has read outside text may not do without its person.

The rule protects where no classifier can: whatever a document or a page talks the model into, nothing is written and no
address the person did not give is fetched unless they confirm exactly that (reliability, d.9).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Protocol

from chat.tools.base import Tool

# Wider than the rules of addresses: programs mend slashes that are missing or lean the other way, and other full stops.
_ADDRESS = re.compile(
    r"(?:\b[a-z][a-z0-9+.-]{1,20}:[\\/]|\b(?:https?|ftps?|wss?|data|mailto):|\bwww[.。．｡]|[\\/]{2})[^\s\"'<>]+"
    r"|\b[\w.+-]+@[\w-]+[.。．｡][\w.-]+",
    re.IGNORECASE,
)
_BARE_HOST = re.compile(
    r"(?:(?:[\w-]+[.。．｡])+(?:[^\W\d_]{2,24}|xn--[a-z0-9-]+)\.?|localhost|\[[0-9a-f:.%]+\]|\d{1,3}(?:\.\d{1,3}){3}"
    r"|[a-z][\w-]*(?=:\d\d))(?::\d{1,5})?(?:[/?#][^\s\"'<>]*)?",
    re.IGNORECASE,
)
_ADDRESS_NAMES = re.compile(
    r"(ur[il]|link|href|host|domain|endpoint|webhook|address|e?mail|recipient)s?$", re.IGNORECASE
)


class Decision(StrEnum):
    """What came of asking the person."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    NOBODY = "nobody"


class Confirmer(Protocol):
    """Asks the person of a run. `begin` gives the token they have to send back, or None where nobody can be asked."""

    async def begin(self, ref: str, arguments: Mapping[str, Any]) -> str | None: ...

    async def decision(self, ref: str, arguments: Mapping[str, Any]) -> Decision: ...


def brings_outside_text(tool: Tool) -> bool:
    """Whether what it gives may hold words that neither the person nor KlerAI wrote: so it is, unless `is_pure`."""
    return not getattr(tool, "is_pure", False)


def needs_confirmation(tool: Tool, arguments: Mapping[str, Any], *, given: Collection[str]) -> bool:
    """Whether a tainted run has to ask: it writes, or it fetches an address that is not in the person's own words."""
    if tool.writes:
        return True
    return tool.fetches and any(_plain(address) not in given for address in addresses_in(arguments))


def addresses_given(texts: Iterable[str]) -> frozenset[str]:
    """The addresses in the person's own words, for `needs_confirmation`."""
    words = [word for text in texts for word in text.split()]
    return frozenset(map(_plain, [*words, *addresses_in({"": words})]))


def _plain(address: str) -> str:
    """An address without what people leave out: its scheme, a last slash, the punctuation around it."""
    return address.strip("<>()[]{}\"'“”‘’.,;:!?").removeprefix("https://").removeprefix("http://").rstrip("/")


def addresses_in(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Everything in the arguments that is an address, wherever it stands."""
    for name, text in _texts("", arguments):
        if _ADDRESS_NAMES.search(name):
            yield text
        else:
            yield from (found[0] for found in _ADDRESS.finditer(text))
            if _BARE_HOST.fullmatch(text.strip()):
                yield text.strip()


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield name, value
        case int() if value >= 1 << 24:  # to some a host: 2130706433 is 127.0.0.1
            yield name, str(value)
        case Mapping():
            for key, part in value.items():
                yield "", str(key)
                yield from _texts(str(key), part)
        case Iterable() if not isinstance(value, bytes):
            for part in value:
                yield from _texts(name, part)


REFUSALS = {
    Decision.DENIED: "Not run: the person was asked and said no. Go on without it and do not ask again.",
    Decision.EXPIRED: "Not run: the person was asked and did not answer within 10 minutes. Go on without it.",
    Decision.NOBODY: (
        "Not run: after reading outside text this needs the person's confirmation, and nobody can give it here. "
        "Say what you would have done, and that it can be confirmed on the conversation's page."
    ),
}
TOLD = {
    Decision.DENIED: "not run, you said no",
    Decision.EXPIRED: "not run, nobody answered within 10 minutes",
    Decision.NOBODY: "not run, it needs a confirmation that nobody could give here",
}
