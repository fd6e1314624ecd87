"""The doors for OpenAI's clients in the API's description."""

from __future__ import annotations

from chat.views.operation_schema import answer, as_events, as_json, in_header, in_path, operation
from chat.views.run_schema import ASK, ASKING, WATCH
from chat.views.shape_schema import MODE
from klerai.json_schema import FLAG, TEXT, UUID, WHOLE, Json, choice, listed, maybe, named, record, said, wanted

_PART = wanted("type", "text", type={"const": "text"}, text=TEXT)
_MESSAGE = wanted(
    "role",
    "content",
    role=choice("system", "developer", "user", "assistant"),
    content={"oneOf": [TEXT, listed(_PART)]},
)
_REQUEST = wanted(
    "model",
    "messages",
    model=said(MODE, "A mode."),
    messages=said(
        {**listed(_MESSAGE), "minItems": 1},
        "The last one of the user is the question; those before it replace memory for this run.",
    ),
    stream=said(FLAG, "Chunks as server-sent events."),
    stream_options=wanted(include_usage=FLAG),
    metadata=said(wanted(conversation_id=UUID), "Without a conversation the question and its answer are temporary."),
)
_MODEL = record(id=MODE, object={"const": "model"}, created=WHOLE, owned_by=TEXT, title=TEXT, description=TEXT)
_CHOICE = record(
    index=WHOLE,
    message=record(role={"const": "assistant"}, content=TEXT, refusal={"type": "null"}),
    logprobs={"type": "null"},
    finish_reason=TEXT,
)
_COMPLETION = record(
    id=TEXT,
    object={"const": "chat.completion"},
    created=WHOLE,
    model=MODE,
    choices=listed(_CHOICE),
    usage=record(prompt_tokens=WHOLE, completion_tokens=WHOLE, total_tokens=WHOLE),
    klerai=record(
        run_id=UUID,
        conversation_id=maybe(UUID),
        text=TEXT,
        citations=listed(named("Citation")),
        receipt=named("Receipt"),
    ),
)
_CHUNKS = 'data: {"object": "chat.completion.chunk", "choices": []}\n\ndata: [DONE]\n\n'


def paths() -> Json:
    key = in_header("Idempotency-Key", UUID, "The id of the run: the same key and body are answered and charged once.")
    asked = operation(
        "v1_chat_completions",
        "Ask, as a chat completion of OpenAI's: whole, or in chunks as server-sent events.",
        tag="v1",
        opens_to=ASK,
        parameters=[key],
        body=as_json(_REQUEST),
        answers=answer({**as_json(_COMPLETION), **as_events(_CHUNKS)}),
        refusals=ASKING,
    )
    models = operation(
        "v1_models",
        "The modes that can be used here.",
        tag="v1",
        opens_to=WATCH,
        answers=answer(as_json(record(object={"const": "list"}, data=listed(_MODEL)))),
    )
    model = operation(
        "v1_model",
        "One mode.",
        tag="v1",
        opens_to=WATCH,
        parameters=[in_path("name")],
        answers=answer(as_json(_MODEL)),
    )
    return {
        "/v1/chat/completions": {"post": asked},
        "/v1/models": {"get": models},
        "/v1/models/{name}": {"get": model},
    }
