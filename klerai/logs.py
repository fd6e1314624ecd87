"""Logs: one line an event on stderr, with the run it belongs to and without secrets."""

from __future__ import annotations

import logging.config
import re
import sys
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

MASK = "[hidden]"
SECRET_NAMES = re.compile(
    r"authorization|cookie|passw|passphrase|secret|token(?!s)|api[-_]?key|credential|session[-_]?(id|key)|private[-_]?key",
    re.I,
)
SECRET_SHAPES = (
    (re.compile(r"\bkl_[0-9A-Za-z]{4,32}_[\w-]{8,}"), MASK),
    (re.compile(r"\bsk-[\w-]{8,}"), MASK),
    (re.compile(r"\b(?:sk|rk|pk|whsec)_[\w-]{8,}"), MASK),
    (re.compile(r"\b(?:pa-|al-|AIza)[\w-]{30,}"), MASK),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_)\w{8,}"), MASK),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{6,}", re.I), rf"\1 {MASK}"),
    (re.compile(r"\b([a-z][a-z0-9+]{1,20}://)[^\s/@:]{0,256}:[^\s/@]{1,256}@", re.I), rf"\1{MASK}@"),
    (re.compile(r"\b((?:__Host-)?(?:sessionid|csrftoken)=)[^\s;,'\"]+", re.I), rf"\1{MASK}"),
    (
        re.compile(
            r"((?:authorization|passw(?:or)?d\d?|secret|token(?!s)|api[-_]?key)\w{0,20}[\\'\"]{0,4}\s{0,2}[=:]\s{0,2}[\\'\"]{0,4})"
            r"(?!\[hidden\])[^\s,;&\\'\"}\]]+",
            re.I,
        ),
        rf"\1{MASK}",
    ),
    (re.compile(r"(/accounts/(?:confirm-email|email/confirm|password/reset/key)/)[^\s/?'\"]{8,}"), rf"\1{MASK}"),
)


def configure(options: dict[str, Any]) -> None:
    """Django's LOGGING_CONFIG: everything, ours and foreign, goes through one handler."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(_logging(shared, _renderers(as_json=options.get("json", True))))


def about_run(run_id: UUID) -> AbstractContextManager[None]:
    """Every line written inside, by whatever library, names the run."""
    return structlog.contextvars.bound_contextvars(run_id=str(run_id))


def mask(text: str) -> str:
    """`text` without anything that has the shape of a secret."""
    for shape, replacement in SECRET_SHAPES:
        text = shape.sub(replacement, text)
    return text


def _renderers(*, as_json: bool) -> list[Processor]:
    if as_json:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]


def _logging(shared: list[Processor], renderers: list[Processor]) -> dict[str, Any]:
    to_root = {"handlers": [], "level": "INFO", "propagate": True}
    quiet = {"level": "WARNING"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [*shared, structlog.stdlib.ExtraAdder()],
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    _mask_values,
                    *renderers,
                    _mask_line,
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            **dict.fromkeys(("django", "django.server", "uvicorn", "uvicorn.access"), to_root),
            **dict.fromkeys(
                (
                    "uvicorn.error",  # at INFO three lines for every socket
                    "httpx",
                    "httpx2",
                    "httpcore",
                    "aiohttp.access",
                    "procrastinate",
                    "stripe",
                    "voyage",
                ),
                quiet,
            ),
        },
    }


def _mask_values(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """`color_message` is uvicorn's second copy of what it says."""
    return {name: _masked(name, value) for name, value in event.items() if name != "color_message"}


def _masked(name: str, value: Any) -> Any:
    if SECRET_NAMES.search(name) and isinstance(value, str | bytes | list | tuple | dict):
        return MASK
    match value:
        case dict():
            return {inner: _masked(str(inner), part) for inner, part in value.items()}
        case list() | tuple() if name != "exc_info":
            return [_masked(name, part) for part in value]
    return value


def _mask_line(logger: WrappedLogger, method: str, line: Any) -> str:
    return mask(str(line))
