"""Events as rows: written many at once behind the fence, read in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import orjson
from django.db import connection
from django.utils import timezone

from chat.events import ContentChunk, Event, Logged, ReasoningChunk, payload
from chat.memory.summary import mechanical
from chat.memory.tokens import count
from chat.models import Item, Run, RunEvent
from chat.tools.base import ToolRecord
from chat.tools.showing import clean
from chat.vault import vault


@dataclass(slots=True)
class Entry:
    """An event with its place in the log; words may still join it until it is sealed."""

    seq: int
    event: Event
    pieces: list[str]
    record: ToolRecord | None
    _sealed: Logged | None = field(default=None)

    @classmethod
    def of(cls, seq: int, event: Event, record: ToolRecord | None) -> Entry:
        words = [event.text] if isinstance(event, ContentChunk | ReasoningChunk) else []
        return cls(seq, event, words, record)

    def joins(self, event: Event) -> bool:
        """Whether the words of `event` belong to this entry: the same kind, the same turn, not yet sealed."""
        if self._sealed is not None:
            return False
        match (self.event, event):
            case (ContentChunk(turn=mine), ContentChunk(turn=its)):
                return mine == its
            case (ReasoningChunk(), ReasoningChunk()):
                return True
        return False

    def sealed(self) -> Entry:
        """Close the entry: from here on it says what it will always say."""
        if self._sealed is None:
            event = self.event
            if isinstance(event, ContentChunk | ReasoningChunk):
                event = replace(event, text=clean("".join(self.pieces)))
            self._sealed = Logged(self.seq, event.type, payload(event))
        return self

    @property
    def logged(self) -> Logged:
        sealed = self.sealed()._sealed
        assert sealed is not None
        return sealed


@dataclass(frozen=True, slots=True)
class Batch:
    """What one round writes: each live run with its fence and newest seq, and the new entries of all."""

    lease_seconds: int
    runs: list[tuple[UUID, int, int]]
    entries: list[tuple[UUID, Entry]]


@dataclass(frozen=True, slots=True)
class Standing:
    """A run this process still holds."""

    must_stop: bool


_WRITE = """
WITH fence AS (
    UPDATE chat_run AS run SET last_seq = mine.last_seq, lease_until = statement_timestamp() + %(lease)s::interval
    FROM unnest(%(keys)s::uuid[], %(attempts)s::int[], %(seqs)s::int[]) AS mine(id, attempt, last_seq)
    WHERE run.id = mine.id AND run.attempt = mine.attempt AND run.state = 'running'
    RETURNING run.id, run.conversation_id, run.stop_requested_at IS NOT NULL AS must_stop
), logged AS (
    INSERT INTO chat_runevent (run_id, seq, type, data)
    SELECT event.run_id, event.seq, event.type, event.data::jsonb
    FROM unnest(%(event_runs)s::uuid[], %(event_seqs)s::int[], %(types)s::text[], %(data)s::text[])
        AS event(run_id, seq, type, data)
    JOIN fence ON fence.id = event.run_id
    ON CONFLICT DO NOTHING
), kept AS (
    INSERT INTO chat_item (id, conversation_id, run_id, ref, kind, tool, content, summary, tokens, reopens, card, is_ok,
        position)
    SELECT gen_random_uuid(), fence.conversation_id, found.run_id, found.ref, 'tool', found.tool, found.content,
        found.summary, found.tokens, found.reopens, found.card::jsonb, found.is_ok, found.position
    FROM unnest(%(item_runs)s::uuid[], %(refs)s::text[], %(tools)s::text[], %(contents)s::text[], %(summaries)s::text[],
        %(tokens)s::int[], %(reopens)s::text[], %(cards)s::text[], %(oks)s::bool[], %(positions)s::int[])
        AS found(run_id, ref, tool, content, summary, tokens, reopens, card, is_ok, position)
    JOIN fence ON fence.id = found.run_id
    ON CONFLICT DO NOTHING
)
SELECT id, must_stop FROM fence
"""


def write(batch: Batch) -> dict[UUID, Standing]:
    """Write the batch in one statement; runs that are missing in the answer are no longer ours.

    Writing the same batch again changes nothing, so it may be repeated when the answer got lost.
    """
    logged = [(run_key, entry.logged) for run_key, entry in batch.entries]
    records = [(run_key, entry.record) for run_key, entry in batch.entries if entry.record is not None]
    with connection.cursor() as cursor:
        cursor.execute(
            _WRITE,
            {
                "lease": f"{batch.lease_seconds} seconds",
                "keys": [key for key, _, _ in batch.runs],
                "attempts": [attempt for _, attempt, _ in batch.runs],
                "seqs": [seq for _, _, seq in batch.runs],
                "event_runs": [key for key, _ in logged],
                "event_seqs": [event.seq for _, event in logged],
                "types": [event.type for _, event in logged],
                "data": [orjson.dumps(event.data).decode() for _, event in logged],
                "item_runs": [key for key, _ in records],
                "refs": [record.ref for _, record in records],
                "tools": [record.tool for _, record in records],
                "contents": [record.content for _, record in records],
                "summaries": [mechanical(record.content) for _, record in records],
                "tokens": [count(record.read or record.content) for _, record in records],
                "reopens": [record.reopens for _, record in records],
                "cards": [orjson.dumps(record.card).decode() for _, record in records],
                "oks": [record.is_ok for _, record in records],
                "positions": [_position(record.ref) for _, record in records],
            },
        )
        return {run_key: Standing(must_stop) for run_key, must_stop in cursor.fetchall()}


def read_after(run_key: UUID, seq: int) -> tuple[list[Logged], bool]:
    """The events behind `seq`, and whether the run had ended before they were read."""
    is_over = not Run.objects.filter(pk=run_key, state__in=Run.LIVE).exists()
    return events_of(run_key, after=seq), is_over


def events_of(run_key: UUID, *, after: int = 0) -> list[Logged]:
    """The events of a run as its rows have them, in order."""
    held = vault().events(run_key, after=after)
    if held is not None:
        return held
    rows = RunEvent.objects.filter(run_id=run_key, seq__gt=after).order_by("seq").values_list("seq", "type", "data")
    return [Logged(*row) for row in rows]


def keep_in_memory(run: Run, entries: Sequence[Entry]) -> None:
    """What a temporary run said, for the vault of this process in place of rows."""
    records = [entry.record for entry in entries if entry.record is not None]
    vault().note(run.pk, [entry.logged for entry in entries], [_item(run, record) for record in records])


def _item(run: Run, record: ToolRecord) -> Item:
    return Item(
        conversation_id=run.conversation_id,
        run_id=run.pk,
        ref=record.ref,
        kind=Item.Kind.TOOL,
        tool=record.tool,
        content=record.content,
        summary=mechanical(record.content),
        tokens=count(record.read or record.content),
        reopens=record.reopens,
        card=record.card,
        is_ok=record.is_ok,
        position=_position(record.ref),
        created_at=timezone.now(),
    )


def _position(ref: str) -> int:
    """A query stands at 0, its tools from 1 on, the response behind them all."""
    return int(ref.rpartition("-t")[2])
