"""The doors for OpenAI's clients in the API's schema, which finds only views of the REST framework by itself."""

from __future__ import annotations

from typing import Any

from drf_spectacular.generators import SchemaGenerator

from chat.profiles import PROFILES

Json = dict[str, Any]
_ANY_LOGIN: list[Json] = [{"key": []}, {"session": []}]
_TEXT: Json = {"type": "string"}
_MESSAGE: Json = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"type": "string", "enum": ["system", "developer", "user", "assistant"]},
        "content": {
            "oneOf": [
                _TEXT,
                {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type", "text"],
                        "properties": {"type": {"const": "text"}, "text": _TEXT},
                    },
                },
            ]
        },
    },
}
_REQUEST: Json = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {
        "model": {"type": "string", "enum": list(PROFILES), "description": "A mode."},
        "messages": {
            "type": "array",
            "items": _MESSAGE,
            "description": "The last one of the user is the question; those before it replace memory for this run.",
        },
        "stream": {"type": "boolean", "default": False},
        "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}},
        "metadata": {
            "type": "object",
            "properties": {"conversation_id": {"type": "string", "format": "uuid"}},
            "description": "Without a conversation the question and its answer are temporary.",
        },
    },
}


class WithOpenAI(SchemaGenerator):
    """The schema with those doors in it."""

    def get_schema(self, request: Any = None, public: bool = False) -> Json:
        schema: Json = super().get_schema(request=request, public=public)  # type: ignore[no-untyped-call]  # it has no types
        return {**schema, "paths": {**schema["paths"], **_paths()}}


def _paths() -> Json:
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "format": "uuid"},
        "description": "The id of the run: the same key and body are answered and charged once.",
    }
    name = {"name": "name", "in": "path", "required": True, "schema": _TEXT}
    asked = _operation(
        "v1_chat_completions",
        "Ask, as a chat completion of OpenAI's: whole, or in chunks as server-sent events.",
        parameters=[key],
        requestBody={"required": True, "content": {"application/json": {"schema": _REQUEST}}},
    )
    return {
        "/v1/chat/completions": {"post": asked},
        "/v1/models": {"get": _operation("v1_models", "The modes that can be used here.")},
        "/v1/models/{name}": {"get": _operation("v1_model", "One mode.", parameters=[name])},
    }


def _operation(name: str, description: str, **more: Any) -> Json:
    answer = {"description": "", "content": {"application/json": {"schema": {"type": "object"}}}}
    return {
        "operationId": name,
        "description": description,
        "tags": ["v1"],
        "security": _ANY_LOGIN,
        **more,
        "responses": {"200": answer},
    }
