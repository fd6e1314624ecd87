"""What the fake says when nobody wrote it a script: it counts with the calculator, else it answers in a sentence."""

from __future__ import annotations

import re
from typing import Any

from tests.fakes.anthropic_script import Call, Turn, calls, says, spoken

NUMBER = r"\d(?:[\d,]*\d)?(?:\.\d+)?"
SUM = re.compile(rf"{NUMBER}\s*%\s*of\s*{NUMBER}|\(?{NUMBER}\)?(?:\s*[-+*/×÷^]\s*\(?{NUMBER}\)?)+")
PASSAGE = re.compile(r'<passage n="(\d+)"[^>]*>\n(?:#[^\n]*\n+)*([^\n]+)')
BESIDE = re.compile(r"<(passage|correction)\b.*?</\1>|^Found in the person's documents\..*?$", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"^\[ID:[^\]]*\] ")
LENGTH = re.compile(r"\b(\d{1,4})\s+(?:words|lines|numbers)\b|\bcount to (\d{1,4})\b", re.IGNORECASE)


def sensible(body: dict[str, Any], *, each_ms: float) -> Turn:
    """The turn a helpful model would answer this request with."""
    messages = body["messages"]
    tools = {tool["name"] for tool in body.get("tools") or ()}
    may_call = (body.get("tool_choice") or {}).get("type") != "none"
    question = _question(messages)
    results = _results(messages)
    if "generate_response" in tools and may_call:
        return answered(messages) if results else forced("knowledge_base_search", body["tools"], messages)
    if results:
        return says(" ".join(_sentence(asked, result) for asked, result in results), each_ms=each_ms)
    sums = [found.group().strip() for found in SUM.finditer(question)]
    if sums and "calculator" in tools and may_call:
        return calls(*(Call("calculator", {"expression": expression}) for expression in sums), each_ms=each_ms)
    length = LENGTH.search(question)
    if length:
        many = int(length.group(1) or length.group(2))
        return says(" ".join(str(number) for number in range(1, many + 1)), each_ms=each_ms)
    return says("This is a scripted model. It can do sums with the calculator and count to a number.", each_ms=each_ms)


def summarised(messages: list[dict[str, Any]]) -> Turn:
    """What a model that keeps a memory writes: a line for each item it is given."""
    items = re.findall(r'<item id="([^"]+)">\n(\S+)', _question(messages))
    return calls(
        Call("write_summaries", {"summaries": [{"id": ref, "summary": f"About {word}."} for ref, word in items]})
    )


def rewritten(messages: list[dict[str, Any]]) -> Turn:
    """A search query that stands alone: the question, and what was asked before it."""
    found = re.search(r"<question>\n(.*)\n</question>", _question(messages), re.DOTALL)
    return calls(Call("write_query", {"query": found[1] if found else "nothing", "words": []}))


def answered(messages: list[dict[str, Any]]) -> Turn:
    """An answer through the response tool: the first line of the first passage that was found, with its source."""
    passage = PASSAGE.search(" ".join(result for _, result in _results(messages)))
    if passage is None:
        return calls(
            Call("generate_response", {"sources": [], "confidence_score": 0.1, "answer": "Nothing was found."})
        )
    words = {"confidence_score": 0.9, "answer": f"{passage[2]} [{passage[1]}]"}
    return calls(Call("generate_response", {"sources": [int(passage[1])], **words}))


def forced(name: str, tools: list[dict[str, Any]], messages: list[dict[str, Any]]) -> Turn:
    """A call of the tool the request demands, with arguments its schema takes."""
    if name == "generate_response":
        return answered(messages)
    if name == "knowledge_base_search":
        return calls(Call(name, {"query": _question(messages)[:500]}))
    schema = next(tool["input_schema"] for tool in tools if tool["name"] == name)
    wanted = schema.get("required", ())
    return calls(Call(name, {key: _example(schema.get("properties", {}).get(key, {})) for key in wanted}))


def _example(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    return {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}.get(
        schema.get("type", ""), "1 + 1"
    )


def _question(messages: list[dict[str, Any]]) -> str:
    return next((text for message in reversed(messages) if (text := _said(message))), "")


def _said(message: dict[str, Any]) -> str:
    """A person's own words, without what stands beside them."""
    return BESIDE.sub("", spoken(message)).strip() if message["role"] == "user" else ""


def _results(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What was asked of tools since the person last spoke, and what came back."""
    asked: dict[str, str] = {}
    found: list[tuple[str, str]] = []
    for message in messages:
        if _said(message):
            asked, found = {}, []
        if isinstance(message["content"], str):
            continue
        for block in message["content"]:
            if block["type"] == "tool_use":
                asked[block["id"]] = str(block["input"].get("expression", block["name"]))
            elif block["type"] == "tool_result":
                found.append((asked.get(block["tool_use_id"], ""), _flat(block.get("content", ""))))
    return found


def _flat(content: Any) -> str:
    text = content if isinstance(content, str) else " ".join(block.get("text", "") for block in content)
    return MARK.sub("", text)


def _sentence(asked: str, result: str) -> str:
    return f"{result}." if "=" in result else f"{asked} is **{result}**."


SMALL_WORK = {"write_summaries": summarised, "write_query": rewritten}
