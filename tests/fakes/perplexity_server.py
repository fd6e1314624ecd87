"""A small server that speaks Perplexity's agent API: `python -m tests.fakes.perplexity_server --port 0`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.outside import Answer, OutsideFake, Seen, Step, serve_by_hand

MODEL = "perplexity/sonar"
FIELDS = """
input preset model models instructions tools max_output_tokens max_steps reasoning response_format
previous_response_id store background stream language_preference
"""
KNOWN = frozenset(FIELDS.split())
PRESETS = ("fast", "low", "medium", "high", "xhigh")
RETIRED = "Sonar is now the Agent API. Send your request to /v1/responses."


def result(number: int, title: str, url: str, snippet: str, date: str | None = None) -> dict[str, Any]:
    """One of the results of a search, as the API gives it."""
    return {
        "id": number,
        "title": title,
        "url": url,
        "snippet": snippet,
        "date": date,
        "last_updated": None,
        "source": "web",
    }


@dataclass(frozen=True, slots=True)
class Said:
    """What the service says to a question: a text with `[n]` for the results' ids."""

    text: str
    results: Sequence[dict[str, Any]] = ()
    annotations: Sequence[dict[str, Any]] = ()
    fetched: Sequence[dict[str, Any]] = ()


DJANGO = Said(
    "Composite primary keys arrived in Django 5.2 [2]. It was released on 2 April 2025 [1][2].",
    (
        result(1, "Django downloads", "https://www.djangoproject.com/download/", "5.2 was released on 2 April 2025."),
        result(
            2,
            "Django 5.2 release notes",
            "https://docs.djangoproject.com/en/5.2/releases/5.2/",
            "The new CompositePrimaryKey allows tables with a primary key of several fields.",
            "2025-04-02",
        ),
        result(3, "A blog", "https://blog.example/django", "What I think of it."),
    ),
)


@dataclass(slots=True)
class PerplexityFake(OutsideFake):
    """Answers what it was told to, in order, and after that always the last; unknown fields are errors, as there.

    `says_to` goes first, to questions that hold its word.
    """

    says: list[Said] = field(default_factory=lambda: [DJANGO])
    says_to: dict[str, Said] = field(default_factory=dict)

    def answer(self, seen: Seen) -> Answer:
        key = seen.headers.get("authorization", "").removeprefix("Bearer ")
        if not key or key.startswith("invalid"):
            return 401, "<html><head><title>401 Authorization Required</title></head></html>"
        match seen.path:
            case "/v1/responses" | "/v1/agent":
                return self._respond(seen.body)
            case "/search":
                return 200, {"id": "s_1", "results": list(self.says[0].results), "server_time": None}
            case "/chat/completions":
                return 400, _fault(RETIRED)
        return 404, _fault("Not found")

    def error(self, step: Step) -> Any:
        return _fault("Something is wrong with this request.", code=step.status)

    def _respond(self, body: dict[str, Any]) -> Answer:
        unknown = sorted(set(body) - KNOWN)
        if unknown:
            return 400, _fault(f"Unknown field: {unknown[0]}")
        if not body.get("input") or not {"preset", "model", "models"} & set(body):
            return 400, _fault("input and one of preset, model, models are needed.")
        if body.get("preset", "fast") not in PRESETS:
            return 400, _fault("Unknown preset.")
        asked = str(body["input"])
        said = next((said for word, said in self.says_to.items() if word in asked), None)
        said = said or (self.says.pop(0) if len(self.says) > 1 else self.says[0])
        return 200, response(said, query=re.split(r"\n", asked)[0])


def response(said: Said, *, query: str = "", status: str = "completed", error: Any = None) -> dict[str, Any]:
    """A whole response of the API."""
    output: list[dict[str, Any]] = []
    if said.results:
        output.append({"type": "search_results", "queries": [query], "results": list(said.results)})
    if said.fetched:
        output.append({"type": "fetch_url_results", "contents": list(said.fetched)})
    part = {"type": "output_text", "text": said.text, "annotations": list(said.annotations)}
    output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "model": MODEL,
        "status": status,
        "output": output if status == "completed" else [],
        **({"error": error} if error else {}),
        "usage": {
            "input_tokens": 120,
            "output_tokens": 60,
            "total_tokens": 180,
            "tool_calls_details": {"web_search": {"invocation": 1}},
            "cost": {"currency": "USD", "total_cost": 0.0053},
        },
    }


def _fault(message: str, *, code: int = 400) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request", "code": code}}


if __name__ == "__main__":
    serve_by_hand(PerplexityFake(), __doc__)
