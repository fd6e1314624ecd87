"""Exact arithmetic, with the percent sign people mean."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import simpleeval

from chat.tools.base import ToolContext, ToolFailure, ToolOutput

MAX_CHARACTERS = 300
MAX_DIGITS = 1_000
MAX_EXPONENT = 10_000

_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+"
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?:[,\u00a0\u202f' ]\d{3})+(?![\d])")
_PERCENT_OF = re.compile(r"%\s*of\b", re.IGNORECASE)
_PERCENT = re.compile(r"%")
_WORDS = str.maketrans({"×": "*", "÷": "/", "^": "**", "−": "-", "–": "-", "·": "*", "²": "**2", "³": "**3"})


class NotArithmetic(Exception):
    """The text is no arithmetic this tool does. `str(error)` says why, to the model."""


def calculate(expression: str) -> Fraction | float:
    """The value of `expression`: exact where the operations are, a float after a root or a logarithm.

    `x % of y` and `x %` mean per cent, `,` parts thousands, `×`, `÷` and `^` are understood. Raises NotArithmetic.
    """
    if len(expression) > MAX_CHARACTERS:
        raise NotArithmetic(f"the expression has more than {MAX_CHARACTERS} characters.")
    plain = _normalise(expression)
    evaluator = simpleeval.SimpleEval(
        operators=_OPERATORS, functions=_FUNCTIONS, names={"pi": math.pi, "e": math.e, "tau": math.tau}
    )
    evaluator.nodes[ast.Constant] = _constant
    try:
        value = evaluator.eval(plain)
    except ZeroDivisionError:
        raise NotArithmetic("it divides by zero.") from None
    except (OverflowError, MemoryError, RecursionError):
        raise NotArithmetic("the result is too large.") from None
    except simpleeval.FunctionNotDefined as error:
        raise NotArithmetic(f"the function {error.func_name} is not known.") from None
    except simpleeval.NameNotDefined as error:
        raise NotArithmetic(f"{error.name!r} is not a number.") from None
    except (simpleeval.InvalidExpression, SyntaxError, ValueError, TypeError, KeyError, AttributeError):
        raise NotArithmetic("it could not be read as arithmetic.") from None
    return _checked(value)


def written(value: Fraction | float) -> str:
    """The number as people write it: exact when it ends, else to 12 significant digits."""
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return str(value.numerator)
        exact = _terminating(value)
        if exact is not None:
            return exact
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.12g}"  # a float ends at 1e308
    return f"{value:.12g}"


def _normalise(expression: str) -> str:
    text = _THOUSANDS.sub(lambda found: re.sub(r"[,\u00a0\u202f' ]", "", found[0]), expression.translate(_WORDS))
    text = _PERCENT_OF.sub("/100*", text)
    return _PERCENT.sub("/100", text).strip().rstrip("=?,.; ")


def _constant(node: ast.Constant) -> Fraction:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise NotArithmetic("only numbers can be calculated with.")
    return Fraction(Decimal(repr(node.value)))


def _checked(value: Any) -> Fraction | float:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise NotArithmetic("the result is not a number.")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotArithmetic("the result is too large.")
        return value
    exact = Fraction(value)
    _bounded(exact)
    return exact


def _bounded(value: Fraction) -> None:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_DIGITS * math.log2(10):
        raise NotArithmetic("the result is too large.")


def _power(base: Fraction | float, exponent: Fraction | float) -> Fraction | float:
    if not -MAX_EXPONENT <= exponent <= MAX_EXPONENT:
        raise NotArithmetic("the exponent is too large.")
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        size = max(base.numerator.bit_length(), base.denominator.bit_length(), 1) * abs(exponent.numerator)
        if size > MAX_DIGITS * 4:
            raise NotArithmetic("the result is too large.")
    result = base**exponent
    if isinstance(result, complex):
        raise NotArithmetic("the result is not a real number.")
    return result


def _round(value: Fraction | float, digits: Fraction | float = 0) -> Fraction:
    places = int(digits)
    if abs(places) > 100:
        raise NotArithmetic("round takes at most 100 digits.")
    return Fraction(round(Fraction(value), places))


def _factorial(value: Fraction | float) -> Fraction:
    if value != int(value) or not 0 <= value <= 400:
        raise NotArithmetic("factorial takes a whole number from 0 to 400.")
    return Fraction(math.factorial(int(value)))


def _terminating(value: Fraction) -> str | None:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return None
    digits = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
    return digits if Fraction(Decimal(digits)) == value else None


_OPERATORS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Pow: _power,
    ast.UAdd: lambda a: a,
    ast.USub: lambda a: -a,
}
_FUNCTIONS = {
    "sqrt": math.sqrt,
    "abs": abs,
    "round": _round,
    "min": min,
    "max": max,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "ln": math.log,
    "exp": math.exp,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "floor": lambda a: Fraction(math.floor(a)),
    "ceil": lambda a: Fraction(math.ceil(a)),
    "factorial": _factorial,
}


@dataclass(frozen=True, slots=True)
class Calculator:
    name: str = "calculator"
    description: str = (
        "Calculates an arithmetic expression exactly: + - * / ^, parentheses, `x % of y`, `x %` (always per cent, "
        "never modulo), sqrt, round, min, max, log, ln, exp, sin, cos, tan, floor, ceil, factorial, pi, e. "
        "Use it for every calculation."
    )
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": "The arithmetic, for example `17.5 % of 2,480` or `(3 + 4) * 2^10`.",
                    "minLength": 1,
                    "maxLength": MAX_CHARACTERS,
                }
            },
            "required": ["expression"],
            "additionalProperties": False,
        }
    )
    examples: tuple[str, ...] = ("What is 17.5 % of 2,480?", "How much is 3 times 129.95?", "square root of 1764")
    category: str = "tool"
    contexts: tuple[str, ...] = ()
    reads_private: bool = False
    fetches: bool = False
    writes: bool = False
    is_pure: bool = True

    def label(self, arguments: Mapping[str, Any]) -> str:
        return f"Calculate {arguments.get('expression', '')}".strip()

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        expression: str = arguments["expression"]
        try:
            result = written(calculate(expression))
        except NotArithmetic as error:
            return ToolFailure(f"{expression!r} was not calculated: {error}", is_retryable=True)
        return ToolOutput(text=f"{expression} = {result}", summary=f"= {result}")


TOOL = Calculator()
