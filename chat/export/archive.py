"""A ZIP that is written in one go into pieces: nothing of it stands whole in memory or on disk."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from django.core.serializers.json import DjangoJSONEncoder

from klerai.accounts.errors import ExportTooLarge

Keep = Callable[[int, bytes], None]  # the number of a piece, and the piece


class Pieces:
    """A file that can only be written, and is handed on in pieces of one size. Raises ExportTooLarge."""

    def __init__(self, keep: Keep, *, piece_bytes: int, most_bytes: int) -> None:
        self._keep = keep
        self._piece_bytes = piece_bytes
        self._most_bytes = most_bytes
        self._held = bytearray()
        self._pieces = 0

    def write(self, data: bytes) -> int:
        if self._pieces * self._piece_bytes + len(self._held) + len(data) > self._most_bytes:
            raise ExportTooLarge(self._most_bytes)
        self._held += data
        while len(self._held) >= self._piece_bytes:
            self._hand_on(self._piece_bytes)
        return len(data)

    def flush(self) -> None:
        """A piece is handed on when it is full; the last by `close`."""

    def close(self) -> None:
        if self._held:
            self._hand_on(len(self._held))

    def _hand_on(self, size: int) -> None:
        self._keep(self._pieces, bytes(self._held[:size]))
        del self._held[:size]
        self._pieces += 1


class Archive:
    """What an export's parts are written to. Names that were taken get a number."""

    def __init__(self, pieces: Pieces, *, made_at: datetime) -> None:
        self._pieces = pieces
        self._zip = zipfile.ZipFile(pieces, "w", zipfile.ZIP_DEFLATED)
        self._made_at = made_at.timetuple()[:6]
        self._names: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """The last piece of a file that broke off is not handed on."""
        if kind is None:
            self._zip.close()
            self._pieces.close()

    def add(self, name: str, content: Iterable[str | bytes]) -> None:
        entry = zipfile.ZipInfo(self._free(name), self._made_at)
        entry.compress_type = zipfile.ZIP_DEFLATED
        with self._zip.open(entry, "w", force_zip64=True) as file:
            for piece in content:
                file.write(piece.encode() if isinstance(piece, str) else piece)

    def add_json(self, name: str, value: Any) -> None:
        self.add(name, [as_json(value), "\n"])

    def _free(self, name: str) -> str:
        stem, dot, ending = name.rpartition(".")
        numbered, number = name, 1
        while numbered.casefold() in self._names:
            number += 1
            numbered = f"{stem}-{number}{dot}{ending}" if dot else f"{name}-{number}"
        self._names.add(numbered.casefold())
        return numbered


def as_json(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False, indent=2)
