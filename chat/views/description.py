"""The description of the whole API: what the REST framework finds by itself, and every door outside it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.generators import SchemaGenerator

from chat.views import openai_schema, query_schema, run_schema, service_schema
from chat.views.operation_schema import components, with_refusals
from chat.views.shape_schema import COMPONENTS
from klerai.json_schema import Json

TAGS = {
    "chat": "Ask, and get an answer with its sources and receipt.",
    "runs": "One question to its answer: watched, read, stopped.",
    "conversations": "What was said, and what is remembered of it.",
    "knowledge-bases": "Documents, and searching them.",
    "tools": "What an answer may use, and what it costs.",
    "modes": "What each mode is, and its limits.",
    "billing": "Credits, limits, the ledger, and buying.",
    "v1": "For clients of OpenAI's.",
    "server": "How the server is.",
}
OUTSIDE = (run_schema, query_schema, openai_schema, service_schema)


class WholeApi(SchemaGenerator):
    """One OpenAPI document, in which every operation names its refusals."""

    def get_schema(self, request: Any = None, public: bool = False) -> Json:
        found: Json = super().get_schema(request=request, public=public)  # type: ignore[no-untyped-call]  # it has no types
        paths: Json = {**found["paths"], **{path: said for door in OUTSIDE for path, said in door.paths().items()}}
        known: Json = found["components"]
        return {
            **found,
            "tags": [{"name": name, "description": words} for name, words in TAGS.items()],
            "paths": {path: _whole(path, operations) for path, operations in sorted(paths.items())},
            "components": {**known, **components(), "schemas": {**known.get("schemas", {}), **COMPONENTS}},
        }


def _whole(path: str, operations: Json) -> Json:
    return {method: with_refusals(path, said) for method, said in operations.items()}
