"""Finds the sums in a question, as people write them: `17.5 % of 2,480`, `3 times (4 + 5)`, `20 % of that`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_CHARACTERS = 2_000
MAX_SUMS = 10

_TOKEN = re.compile(
    r"(?P<number>\d+(?:[,\u00a0\u202f]\d{3})*(?:\.\d+)?|\.\d+)"
    r"|(?P<operator>\*\*|[-+*/×÷^−·])"
    r"|(?P<percent>%|per\s?cent\b)"
    r"|(?P<root>√|square\s+root\s+of\b|sqrt\b)"
    r"|(?P<word_operator>plus\b|minus\b|times\b|multiplied\s+by\b|divided\s+by\b|to\s+the\s+power\s+of\b|x\b)"
    r"|(?P<square>squared\b|²)"
    r"|(?P<cube>cubed\b|³)"
    r"|(?P<of>of\b)"
    r"|(?P<that>that\b|it\b|this\b|the\s+result\b)"
    r"|(?P<open>\()|(?P<close>\))|(?P<space>\s+)|(?P<other>[^\W\d_]+|.)",
    re.IGNORECASE | re.DOTALL,
)
_SYMBOLS = {"plus": "+", "minus": "-", "times": "×", "x": "×", "−": "-", "*": "×", "·": "×", "/": "÷", "**": "^"}
_ASKING = re.compile(
    r"\s*(?:and\s+)?(?:what(?:'s|’s|\s+is)|calculate|compute|how\s+much\s+is|work\s+out|evaluate)\b", re.I
)


@dataclass(slots=True)
class _Sum:
    """A sum being read: its words so far, and where it last was complete."""

    words: list[str] = field(default_factory=list)
    depth: int = 0
    wants_operand: bool = True
    operations: int = 0
    tight_operations: int = 0
    complete: tuple[int, int, int] = (0, 0, 0)

    def add(self, word: str, *, wants_operand: bool, operations: int = 0, is_tight: bool = False) -> None:
        self.words.append(word)
        self.wants_operand = wants_operand
        self.operations += operations
        self.tight_operations += operations if is_tight else 0
        if not self.wants_operand and self.depth == 0:
            self.complete = (len(self.words), self.operations, self.tight_operations)


def sums_in(question: str, *, last_result: str | None = None) -> tuple[str, ...]:
    """The sums a question holds, each as the calculator takes it, in order and without repeats.

    "that" stands for `last_result`. What merely looks like one, a date or a telephone number, is left alone unless the
    question asks for it.
    """
    text = question[:MAX_CHARACTERS]
    is_asking = bool(_ASKING.match(text)) or text.rstrip().endswith("=") or not re.search(r"[^\W\d_]", text)
    found: dict[str, None] = {}
    for candidate in _candidates(text, last_result):
        length, operations, tight = candidate.complete
        if operations and (operations > tight or is_asking) and not _is_date(candidate.words[:length]):
            found[_spelled(candidate.words[:length])] = None
    return tuple(found)[:MAX_SUMS]


def _candidates(text: str, last_result: str | None) -> Iterator[_Sum]:
    """Every run of tokens that could be a sum; reading goes on behind one that breaks."""
    current = _Sum()
    tokens = [(found.lastgroup or "other", found.group()) for found in _TOKEN.finditer(text)]
    for index, (kind, word) in enumerate(tokens):
        if kind == "space":
            continue
        if kind == "that" and last_result is not None:
            kind, word = "number", last_result
        is_tight = 0 < index < len(tokens) - 1 and "space" not in (tokens[index - 1][0], tokens[index + 1][0])
        if not _take(current, kind, word, is_tight=is_tight):
            yield current
            current = _Sum()
            if last_result is not None and _goes_on(kind, word, [token for _, token in tokens[:index]]):
                _take(current, "number", last_result, is_tight=False)
            _take(current, kind, word, is_tight=is_tight)
    yield current


def _take(current: _Sum, kind: str, word: str, *, is_tight: bool) -> bool:
    """Whether the token carries the sum on."""
    if current.wants_operand:
        match kind:
            case "number":
                current.add(word, wants_operand=False)
            case "open":
                current.depth += 1
                current.add("(", wants_operand=True)
            case "root":
                current.add("sqrt", wants_operand=True, operations=1)
            case "operator" if word in "-−" and current.words[-1:] != ["negative"]:
                current.add("negative", wants_operand=True)
            case _:
                return False
        return True
    match kind:
        case "operator" | "word_operator":
            symbol = _symbol(word)
            current.add(symbol, wants_operand=True, operations=1, is_tight=is_tight and symbol in "-÷")
        case "percent":
            current.add("%", wants_operand=False)
        case "of" if current.words[-1] == "%":
            current.add("of", wants_operand=True, operations=1)
        case "square" | "cube":
            current.add("^ 2" if kind == "square" else "^ 3", wants_operand=False, operations=1)
        case "close" if current.depth:
            current.depth -= 1
            current.add(")", wants_operand=False)
        case _:
            return False
    return True


def _goes_on(kind: str, word: str, before: list[str]) -> bool:
    """Whether a question that begins like `times 3` takes up the last result."""
    is_operator = kind == "word_operator" or (kind == "operator" and word in "+×÷^")
    return is_operator and {token.lower() for token in before if not token.isspace()} <= {"and", "then", "now"}


def _symbol(word: str) -> str:
    plain = word.lower()
    if plain.startswith("multiplied"):
        return "×"
    if plain.startswith("divided"):
        return "÷"
    return "^" if plain.startswith("to") else _SYMBOLS.get(plain, plain)


def _is_date(words: list[str]) -> bool:
    numbers = [word for word in words if word[0].isdigit()]
    return len(numbers) == 3 and any(len(number) == 4 for number in numbers) and set(words) - set(numbers) <= {"-", "÷"}


def _spelled(words: list[str]) -> str:
    spaced = " ".join(words).replace("negative ", "-").replace("( ", "(").replace(" )", ")").replace("sqrt (", "sqrt(")
    return re.sub(r"sqrt (-?[\d.,]+)", r"sqrt(\1)", spaced)
