"""A small server that speaks Ollama's /api/embed: `python -m tests.fakes.ollama_server --port 0`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.outside import Answer, OutsideFake, Seen, Step, serve_by_hand
from tests.fakes.vectors import vector_of

DIMENSIONS = {"nomic-embed-text": 768, "all-minilm": 384}


@dataclass(slots=True)
class OllamaFake(OutsideFake):
    """The first call of a model waits until it is loaded, which is `load_seconds` or until the fake is closed."""

    load_seconds: float = 0
    pulled: set[str] = field(default_factory=lambda: set(DIMENSIONS))
    loaded: set[str] = field(default_factory=set)
    _loading: threading.Event = field(default_factory=threading.Event)

    def answer(self, seen: Seen) -> Answer:
        model = str(seen.body.get("model", "")).removesuffix(":latest")
        if seen.path != "/api/embed":
            return 404, {"error": "404 page not found"}
        if model not in self.pulled:
            return 404, {"error": f'model "{model}" not found, try pulling it first'}
        if model not in self.loaded:
            self._loading.wait(self.load_seconds)
            self.loaded.add(model)
        given = seen.body.get("input", [])
        texts = [given] if isinstance(given, str) else given
        return 200, {"model": model, "embeddings": [vector_of(text, DIMENSIONS[model]) for text in texts]}

    def error(self, step: Step) -> Any:
        return {"error": "something broke"}

    def spoilt(self, body: Any, wrong: str) -> Any:
        rows = body["embeddings"]
        match wrong:
            case "count":
                return {"embeddings": rows[1:]}
            case "form":
                return {"embedding": rows[0]}
            case "dimension":
                return {"embeddings": [row[:-1] for row in rows]}
        return {"embeddings": [[float("nan")] * len(row) for row in rows]}


if __name__ == "__main__":
    serve_by_hand(OllamaFake(load_seconds=2), __doc__)
