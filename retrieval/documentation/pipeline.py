"""From a question to the best sections of a product's documentation."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from klerai.database import in_database
from retrieval.documentation import client, copies
from retrieval.documentation.asked import Asked, parse
from retrieval.documentation.asking import Current, current
from retrieval.documentation.clock import Clock
from retrieval.documentation.faults import Fault, Kind, too_slow
from retrieval.documentation.flights import flights
from retrieval.documentation.libraries import Library, matched, pick, score
from retrieval.documentation.ranking import Ranked, fused, reranked
from retrieval.documentation.small import SmallModel
from retrieval.errors import DocumentationUnavailable, NoDocumentation


@dataclass(frozen=True, slots=True)
class Documentation:
    """What was found: the best sections of `count`, and in `notes` a sentence each for what was less than it could be.

    `is_stale` says that an older copy had to do.
    """

    name: str
    topic: str
    library: Library
    sections: tuple[Ranked, ...]
    count: int
    notes: tuple[str, ...] = ()
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class _Candidates:
    libraries: tuple[Library, ...]
    name: str
    note: str
    is_from_copy: bool


async def look_up(query: str, *, small: SmallModel | None, seconds: float) -> Documentation:
    """See retrieval/docs.py."""
    clock = Clock.of(seconds)
    try:
        asked = await parse(query, small=small, clock=clock)
        return await _found(asked, small, clock)
    except Fault as fault:
        raise DocumentationUnavailable(str(fault)) from fault


async def _found(asked: Asked, small: SmallModel | None, clock: Clock) -> Documentation:
    candidates = await _candidates(asked, clock)
    library = await pick(candidates.name, asked.query, candidates.libraries, small=small, clock=clock)
    try:
        read = await _text_of(library.id, asked.topic, clock)
    except Fault as fault:
        if fault.kind is not Kind.GONE:
            raise
        candidates, library, read = await _instead_of(library, candidates, asked, small, clock)
    text = read.copy
    assert isinstance(text, copies.Text)
    if not text.sections:
        about = f" on “{asked.topic}”" if asked.topic else ""
        raise NoDocumentation(f"Context7 has nothing{about} in the documentation of {library.title}. Try other words.")
    ranked, missing = await fused(text, asked.about, clock=clock)
    best = await reranked(asked.query, ranked, small=small, clock=clock)
    left_out = f"{text.left_out} sections beyond 50,000 tokens were left out." if text.left_out else ""
    notes = dict.fromkeys(note for note in (candidates.note, read.note, missing, left_out) if note)
    is_stale = bool(candidates.note or read.note)
    return Documentation(candidates.name, asked.topic, library, tuple(best), len(text.sections), tuple(notes), is_stale)


async def _candidates(asked: Asked, clock: Clock) -> _Candidates:
    """The libraries of the first name that fits one, else of the first name that gave any. Raises NoDocumentation."""
    first: _Candidates | None = None
    for name in asked.names:
        found = await _search(name, asked.about, clock)
        libraries = found.copy
        assert isinstance(libraries, copies.Libraries)
        if not libraries.libraries:
            continue
        candidates = _Candidates(libraries.libraries, name, found.note, found.is_from_copy)
        first = first or candidates
        best = max(libraries.libraries, key=lambda library: score(library, name))
        if asked.is_by_model or matched(best, name) > 0:
            return candidates
    if first is None:
        raise NoDocumentation(
            f"Context7 has no library called “{asked.names[0]}”. Try the product's own name, and nothing beside it."
        )
    return first


async def _search(name: str, about: str, clock: Clock) -> Current:
    async def fetch(seconds: float) -> copies.Copy:
        found = await client.find_libraries(name, about, seconds=seconds)
        return await in_database(copies.keep_search, name, found)

    async def found() -> Current:
        kept = await in_database(copies.kept_search, name)
        return await current(kept, fetch, clock, what="the list of libraries")

    return await _once(copies.key("search", name), found, clock)


async def _text_of(library_id: str, topic: str, clock: Clock) -> Current:
    """The documentation on a topic; a library that moved is followed to its new id once. Raises Fault."""

    async def fetch(seconds: float) -> copies.Copy:
        left = Clock.of(seconds)
        try:
            sections = await client.read_library(library_id, topic, seconds=seconds)
        except Fault as fault:
            if fault.kind is not Kind.MOVED:
                raise
            sections = await client.read_library(fault.moved_to, topic, seconds=max(left.left, 0.1))
        return await in_database(copies.keep_text, library_id, topic, sections)

    async def read() -> Current:
        kept = await in_database(copies.kept_text, library_id, topic)
        return await current(kept, fetch, clock, what="the text")

    return await _once(copies.key("text", library_id, topic), read, clock)


async def _once(key: str, work: Callable[[], Coroutine[Any, Any, Current]], clock: Clock) -> Current:
    """What the same look-up of another question gives, if one is under way. Raises Fault."""
    seconds = clock.left
    try:
        return await flights().share(key, work, clock=clock)
    except TimeoutError as error:
        raise too_slow(seconds) from error


async def _instead_of(
    gone: Library, candidates: _Candidates, asked: Asked, small: SmallModel | None, clock: Clock
) -> tuple[_Candidates, Library, Current]:
    """Another library in the place of one that is gone: of a new search where the old one's copy named it."""
    await in_database(copies.forget_library, gone.id)
    if candidates.is_from_copy:
        candidates = await _candidates(asked, clock)
    others: Sequence[Library] = [library for library in candidates.libraries if library.id != gone.id]
    if not others:
        raise NoDocumentation(f"Context7 does not have the documentation of {gone.title} any more. Try another name.")
    library = await pick(candidates.name, asked.query, others, small=small, clock=clock)
    return candidates, library, await _text_of(library.id, asked.topic, clock)
