"""The doors of a run in the API's description: ask, watch, read, stop, confirm."""

from __future__ import annotations

from chat.questions import MAX_HISTORY, MAX_MESSAGE_CHARACTERS
from chat.views.operation_schema import answer, as_events, as_json, in_header, in_path, in_query, operation
from chat.views.shape_schema import MODE
from klerai.accounts.access import Access
from klerai.json_schema import ANYTHING, FLAG, TEXT, UUID, WHOLE, Json, listed, maybe, named, record, said, wanted

ASK, WATCH = (Access.CHAT,), (Access.READ, Access.CHAT)
ASKING = (402, 404, 409, 410, 422, 500, 502, 503, 504)  # how a question may be refused, or end without an answer

MESSAGE = {**TEXT, "minLength": 1, "pattern": r"\S", "maxLength": MAX_MESSAGE_CHARACTERS}
MAX_CREDITS = said({**WHOLE, "minimum": 1, "maximum": 1_000_000}, "The most this question may cost.")
RUN_ID = said(UUID, "The same id and body are answered and charged once.")
_QUESTION = wanted(
    "message",
    message=MESSAGE,
    conversation_id=maybe(UUID),
    mode=maybe(MODE),
    context_type=TEXT,
    context=ANYTHING,
    run_id=RUN_ID,
    parent=said(
        maybe(TEXT), "What it follows, such as q3-r; null is the start. Left out: the end of the branch shown."
    ),
    max_credits=MAX_CREDITS,
    tools=said(FLAG, "Whether tools may be used."),
    temporary=said(FLAG, "Whether its words are kept in memory only."),
    history=said(
        listed(
            wanted("role", "content", role={"type": "string", "enum": ["user", "assistant", "system"]}, content=TEXT)
        ),
        f"At most {MAX_HISTORY} messages that replace memory for this run.",
    ),
    kb_id=said(TEXT, "The only knowledge base to search."),
)
_ANSWER = record(
    response=TEXT,
    summary=TEXT,
    conversation_id=UUID,
    message_id=TEXT,
    run_id=UUID,
    citations=listed(named("Citation")),
    credits_used=WHOLE,
    credits_remaining=WHOLE,
    receipt=named("Receipt"),
)
_CONFIRM = wanted("call_id", "token", "approve", call_id=TEXT, token=TEXT, approve=FLAG)
_EVENTS = 'id: 1\nevent: run_started\ndata: {"query_id": "q1"}\n\n'
_RUN = [in_path("run_id", UUID)]


def paths() -> Json:
    run = answer(as_json(named("Run")))
    seen = operation("run", "A run as it stands.", tag="runs", opens_to=WATCH, parameters=_RUN, answers=run)
    stopped = operation(
        "run_stop", "Stop a run. What was written stays.", tag="runs", opens_to=ASK, parameters=_RUN, answers=run
    )
    confirmed = operation(
        "run_confirm",
        "Let a call that waits for its person run, or not.",
        tag="runs",
        opens_to=ASK,
        parameters=_RUN,
        body=as_json(_CONFIRM),
        answers=run,
        refusals=(409,),
    )
    return {
        "/api/chat": {"post": _asked()},
        "/api/runs/{run_id}": {"get": seen},
        "/api/runs/{run_id}/events": {"get": _watched()},
        "/api/runs/{run_id}/stop": {"post": stopped},
        "/api/runs/{run_id}/confirm": {"post": confirmed},
    }


def _asked() -> Json:
    return operation(
        "chat",
        "Ask a question. JSON waits for the end; with `Accept: text/event-stream` the events come as they happen.",
        tag="chat",
        opens_to=ASK,
        body=as_json(_QUESTION),
        answers=answer({**as_json(_ANSWER), **as_events(_EVENTS)}),
        refusals=ASKING,
    )


def _watched() -> Json:
    after = [
        in_query("after", {**WHOLE, "minimum": 0}, "The number of the last event you have."),
        in_header("Last-Event-ID", TEXT, "The same, as browsers send it; it wins."),
    ]
    return operation(
        "run_events",
        "The events of a run from a place on, then live until its end.",
        tag="runs",
        opens_to=WATCH,
        parameters=[*_RUN, *after],
        answers=answer(as_events(_EVENTS)),
        refusals=(410,),
    )
