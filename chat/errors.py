"""What can go wrong in a chat.

ChatError
├── ModelFault          the model did not give a whole turn; `kind` says how
├── ModelRefused        the model declined; its vendor's safety, not ours
├── DutyMissed          the model did not do what its mode demands, though it was asked again
├── Refusal             a question that is not taken, with the contract's code and status
│   └── TemporaryGone   … because what it follows was in the memory of a process that is gone
├── LeaseLost           another process ended this run; whatever this one still says is void
└── StaffStay           staff do not delete their own account
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class ChatError(Exception):
    """The root of this tree."""


class FaultKind(StrEnum):
    """How a model call failed, and so whether trying again can help."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER = "server"
    CUT_SHORT = "cut_short"
    MALFORMED = "malformed"
    EMPTY = "empty"
    REJECTED = "rejected"


class ModelFault(ChatError):
    """A model call that did not end in a whole turn. `retry_after` is the vendor's wish, in seconds."""

    def __init__(self, kind: FaultKind, *, detail: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{kind}: {detail}" if detail else str(kind))
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after


class ModelRefused(ChatError):
    """The model's vendor declined to answer; `category` is the vendor's word for why."""

    def __init__(self, category: str = "") -> None:
        super().__init__(category or "unspecified")
        self.category = category


class DutyMissed(ChatError):
    """A duty of the mode was not done. `code` is the contract's, `tool` what was owed, `reason` why it was refused."""

    def __init__(self, code: str, *, tool: str, reason: str = "") -> None:
        super().__init__(f"{code}: {tool}")
        self.code = code
        self.tool = tool
        self.reason = reason


class Refusal(ChatError):
    """A question that is not taken. Nothing was stored and nothing was charged."""

    def __init__(self, code: str, message: str, *, status: int, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.details = details


class TemporaryGone(Refusal):
    """The words of a temporary conversation are in no memory this process has."""

    def __init__(self) -> None:
        super().__init__(
            "temporary_gone",
            "This conversation was temporary: its words were kept in memory only and are gone. Nothing was charged; "
            "begin a new one.",
            status=410,
        )


class LeaseLost(ChatError):
    """The fence of a run did not open: it was ended elsewhere."""


class StaffStay(ChatError):
    """Staff do not delete their own account: the log of what they did hangs on it. Another takes their role first."""
