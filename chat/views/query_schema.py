"""The door of grounded answers in the API's description."""

from __future__ import annotations

from chat.views.operation_schema import answer, as_json, operation
from chat.views.run_schema import ASK, ASKING, MAX_CREDITS, MESSAGE, RUN_ID
from klerai.json_schema import FLAG, NUMBER, TEXT, UUID, WHOLE, Json, listed, maybe, named, record, said, wanted

_QUERY = wanted(
    "query",
    query=MESSAGE,
    session_id=said(maybe(UUID), "A conversation to go on with."),
    kb_id=said(maybe(TEXT), "The only knowledge base to search; without it all are."),
    run_id=RUN_ID,
    max_credits=MAX_CREDITS,
)
_ANSWER = record(
    answer=TEXT,
    sources=listed(named("Citation")),
    confidence_score=maybe({**NUMBER, "minimum": 0, "maximum": 1}),
    used_internal_kb=FLAG,
    used_external_kb=FLAG,
    session_id=UUID,
    run_id=UUID,
    credits_used=WHOLE,
    receipt=named("Receipt"),
)


def paths() -> Json:
    asked = operation(
        "chat_query",
        "Ask in the mode grounded: an answer that rests on documents, with its sources and confidence.",
        tag="chat",
        opens_to=ASK,
        body=as_json(_QUERY),
        answers=answer(as_json(_ANSWER)),
        refusals=ASKING,
    )
    return {"/api/chat/query": {"post": asked}}
