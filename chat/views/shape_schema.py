"""What the API answers with, shape by shape: the components of its description."""

from __future__ import annotations

from typing import get_args

from chat.models import Run
from chat.profiles import PROFILES
from chat.sources import Origin
from klerai.json_schema import (
    ANYTHING,
    FLAG,
    MOMENT,
    NUMBER,
    TEXT,
    UUID,
    WHOLE,
    Json,
    choice,
    listed,
    mapped,
    maybe,
    named,
    record,
    said,
    with_more,
)

MODE = choice(*PROFILES)
STATE = choice(*Run.State.values)

LINE = with_more(
    record(item=TEXT, quantity=WHOLE, unit_price=WHOLE, credits=WHOLE),
    ref=said(TEXT, "The call it is for, such as q1-t1."),
    note=TEXT,
)
RECEIPT = with_more(
    record(
        run_id=UUID,
        mode=MODE,
        model=TEXT,
        lines=listed(LINE),
        credits=said(WHOLE, "The sum of the lines, and what the ledger says."),
        bucket_split=record(daily=WHOLE, pack=WHOLE),
        balance_before=WHOLE,
        balance_after=WHOLE,
        tokens=record(input=WHOLE, output=WHOLE, cached=WHOLE, full_history=WHOLE, sent_history=WHOLE),
        cost_usd=maybe(NUMBER),
        timings_ms=mapped(NUMBER),
        turns=WHOLE,
        tools=listed({}),
    ),
    quote=record(at_least=WHOLE, at_most=WHOLE),
    limits=listed(record(name=TEXT, used=WHOLE, max=WHOLE, resets_at=maybe(MOMENT), message=TEXT)),
    safety=listed({}),
)
CITATION = with_more(
    record(
        n=said(WHOLE, "What [n] in the text means."),
        title=TEXT,
        url=maybe(TEXT),
        document_id=maybe(TEXT),
        section=maybe(TEXT),
        quote=TEXT,
        start=maybe(WHOLE),
        end=maybe(WHOLE),
        origin=choice(*get_args(Origin)),
    ),
    ranks=ANYTHING,
    scores=ANYTHING,
)
RUN = record(
    id=UUID,
    state=STATE,
    mode=MODE,
    conversation_id=UUID,
    query_id=TEXT,
    created_at=MOMENT,
    ended_at=maybe(MOMENT),
    text=TEXT,
    error=maybe(ANYTHING),
    receipt=maybe(named("Receipt")),
    last_seq=WHOLE,
)
CONVERSATION = record(
    id=UUID,
    title=TEXT,
    mode=MODE,
    pinned=FLAG,
    archived=FLAG,
    temporary=FLAG,
    created_at=MOMENT,
    updated_at=MOMENT,
)
MESSAGE = record(
    query_id=TEXT,
    run_id=UUID,
    parent=maybe(TEXT),
    message=TEXT,
    text=TEXT,
    citations=listed(named("Citation")),
    confidence=maybe(NUMBER),
    state=STATE,
    created_at=MOMENT,
)
THREAD = {
    "allOf": [
        named("Conversation"),
        record(
            messages=said(listed(named("Message")), "Those of the branch shown."),
            branches=said(mapped(listed(TEXT)), "For each query that has versions: all of them."),
        ),
    ]
}
ITEM = record(
    id=TEXT,
    ref=TEXT,
    kind=choice("query", "response", "tool", "partial"),
    tool=maybe(TEXT),
    text=TEXT,
    tokens=WHOLE,
    created_at=MOMENT,
    reopened=listed(TEXT),
)
MEMORY = record(
    items=listed(named("MemoryItem")),
    tokens=record(full=WHOLE, summarised=WHOLE, saved=WHOLE, summaries_cost=WHOLE),
)
SHORT = record(name=choice("daily", "period"), used=WHOLE, max=WHOLE, resets_at=MOMENT)
ERROR = record(
    error=with_more(
        record(code=TEXT, message=said(TEXT, "A sentence for people.")),
        fields=said(mapped(listed(TEXT)), "Of `invalid`: what is wrong with which value."),
        limit=said({"anyOf": [TEXT, SHORT]}, "Of a limit: which one; without credits the one that binds, in full."),
        used=maybe(WHOLE),
        max=WHOLE,
        resets_at=maybe(MOMENT),
        balance=WHOLE,
        required=WHOLE,
        upgrade_url=TEXT,
        receipt=maybe(named("Receipt")),
    )
)

COMPONENTS: Json = {
    "Receipt": RECEIPT,
    "Citation": CITATION,
    "Run": RUN,
    "Conversation": CONVERSATION,
    "Message": MESSAGE,
    "Thread": THREAD,
    "MemoryItem": ITEM,
    "Memory": MEMORY,
    "Error": ERROR,
}
