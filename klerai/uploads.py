"""How much an upload may send: each file up to a limit, told apart while they arrive."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from email.message import Message
from tempfile import SpooledTemporaryFile
from typing import Any

from django.http import HttpRequest, JsonResponse

from klerai.api import ApiError

Scope = MutableMapping[str, Any]
_HEADERS_OF_A_PART = 4_096


@dataclass(frozen=True, slots=True)
class Uploads:
    """Where files may be sent, by whom, how large each and how much at once, in bytes."""

    path: re.Pattern[str]
    file_limit: int
    request_limit: int
    is_let_in: Callable[[Scope], Awaitable[bool]]

    async def meter(self, scope: Scope) -> UploadMeter | None:
        """None for a request that is no upload, or one of somebody who may not send any."""
        if scope["method"] != "POST" or not self.path.fullmatch(scope["path"]):
            return None
        boundary = _boundary(dict(scope["headers"]).get(b"content-type", b""))
        if not boundary or not await self.is_let_in(scope):
            return None
        return UploadMeter(self, boundary)


def note_length(request: HttpRequest) -> None:
    """Django takes a form that was sent without its length for an empty one; what has arrived can be measured."""
    stream = getattr(request, "_stream", None)
    if not request.META.get("CONTENT_LENGTH") and isinstance(stream, SpooledTemporaryFile):
        request.META["CONTENT_LENGTH"] = str(stream.seek(0, os.SEEK_END))
        stream.seek(0)


class UploadMeter:
    """Counts what arrives, from the last boundary on."""

    def __init__(self, uploads: Uploads, boundary: bytes) -> None:
        self._uploads = uploads
        self._boundary = b"--" + boundary
        self._tail = b""
        self._of_request = 0
        self._of_file = 0

    @property
    def limit(self) -> int:
        """For what is declared."""
        return self._uploads.request_limit

    def take(self, data: bytes) -> bool:
        """Whether it is too large now."""
        self._of_request += len(data)
        seen = self._tail + data
        found = seen.rfind(self._boundary)
        self._of_file = len(seen) - found if found >= 0 else self._of_file + len(data)
        self._tail = seen[1 - len(self._boundary) :]
        return self._is_file_too_large or self._of_request > self._uploads.request_limit

    def refusal(self, declared: int) -> JsonResponse:
        """`used` is what had arrived: the rest was not waited for."""
        if self._is_file_too_large:
            which, used, most = "bytes of a file", self._of_file, self._uploads.file_limit
            message = (
                f"A file is larger than {most // 1_000_000} MB, the most one may have. Split it; nothing was stored."
            )
        else:
            which, most = "bytes of an upload", self._uploads.request_limit
            used = max(declared, self._of_request)
            message = (
                f"The request is larger than {most // 1_000_000} MB. Send fewer files at once; nothing was stored."
            )
        refused = ApiError("message_too_long", message, status=413, limit=which, used=used, max=most, resets_at=None)
        return refused.as_response()

    @property
    def _is_file_too_large(self) -> bool:
        return self._of_file > self._uploads.file_limit + _HEADERS_OF_A_PART


def _boundary(content_type: bytes) -> bytes:
    header = Message()
    header["content-type"] = content_type.decode("latin1")
    if header.get_content_type() != "multipart/form-data":
        return b""
    return str(header.get_param("boundary", "")).encode("latin1")
