"""The embedder that needs no key: WordLlama's word vectors, averaged, from the files of its package."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from retrieval.embedders.base import Vector
from retrieval.embedders.vectors import embeddable, unit_vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

DIMENSION = 256
NAME = f"wordllama/l2_supercat/{DIMENSION}"
_BATCH = 128
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_WEIGHTS = f"weights/l2_supercat_{DIMENSION}.safetensors"
_loading = Lock()


class WordLlama:
    """Some thousand texts a second on one core, in threads; a handle on what is loaded once a process."""

    @property
    def name(self) -> str:
        return NAME

    @property
    def dimension(self) -> int:
        return DIMENSION

    async def embed(self, text: str) -> Vector:
        return (await self.batch_embed([text]))[0]

    async def batch_embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), _BATCH):
            vectors += await asyncio.to_thread(_embedded, texts[start : start + _BATCH])
        return vectors

    async def warm(self) -> None:
        """Load now what the first text would wait for, about a quarter of a second."""
        await asyncio.to_thread(_model)

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Model:
    tokenizer: Tokenizer
    weights: Vector  # tokens × DIMENSION


def _embedded(texts: Sequence[str]) -> list[Vector]:
    """Texts are never padded to the longest one, which is where the package's own loop spends its time."""
    model = _model()
    encodings = model.tokenizer.encode_batch_fast([embeddable(text) for text in texts], add_special_tokens=False)
    sums = np.zeros((len(texts), DIMENSION), dtype=np.float32)
    for row, encoding in enumerate(encodings):
        sums[row] = model.weights.take(encoding.ids, axis=0).sum(axis=0) if encoding.ids else 0
    return unit_vectors(sums, count=len(texts), dimension=DIMENSION)


def _model() -> _Model:
    with _loading:
        return _load()


@lru_cache(maxsize=1)
def _load() -> _Model:
    """Read the two files; the package's own loader imports more, and looks for them on the network."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    package = find_spec("wordllama")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("wordllama")
    folder = Path(package.origin).parent
    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    weights = load_file(folder / _WEIGHTS)["embedding.weight"]
    return _Model(tokenizer, np.ascontiguousarray(weights, dtype=np.float32))
