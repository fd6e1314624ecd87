"""JSON Schema as calls are held to it: whoever wrote the schema, checking ends soon and reaches no address."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, UnknownType, ValidationError, best_match
from jsonschema.validators import extend, validator_for
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from chat.tools.formats import format_named
from chat.tools.patterns import matches

MOST_SECONDS = 0.5
MOST_ERRORS = 50
Rule = Callable[..., Any]


class Unchecked(Exception):
    """The schema does not say what is right, or it would take too long to find out."""


def errors_in(arguments: Any, schema: Mapping[str, Any]) -> list[ValidationError]:
    """What is wrong with the arguments, a place at a time and the most telling first. Raises Unchecked."""
    dialect = _dialect_of(json.dumps(schema))
    if dialect is None:
        raise Unchecked
    checker = dialect(schema, registry=EMPTY_REGISTRY, format_checker=_Clock())
    try:
        found = list(islice(checker.iter_errors(arguments), MOST_ERRORS))
    except (UnknownType, Unresolvable, RecursionError) as fault:
        raise Unchecked from fault
    best = [best_match(found), *(best_match([error]) for error in found)] if found else []
    return list({tuple(error.absolute_path): error for error in reversed(best)}.values())[::-1]


class _Clock(FormatChecker):
    """Ends a check that takes long. It travels as the format checker, which the library hands on to every part."""

    def __init__(self) -> None:
        super().__init__(formats=())
        self._until = time.thread_time() + MOST_SECONDS

    def look(self) -> None:
        if time.thread_time() > self._until:
            raise Unchecked


@lru_cache(maxsize=512)
def _dialect_of(written: str) -> Any:
    """The draft a schema is written in, with our rules; None when it is not sound."""
    schema = json.loads(written)
    is_named = isinstance(schema.get("$schema"), str)
    draft: Any = validator_for(schema, default=Draft202012Validator) if is_named else Draft202012Validator
    try:
        draft.check_schema(schema, format_checker=FormatChecker(formats=()))
    except (SchemaError, RecursionError):
        return None
    return _dialect(draft)


@cache
def _dialect(draft: Any) -> Any:
    rules = {**draft.VALIDATORS, **{name: rule for name, rule in _RULES.items() if name in draft.VALIDATORS}}
    timed = {name: _timed(rule) for name, rule in rules.items()}
    return extend(draft, timed)  # type: ignore[no-untyped-call]  # it has no types


def _timed(rule: Rule) -> Rule:
    def timed(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        validator.format_checker.look()
        return rule(validator, value, instance, schema)

    return timed


def _required(validator: Any, names: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    for name in names if isinstance(instance, dict) else ():
        if name not in instance:
            yield ValidationError("is missing", path=[name])


def _dependent_required(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    for name, needed in rule.items() if isinstance(instance, dict) else ():
        for other in needed if name in instance else ():
            if other not in instance:
                yield ValidationError(f"is missing beside {name}", path=[other])


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError(f"must match {pattern}")


def _properties(validator: Any, properties: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """As the library has it, but a name that may not be there is named."""
    for name in properties if isinstance(instance, dict) else ():
        if name in instance and properties[name] is False:
            yield ValidationError("may not be sent", path=[name])
        elif name in instance:
            yield from validator.descend(instance[name], properties[name], path=name, schema_path=name)


def _property_names(validator: Any, part: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    for name in instance if isinstance(instance, dict) else ():
        for error in validator.descend(name, part):
            yield ValidationError(f"a name here {error.message}", path=[name])


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, part in patterns.items():
            for name, value in instance.items():
                validator.format_checker.look()
                if matches(pattern, name):
                    yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in instance if isinstance(instance, dict) else ():
        validator.format_checker.look()
        if name in known or any(matches(pattern, name) for pattern in patterns):
            continue
        if allowed is False:
            yield ValidationError("is not known", path=[name])
        elif allowed is not True:
            yield from validator.descend(instance[name], allowed, path=name)


def _unevaluated(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """The library matches names by a schema's patterns without a bound, so beside patterns it is not asked."""
    if '"patternProperties"' in json.dumps(schema):
        return
    rule = Draft202012Validator.VALIDATORS["unevaluatedProperties"]
    for error in rule(validator, allowed, instance, schema) or ():
        yield ValidationError("is not known", path=[name for name in instance if repr(name) in error.message][:1])


def _multiple(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """By the digits as they are written: 0.3 is a multiple of 0.1."""
    if validator.is_type(instance, "number") and Fraction(str(instance)) % Fraction(str(rule)):
        yield ValidationError(f"must be a multiple of {rule}")


def _unique(validator: Any, wanted: bool, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list):
        written = [json.dumps(_whole(part), sort_keys=True) for part in instance]
        if len(set(written)) < len(written):
            yield ValidationError("must not hold the same twice")


def _whole(value: Any) -> Any:
    """The value with 1.0 as 1, which are the same number."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _whole(part) for name, part in value.items()}
        case list():
            return [_whole(part) for part in value]
    return value


def _format(validator: Any, name: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    known = format_named(name)
    if known is not None and isinstance(instance, str) and not known.holds(instance):
        yield ValidationError(f"must be {known.wanted}")


_RULES: Mapping[str, Rule] = {
    "required": _required,
    "dependentRequired": _dependent_required,
    "pattern": _pattern,
    "properties": _properties,
    "propertyNames": _property_names,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "unevaluatedProperties": _unevaluated,
    "multipleOf": _multiple,
    "uniqueItems": _unique,
    "format": _format,
}
