"""How many tokens a text is, counted offline with WordLlama's tokenizer (Llama 2's vocabulary)."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from tokenizers import Tokenizer

_FILE = "tokenizers/l2_supercat_tokenizer_config.json"


def count(text: str) -> int:
    """The tokens of `text`: about 4 characters each in English, a vendor's own figure differs by some per cent."""
    return len(_tokenizer().encode(text, add_special_tokens=False).ids)


@lru_cache(maxsize=1)
def _tokenizer() -> Tokenizer:
    """Read from the package's file; importing the package itself would load its vectors' machinery too."""
    package = find_spec("wordllama")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("wordllama")
    tokenizer = Tokenizer.from_file(str(Path(package.origin).parent / _FILE))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
