"""What the billing doors answer with."""

from __future__ import annotations

from klerai.json_schema import MOMENT, TEXT, UUID, WHOLE, listed, maybe, record, said

_ROOM = record(used=WHOLE, max=said(maybe(WHOLE), "Null is no limit."))
_LIMIT = record(name=said(TEXT, "Such as daily or period."), used=WHOLE, max=WHOLE, resets_at=MOMENT)

BILLING = record(
    plan=TEXT,
    status=said(TEXT, "Stripe's word for the subscription; active on Free."),
    balance=record(daily=WHOLE, pack=WHOLE, held=WHOLE),
    limits=listed(_LIMIT),
    storage=record(documents=_ROOM, bytes=_ROOM),
    ceiling=WHOLE,
    time_zone=TEXT,
)
ENTRY = record(
    id=UUID,
    created_at=MOMENT,
    kind=TEXT,
    run_id=maybe(UUID),
    reason=TEXT,
    daily=WHOLE,
    pack=WHOLE,
    held=WHOLE,
    spent=WHOLE,
    expired=WHOLE,
    balance_after=record(daily=WHOLE, pack=WHOLE),
)
