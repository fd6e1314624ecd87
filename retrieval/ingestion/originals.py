"""Files as they were given, in the database, a megabyte at a time."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from retrieval.errors import FileTooLarge
from retrieval.models import Document, OriginalPiece

PIECE_BYTES = 2**20
MOST_BYTES = 100_000_000


class Incoming:
    """A file on its way in. Belongs to one transaction; never more than a piece of it stands in memory."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._digest = hashlib.sha256()
        self._held = bytearray()
        self._bytes = 0
        self._pieces = 0

    def write(self, data: bytes) -> None:
        """Raises FileTooLarge as soon as it is."""
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            raise FileTooLarge(self.document.title, MOST_BYTES)
        self._digest.update(data)
        self._held += data
        while len(self._held) >= PIECE_BYTES:
            self._store(bytes(self._held[:PIECE_BYTES]))
            del self._held[:PIECE_BYTES]

    def finish(self) -> None:
        """Store the rest; the document then knows its size and hash."""
        if self._held:
            self._store(bytes(self._held))
            self._held.clear()
        self.document.sha256 = self._digest.hexdigest()
        self.document.bytes = self._bytes
        self.document.save(update_fields=["sha256", "bytes", "updated_at"])

    def _store(self, data: bytes) -> None:
        OriginalPiece.objects.create(document=self.document, position=self._pieces, data=data)
        self._pieces += 1


def original_pieces(document: Document) -> Iterator[bytes]:
    """The file as it was given; what came as a row of a corpus, as its text."""
    position = 0
    while (piece := original_piece(document, position)) is not None:
        yield piece
        position += 1


def original_piece(document: Document, position: int) -> bytes | None:
    """One megabyte, counted from 0; None behind the last."""
    found = OriginalPiece.objects.filter(document=document, position=position).values_list("data", flat=True).first()
    if found is None and position == 0 and document.external_id:
        return document.text.encode()
    return None if found is None else bytes(found)


def spooled(document: Document) -> BinaryIO:
    """The original as a file without a name, so that nothing of it outlives whoever reads it."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    try:
        for piece in original_pieces(document):
            file.write(piece)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file
