"""What a vendor's word for an error means, whichever of the compatible ones it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chat.errors import FaultKind, ModelFault, ModelRefused
from chat.strategies.reading import kind_of_status

MAX_DETAIL_CHARACTERS = 500
REFUSALS = frozenset({"data_inspection_failed", "content_filter", "content_policy_violation"})
NEVER_PASSES = frozenset(
    {"insufficient_quota", "invalid_request_error", "authentication_error", "invalid_api_key", "permission_error"}
)
BY_WORD = {
    "rate_limit_exceeded": FaultKind.RATE_LIMITED,
    "rate_limit_error": FaultKind.RATE_LIMITED,
    "limit_requests": FaultKind.RATE_LIMITED,
    "Throttling": FaultKind.RATE_LIMITED,
    "RESOURCE_EXHAUSTED": FaultKind.RATE_LIMITED,
    "overloaded_error": FaultKind.OVERLOADED,
    "unavailable_error": FaultKind.OVERLOADED,
    "UNAVAILABLE": FaultKind.OVERLOADED,
    "insufficient_system_resource": FaultKind.OVERLOADED,
}


def error_in(body: object) -> Mapping[str, Any]:
    """The error object of a body, of which there are as many forms as vendors."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        return inner if isinstance(inner, Mapping) else {"message": inner}
    return {"message": body} if isinstance(body, str) and body else {}


def fault_of(
    status: int, error: Mapping[str, Any], *, detail: str, retry_after: float | None
) -> ModelFault | ModelRefused:
    """The fault a refused request is, or the vendor's refusal to answer it."""
    words = _words_of(error)
    if words & REFUSALS:
        return ModelRefused(min(words & REFUSALS))
    kind = FaultKind.REJECTED if "insufficient_quota" in words else kind_of_status(status)
    return ModelFault(kind, detail=detail, retry_after=retry_after)


def fault_in_stream(error: object) -> ModelFault | ModelRefused:
    """The fault an error in mid-stream is. The request was taken, so a word we do not know is the vendor's trouble."""
    told = error_in(error)
    words = _words_of(told)
    if words & REFUSALS:
        return ModelRefused(min(words & REFUSALS))
    detail = str(told.get("message") or error)[:MAX_DETAIL_CHARACTERS]
    if words & NEVER_PASSES:
        return ModelFault(FaultKind.REJECTED, detail=detail)
    by_word = next((kind for word, kind in BY_WORD.items() if word in words), None)
    status = next((int(word) for word in words if word.isascii() and word.isdigit() and len(word) == 3), 500)
    return ModelFault(by_word or kind_of_status(status), detail=detail)


def _words_of(error: Mapping[str, Any]) -> frozenset[str]:
    words = (str(error.get(name) or "") for name in ("code", "type", "status"))
    return frozenset(word.partition(".")[0] if word.startswith("Throttling") else word for word in words if word)
