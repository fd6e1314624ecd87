"""A file to be saved, sent while it is being written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from klerai.database import in_database


def saved_as(name: str, media_type: str, pieces: AsyncGenerator[bytes]) -> StreamingHttpResponse:
    """Only ever to be saved: nothing of it runs or shows in a browser as a page of ours."""
    headers = {
        "Content-Disposition": content_disposition_header(True, name) or "attachment",
        "Content-Type": media_type,
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
    }
    return StreamingHttpResponse(pieces, headers=headers)


async def written(parts: Iterator[str]) -> AsyncGenerator[bytes]:
    """Parts that are read from the database, each when its turn comes."""
    while (part := await in_database(next, parts, None)) is not None:
        yield part.encode()
