"""The door of grounded answers in the API's schema, which finds only views of the REST framework by itself."""

from __future__ import annotations

from typing import Any

from chat.views.openai_schema import WithOpenAI

Json = dict[str, Any]
_TEXT: Json = {"type": "string"}
_REQUEST: Json = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {**_TEXT, "minLength": 1, "maxLength": 32_000},
        "session_id": {**_TEXT, "format": "uuid", "description": "A conversation to go on with."},
        "kb_id": {**_TEXT, "description": "The only knowledge base to search; without it all are."},
        "run_id": {**_TEXT, "format": "uuid", "description": "The same id and body are answered and charged once."},
        "max_credits": {"type": "integer", "minimum": 1},
    },
}
_ANSWER: Json = {
    "type": "object",
    "properties": {
        "answer": _TEXT,
        "sources": {"type": "array", "items": {"type": "object"}},
        "confidence_score": {"type": "number", "minimum": 0, "maximum": 1, "nullable": True},
        "used_internal_kb": {"type": "boolean"},
        "used_external_kb": {"type": "boolean"},
        "session_id": {**_TEXT, "format": "uuid"},
        "run_id": {**_TEXT, "format": "uuid"},
        "credits_used": {"type": "integer"},
        "receipt": {"type": "object"},
    },
}


class WithQuery(WithOpenAI):
    """The schema of the whole API."""

    def get_schema(self, request: Any = None, public: bool = False) -> Json:
        schema: Json = super().get_schema(request=request, public=public)
        return {**schema, "paths": {**schema["paths"], "/api/chat/query": {"post": _OPERATION}}}


_OPERATION: Json = {
    "operationId": "chat_query",
    "description": "Ask in the mode grounded: an answer that rests on documents, with its sources and confidence.",
    "tags": ["chat"],
    "security": [{"key": []}, {"session": []}],
    "requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}},
    "responses": {"200": {"description": "", "content": {"application/json": {"schema": _ANSWER}}}},
}
