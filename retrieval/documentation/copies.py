"""What Context7 said, kept in Postgres: searches for a day, documentation for hours, vectors as long as their text.

A key is a hash, so nothing that a person asked can be read out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import numpy as np
from django.conf import settings
from django.utils import timezone
from numpy.typing import NDArray

from retrieval.analysis import terms
from retrieval.documentation.libraries import Library, libraries_in
from retrieval.documentation.sections import Section, within_budget
from retrieval.models import LibrarySearch, LibraryText, LibraryVectors

SEARCH_FRESH = timedelta(days=1)
TEXT_FRESH = timedelta(hours=6)
KEPT = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Libraries:
    """What a search found, and when."""

    libraries: tuple[Library, ...]
    fetched_at: datetime

    @property
    def is_fresh(self) -> bool:
        return timezone.now() - self.fetched_at < SEARCH_FRESH


@dataclass(frozen=True, slots=True)
class Text:
    """Sections of a library and the terms of each, and when they were fetched. `digest` changes with the words."""

    sections: tuple[Section, ...]
    terms: tuple[tuple[str, ...], ...]
    digest: str
    left_out: int
    fetched_at: datetime

    @property
    def is_fresh(self) -> bool:
        return timezone.now() - self.fetched_at < TEXT_FRESH


Copy = Libraries | Text


def kept_search(name: str) -> Libraries | None:
    row = LibrarySearch.objects.filter(pk=key("search", name)).first()
    return None if row is None else Libraries(tuple(libraries_in(row.libraries)), row.fetched_at)


def keep_search(name: str, libraries: Sequence[Library]) -> Libraries:
    """Of an empty answer no copy is kept, since the library may be added at any time."""
    now = timezone.now()
    if libraries:
        found = [library.to_json() for library in libraries]
        row = LibrarySearch(pk=key("search", name), libraries=found, fetched_at=now)
        _write(row, "libraries", "fetched_at")
    return Libraries(tuple(libraries), now)


def kept_text(library_id: str, topic: str) -> Text | None:
    row = LibraryText.objects.filter(pk=key("text", library_id, topic)).first()
    if row is None:
        return None
    sections = tuple(Section(**section) for section in row.sections)
    told = tuple(tuple(line.split()) for line in row.terms.split("\n"))
    return Text(sections, told, row.digest, row.left_out, row.fetched_at)


def keep_text(library_id: str, topic: str, found: Sequence[Section]) -> Text:
    """As much of it as the budget holds, analysed once for all questions. Takes a while: not for an event loop."""
    now = timezone.now()
    cut = within_budget(found)
    told = tuple(tuple(terms(section.whole)) for section in cut.sections)
    digest = sha256("\0".join(section.whole for section in cut.sections).encode()).hexdigest()
    if cut.sections:
        row = LibraryText(
            pk=key("text", library_id, topic),
            library=library_id,
            sections=[section.to_json() for section in cut.sections],
            terms="\n".join(" ".join(each) for each in told),
            digest=digest,
            left_out=cut.left_out,
            fetched_at=now,
        )
        _write(row, "library", "sections", "terms", "digest", "left_out", "fetched_at")
    return Text(cut.sections, told, digest, cut.left_out, now)


def kept_vectors(digest: str, embedder: str, *, count: int, dimension: int) -> NDArray[np.float32] | None:
    packed = LibraryVectors.objects.filter(digest=digest, embedder=embedder).values_list("vectors", flat=True).first()
    if packed is None:
        return None
    vectors = np.frombuffer(bytes(packed), dtype="<f4")
    return vectors.reshape(count, dimension) if vectors.size == count * dimension else None


def keep_vectors(digest: str, embedder: str, vectors: NDArray[np.float32]) -> None:
    """Two that make them at once both succeed."""
    packed = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
    row = LibraryVectors(digest=digest, embedder=embedder, vectors=packed)
    LibraryVectors.objects.bulk_create([row], ignore_conflicts=True)


def forget_library(library_id: str) -> None:
    """Everything that would lead to a library that is gone."""
    LibraryText.objects.filter(library=library_id).delete()
    LibrarySearch.objects.filter(libraries__contains=[{"id": library_id}]).delete()


def forget_old() -> int:
    """Delete the copies that are a month old; how many they were."""
    before = timezone.now() - KEPT
    deleted = [
        LibrarySearch.objects.filter(fetched_at__lt=before).delete(),
        LibraryText.objects.filter(fetched_at__lt=before).delete(),
        LibraryVectors.objects.filter(made_at__lt=before).delete(),
    ]
    return sum(count for count, _ in deleted)


def _write(row: LibrarySearch | LibraryText, *fields: str) -> None:
    rows: Any = type(row)._default_manager
    rows.bulk_create([row], update_conflicts=True, unique_fields=["key"], update_fields=fields)


def key(kind: str, *parts: str) -> str:
    """Case and spacing of what was asked make no difference; another service or version does."""
    said = [" ".join(part.casefold().split()) for part in parts]
    whole = "\0".join([settings.CONTEXT7.base_url, settings.CONTEXT7.version, kind, *said])
    return sha256(whole.encode("utf-8", "replace")).hexdigest()
