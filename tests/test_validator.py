"""What the validator lets through, for any schema, sound or hostile; a refusal names the field and what to do."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.messages import ToolCall
from chat.tools.refusals import Refused
from chat.tools.registry import discover
from chat.tools.validator import Valid, validate
from tests.harness.tools import says_at_once, tool

SOON_SECONDS = 2.0


def judged(arguments: Any, schema: dict[str, Any]) -> Valid | Refused:
    wanted = tool("wanted", says_at_once("done"), parameters=schema)
    return validate(ToolCall("1", "wanted", arguments), {"wanted": wanted})


def takes(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def is_refused_for(field: str, verdict: Valid | Refused) -> bool:
    return isinstance(verdict, Refused) and field in verdict.reason and field in verdict.guidance


LISTED = takes(unit={"enum": ["metric", "imperial units", "in_progress"]})


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("METRIC", "metric"),
        (" metric ", "metric"),
        ("Imperial-Units", "imperial units"),
        ("In Progress", "in_progress"),
        ("ｍetric", "metric"),
    ],
)
def test_a_choice_that_is_only_written_otherwise_is_mended(sent: str, meant: str) -> None:
    verdict = judged({"unit": sent}, LISTED)
    assert isinstance(verdict, Valid)
    assert verdict.arguments == {"unit": meant}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"enum": ["Red", "Green"]}},
        {"anyOf": [{"type": "null"}, {"type": "array", "items": {"enum": ["Red"]}}]},
        {"type": "array", "prefixItems": [{"const": "Red"}]},
        {"type": "array", "items": {"allOf": [{"type": "string"}, {"enum": ["Red"]}]}},
    ],
)
def test_a_choice_is_mended_wherever_it_stands(schema: dict[str, Any]) -> None:
    verdict = judged({"colours": ["red"]}, takes(colours=schema))
    assert isinstance(verdict, Valid)
    assert verdict.arguments == {"colours": ["Red"]}


def test_a_choice_that_could_mean_two_or_none_is_refused() -> None:
    assert is_refused_for("unit", judged({"unit": "METRIC"}, takes(unit={"enum": ["metric", "Metric"]})))
    assert is_refused_for("unit", judged({"unit": "kelvin"}, LISTED))


def test_a_text_that_fits_as_it_is_stays_as_it_is() -> None:
    schema = takes(colour={"anyOf": [{"enum": ["Red"]}, {"type": "string"}]})
    verdict = judged({"colour": "red"}, schema)
    assert isinstance(verdict, Valid)
    assert verdict.arguments == {"colour": "red"}


def test_a_whole_number_written_with_a_point_reaches_the_tool_as_a_whole_number() -> None:
    verdict = judged({"days": 3.0}, takes(days={"type": "integer", "minimum": 1}))
    assert isinstance(verdict, Valid)
    assert repr(verdict.arguments) == "{'days': 3}"


NUMBER = takes(n={"type": "number"})
ONE_OF_TWO = {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["a", "b"]}]}
NESTED = takes(place=takes(city={"type": "string", "minLength": 2}))
CAPITALS = {"type": "object", "patternProperties": {"^[A-Z]+$": {"type": "integer"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("arguments", "schema", "field"),
    [
        ({"n": "5"}, NUMBER, "n"),
        ({"n": True}, NUMBER, "n"),
        ({"n": None}, NUMBER, "n"),
        ({"n": float("nan")}, NUMBER, "n"),
        ({"n": float("inf")}, NUMBER, "n"),
        ({"n": 10**400}, NUMBER, "n"),
        ({"n": 2.5}, takes(n={"type": "integer"}), "n"),
        ({"n": 11}, takes(n={"type": "integer", "maximum": 10}), "n"),
        ({"n": 10}, takes(n={"type": "integer", "exclusiveMaximum": 10}), "n"),
        ({"n": 0.35}, takes(n={"type": "number", "multipleOf": 0.1}), "n"),
        ({"n": ""}, takes(n={"type": "string", "minLength": 1}), "n"),
        ({"n": "abc"}, takes(n={"type": "string", "maxLength": 2}), "n"),
        ({"n": "abc\n"}, takes(n={"type": "string", "pattern": "^[a-z]+$"}), "n"),
        ({"n": "weak"}, takes(n={"type": "string", "pattern": r"^(?=.*\d).+$"}), "n"),
        ({"n": [1, 1.0]}, takes(n={"type": "array", "uniqueItems": True}), "n"),
        ({"n": []}, takes(n={"type": "array", "minItems": 1}), "n"),
        ({"place": {"city": "X"}}, NESTED, "place.city"),
        ({"place": {"city": "Xi", "zip": 1}}, NESTED, "place.zip"),
        ({"place": {}}, NESTED, "place.city"),
        ({"rows": [{"id": 1}, {"id": "2"}]}, takes(rows={"items": takes(id={"type": "integer"})}), "rows.1.id"),
        ({}, ONE_OF_TWO, "a"),
        ({"low": 1}, CAPITALS, "low"),
        ({"LOW": "1"}, CAPITALS, "LOW"),
        ({"x": 1}, {"type": "object", "unevaluatedProperties": False}, "x"),
        ({"x": 1}, {"type": "object", "dependentRequired": {"x": ["y"]}}, "y"),
        ({"x y": 1}, {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}, "x y"),
        ({"x": 1}, {"type": "object", "properties": {"x": False}}, "x"),
        ({"n": 5}, {"$schema": "http://json-schema.org/draft-04/schema#", **takes(n={"type": "string"})}, "n"),
        ({"n": "a"}, {"$defs": {"whole": {"type": "integer"}}, **takes(n={"$ref": "#/$defs/whole"})}, "n"),
    ],
)
def test_what_breaks_the_schema_is_refused_by_the_fields_name(
    arguments: dict[str, Any], schema: dict[str, Any], field: str
) -> None:
    verdict = judged(arguments, schema)
    assert is_refused_for(field, verdict), verdict


def test_all_that_is_wrong_is_said_at_once() -> None:
    schema = takes(city={"type": "string"}, days={"type": "integer"}, unit={"enum": ["metric"]})
    verdict = judged({"city": 5, "unit": "kelvin", "zip": 1}, schema)
    assert isinstance(verdict, Refused)
    for problem in ("city must be string.", "days is missing.", 'unit must be one of "metric".', "zip is not known."):
        assert verdict.text.count(problem) == 1


@pytest.mark.parametrize(
    ("arguments", "schema"),
    [
        ({"n": 0.3}, takes(n={"type": "number", "multipleOf": 0.1})),
        ({"n": 10**30}, takes(n={"type": "integer"})),
        ({"n": "日本語 🏴󠁧󠁢󠁥󠁮󠁧󠁿 👩‍👧 می‌خواهم \t\n"}, takes(n={"type": "string"})),
        ({"n": ""}, takes(n={"type": "string"})),
        ({"n": "a/b"}, takes(n={"type": "string", "pattern": r"^\w+\/\w+$"})),
        ({"n": "a.b"}, takes(n={"type": "string", "pattern": r"^[\w-.]+$"})),
        ({"n": "anything"}, takes(n={"type": "string", "pattern": "("})),
        ({"n": "2026-03-01T09:30:00"}, takes(n={"type": "string", "format": "date-time"})),
        ({"n": "2026-03-01T09:30:00.1234567Z"}, takes(n={"type": "string", "format": "date-time"})),
        ({"n": "what nobody knows"}, takes(n={"type": "string", "format": "binary"})),
        ({"n": None}, takes(n={"type": ["string", "null"]})),
        ({"LOW": 1}, CAPITALS),
        ({"n": 1, "more": {"deep": [1, {"x": None}]}}, {"type": "object", "properties": {"n": {}}}),
    ],
)
def test_what_keeps_the_schema_is_taken_unchanged(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    verdict = judged(arguments, schema)
    assert isinstance(verdict, Valid), verdict
    assert verdict.arguments == arguments


HIDDEN = ("a\x00b", "a\x1bb", "a\x85b", "a\u202eb", "a\u2066b", "a\ud800b")


@pytest.mark.parametrize("text", HIDDEN, ids=ascii)
def test_characters_that_hide_what_a_text_says_are_refused_in_values_and_in_names(text: str) -> None:
    schema = {"type": "object"}
    assert is_refused_for("words", judged({"words": [text]}, schema))
    named = judged({text: 1}, schema)
    assert isinstance(named, Refused)
    assert text not in named.text


FORMATS = {
    "path": (
        ("notes/today.md", "/srv/docs/a b.txt", "..hidden", "a..b/c", ""),
        ("../secrets", "a/../../b", "a\\..\\b", "%2e%2e/x", "%252e%252e/x", "~/.ssh/id_rsa", "a\x00.png", "a\nb"),
    ),
    "relative-path": (
        ("notes/today.md", "today.md", "a:b/c".replace(":", "-")),
        ("/etc/passwd", "\\\\host\\share", "C:\\Windows", "file:///etc/passwd", "%2fetc/passwd", "x/.."),
    ),
    "uri": (
        (
            "https://example.org/a?b=c#d",
            "http://sub.example.org:8080/",
            "https://93.184.216.34/",
            "https://münchen.de/",
        ),
        (
            *("ftp://example.org/", "javascript:alert(1)", "file:///etc/passwd", "example.org", "//example.org", ""),
            *("https://user:pw@example.org/", "https://good.example@evil.example/", "http://localhost:8000/"),
            *(
                "http://127.0.0.1/",
                "http://10.1.2.3/",
                "http://192.168.0.1/",
                "http://169.254.169.254/latest/meta-data",
            ),
            *("http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://2130706433/", "http://0x7f.1/", "http://127.1/"),
            *("http://printer.local/", "http://db.internal/", "http://intranet/", "http://１２７.0.0.1/"),
            *("http://%31%32%37.0.0.1/", "http://localhost./", "https://example.org\\@evil/", "https://exa mple.org/"),
            *("https://example.org:99999/", "https://[broken/", "http://router.home.arpa/"),
        ),
    ),
    "sql": (
        (
            "SELECT name, load FROM metrics WHERE note = 'a; DROP TABLE x -- y'",
            "with t as (select 1) select * from t;",
            'select "update" from "into" limit 5 offset 2',
            "(select 1) union all (select 2)",
            "SELECT 'it''s', $$a;b$$",
        ),
        (
            *("DROP TABLE users", "select 1; delete from users", "select 1 -- where owner = 1", "select /* x */ 1"),
            *("insert into users values (1)", "select * into outfile from users", "' OR 1=1", "select 'open"),
            "with gone as (delete from users returning *) select * from gone",
            "with new as (update users set is_admin = true returning *) select * from new",
            *("copy users to '/tmp/x'", "pragma database_list", "attach 'x.db'", "", "select 1 union drop table users"),
        ),
    ),
    "date": (("2026-03-01",), ("2026-02-30", "01.03.2026", "20260301", "today")),
    "time": (("09:30", "09:30:00Z"), ("25:00", "9:30 pm")),
    "date-time": (("2026-03-01T09:30:00+01:00",), ("2026-03-01", "yesterday", "2026-03-01T99:00:00Z")),
    "email": (("name@example.org",), ("name", "a@b@c", "a b@example.org", "name@")),
    "hostname": (("www.example.org",), ("-x.org", "a..b", "exa mple")),
    "ipv4": (("192.0.2.1",), ("256.1.1.1", "1.2.3")),
    "ipv6": (("2001:db8::1",), ("1.2.3.4", "::::")),
    "uuid": (("b6c1a1de-6b3b-4f5e-9d5c-1f2f3a4b5c6d",), ("b6c1", "")),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_text_of_a_format_is_held_to_it(name: str) -> None:
    good, bad = FORMATS[name]
    schema = takes(field={"type": "string", "format": name})
    assert [text for text in good if not isinstance(judged({"field": text}, schema), Valid)] == []
    assert [text for text in bad if not is_refused_for("field", judged({"field": text}, schema))] == []


PATTERNS = (
    r"(a+)+$",
    r"^(\w+\s?)*$",
    r"(x+x+)+y",
    r"((a{1,100}){1,100}){1,10}$",
    r"^(?=(a+)+$)b",
    r"(a|aa)+(?!b)$",
    "(" * 500,
)


@pytest.mark.parametrize(
    ("arguments", "schema"),
    [
        *(({"n": "a" * 60_000 + "!"}, takes(n={"type": "string", "pattern": pattern})) for pattern in PATTERNS),
        *(({"a" * 40 + "!": 1}, {"patternProperties": {p: {}}, "additionalProperties": False}) for p in PATTERNS),
        *(({"a" * 40 + "!": 1}, {"patternProperties": {p: {}}, "unevaluatedProperties": False}) for p in PATTERNS),
        ({"n": [[]] * 20_000}, takes(n={"type": "array", "uniqueItems": True})),
        ({"n": [{"a": 1}] * 9_000}, takes(n={"items": takes(a={"type": "string"})})),
        ({"n": "x"}, takes(n={"$ref": "#/properties/n"})),
        ({"n": "x"}, takes(n={"$ref": "http://127.0.0.1:9/schema.json"})),
        ({"n": {"n": {"n": {}}}}, {"anyOf": [{"properties": {"n": {"$ref": "#"}}}] * 20, "required": ["z"]}),
        ({"n": {"m": {"n": {"m": {}}}}}, {"additionalProperties": {"oneOf": [{"$ref": "#"}] * 30}}),
        ({"n": 5}, {"type": "object", "required": "n"}),
        ({"n": 5}, takes(n={"type": "file"})),
    ],
)
def test_nothing_a_schema_says_holds_up_the_server(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    started = time.thread_time()
    assert isinstance(judged(arguments, schema), Valid | Refused)
    assert time.thread_time() - started < SOON_SECONDS


def test_every_tool_there_is_says_soundly_what_it_takes() -> None:
    for name, known in discover().items():
        verdict = validate(ToolCall("1", name, {"__nobody_knows": 1}), {name: known})
        assert isinstance(verdict, Refused)
        assert "cannot be checked" not in verdict.text
        assert known.parameters["additionalProperties"] is False


NAMES = st.sampled_from(["city", "days", "unit", "tags", "spot", "is_new"])
LEAVES = st.sampled_from(
    [
        {"type": "string", "maxLength": 8},
        {"type": "integer", "minimum": -5, "maximum": 5},
        {"type": "number"},
        {"type": "boolean"},
        {"enum": ["Alpha", "beta gamma"]},
        {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
        {"type": ["string", "null"], "maxLength": 3},
    ]
)
SCHEMAS = st.dictionaries(NAMES, LEAVES, min_size=1, max_size=4).map(lambda properties: takes(**properties))
PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=0x2000, exclude_characters="\x7f"), max_size=3).filter(
    lambda text: not any("\x7f" <= character <= "\x9f" for character in text)
)


def _of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that keep the schema."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "object":
            return st.fixed_dictionaries({name: _of(part) for name, part in schema["properties"].items()})
        case "integer":
            return st.integers(schema.get("minimum", -(10**20)), schema.get("maximum", 10**20))
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(st.integers(), max_size=3)
        case "string":
            return PLAIN
    return st.none() | PLAIN


WRONG: dict[str, Any] = {"string": 7, "integer": 5.5, "number": "7", "boolean": 1, "array": "a", "enum": "Alphabet"}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_call_that_keeps_its_schema_is_taken_and_one_that_is_spoilt_is_refused_by_name(data: st.DataObject) -> None:
    schema = data.draw(SCHEMAS)
    arguments = data.draw(_of(schema))
    taken = judged(copy.deepcopy(arguments), schema)
    assert isinstance(taken, Valid), taken
    assert json.dumps(taken.arguments, sort_keys=True) == json.dumps(arguments, sort_keys=True) or (
        taken.arguments == arguments
    )
    name = data.draw(st.sampled_from(sorted(arguments)))
    match data.draw(st.sampled_from(["wrong", "missing", "extra"])):
        case "missing":
            del arguments[name]
        case "extra":
            name = f"{name}_too"
            arguments[name] = 1
        case _:
            kind = schema["properties"][name].get("type", "enum")
            arguments[name] = 7 if isinstance(kind, list) else WRONG[kind]
    assert is_refused_for(name, judged(arguments, schema))
