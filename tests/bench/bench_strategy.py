"""CPU of one run (2 tool turns, then 200 tokens, zero delay): our strategies beside the bare documented SDK loops.

`python -m tests.bench.bench_strategy --runs 150`: each beside its own SDK's loop in this process, in alternating
rounds; prints the ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Awaitable, Callable

import anthropic
import openai
import uvloop
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from chat.messages import Message, ToolResult, ToolResults, ToolSpec, UserMessage
from chat.strategies.anthropic import Anthropic
from chat.strategies.base import Card, ModelRequest, ModelStrategy, TextPiece, TurnComplete
from chat.strategies.dialects import DEEPSEEK
from chat.strategies.openai_compatible import OpenAICompatible
from chat.strategies.patience import Patience
from tests.fakes.anthropic import running_anthropic
from tests.fakes.openai import running_compatible

QUESTION = "[[plan tools=2 tokens=200]] What is 17.5 % of 2,480?"
SYSTEM = "You are KlerAI, a chat assistant that answers with sources and shows its work."
SCHEMA: dict[str, object] = {"type": "object", "properties": {"query": {"type": "string"}, "k": {"type": "integer"}}}
CARD = Card(name="bench", strategy="anthropic", model="claude-haiku-5-5")
COMPATIBLE_CARD = Card(name="bench", strategy="deepseek", model="deepseek-flash")
ROUND = 10


async def ours(strategy: ModelStrategy, card: Card = CARD) -> int:
    """The tool loop by our strategy; the number of words it was given."""
    messages: list[Message] = [UserMessage(QUESTION)]
    tools = (ToolSpec("search", "Searches.", SCHEMA),)
    words = 0
    while True:
        request = ModelRequest(card, SYSTEM, tuple(messages), tools, settled=len(messages))
        async for piece in strategy.stream(request):
            match piece:
                case TextPiece(text):
                    words += len(text.split())
                case TurnComplete(reply=reply):
                    messages.append(reply)
        if not reply.tool_calls:
            return words
        messages.append(ToolResults(tuple(ToolResult(call.id, call.name, "found") for call in reply.tool_calls)))


async def documented(client: anthropic.AsyncAnthropic, first_ms: list[float] | None = None) -> int:
    """The same loop as the SDK's README writes it; the time to its first word goes into `first_ms`."""
    begin = time.perf_counter()
    messages: list[anthropic.types.MessageParam] = [{"role": "user", "content": QUESTION}]
    tools: list[anthropic.types.ToolParam] = [{"name": "search", "description": "Searches.", "input_schema": SCHEMA}]
    words = 0
    while True:
        stream = await client.messages.create(
            model=CARD.model, max_tokens=4096, system=SYSTEM, messages=messages, tools=tools, stream=True
        )
        call_id, name, written, text = "", "", "", ""
        async for event in stream:
            if event.type == "content_block_start" and event.content_block.type == "tool_use":
                call_id, name = event.content_block.id, event.content_block.name
            elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                if not words and first_ms is not None:
                    first_ms.append((time.perf_counter() - begin) * 1000)
                text += event.delta.text
                words += len(event.delta.text.split())
            elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                written += event.delta.partial_json
        if not call_id:
            return words
        call: anthropic.types.ToolUseBlockParam = {
            "type": "tool_use", "id": call_id, "name": name, "input": json.loads(written)
        }  # fmt: skip
        messages.append({"role": "assistant", "content": [call]})
        result: anthropic.types.ToolResultBlockParam = {
            "type": "tool_result", "tool_use_id": call_id, "content": "found"
        }  # fmt: skip
        messages.append({"role": "user", "content": [result]})


async def documented_compatible(client: openai.AsyncOpenAI) -> int:
    """The loop over chat completions as the OpenAI SDK's README writes it."""
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
    ]
    tools: list[ChatCompletionToolParam] = [
        {"type": "function", "function": {"name": "search", "description": "Searches.", "parameters": SCHEMA}}
    ]
    words = 0
    while True:
        stream = await client.chat.completions.create(
            model=COMPATIBLE_CARD.model,
            messages=messages,
            tools=tools,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"thinking": {"type": "disabled"}},
        )
        call_id, name, written = "", "", ""
        async for chunk in stream:
            if not chunk.choices:
                continue
            delta = chunk.choices[0].delta
            words += len((delta.content or "").split())
            for part in delta.tool_calls or ():
                call_id = part.id or call_id
                name = (part.function and part.function.name) or name
                written += (part.function and part.function.arguments) or ""
        if not call_id:
            return words
        function = {"name": name, "arguments": written}
        messages.append(
            {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}  # type: ignore[typeddict-item]
        )
        messages.append({"role": "tool", "tool_call_id": call_id, "content": "found"})


async def cpu_ms(run: Callable[[], Awaitable[int]]) -> float:
    """CPU milliseconds of this process a run, over one round."""
    begin = time.process_time()
    for _ in range(ROUND):
        assert await run() == 200
    return (time.process_time() - begin) * 1000 / ROUND


async def compare(
    name: str, runs: int, theirs: Callable[[], Awaitable[int]], mine: Callable[[], Awaitable[int]]
) -> None:
    await theirs()
    await mine()
    theirs_ms, ours_ms = [], []
    for _ in range(max(1, runs // ROUND)):
        theirs_ms.append(await cpu_ms(theirs))
        ours_ms.append(await cpu_ms(mine))
    reference, measured = statistics.median(theirs_ms), statistics.median(ours_ms)
    print(f"{name} SDK, documented loop   {reference:6.2f} ms CPU a run")
    print(f"{name} strategy               {measured:6.2f} ms CPU a run")
    print(f"ratio                         {measured / reference:6.2f}   (target for loop and strategy: at most 0.35)")


async def compare_all(anthropic_url: str, compatible_url: str, runs: int) -> None:
    resting = Patience(pause_seconds=0.04)
    client = anthropic.AsyncAnthropic(api_key="bench", base_url=anthropic_url, max_retries=0)
    strategy = Anthropic(api_key="bench", base_url=anthropic_url, patience=resting)
    await compare("Anthropic", runs, lambda: documented(client), lambda: ours(strategy))
    other = openai.AsyncOpenAI(api_key="bench", base_url=compatible_url, max_retries=0)
    compatible = OpenAICompatible(DEEPSEEK, api_key="bench", base_url=compatible_url, patience=resting)
    await compare("OpenAI   ", runs, lambda: documented_compatible(other), lambda: ours(compatible, COMPATIBLE_CARD))
    for opened in (client, other):
        await opened.close()
    for asked in (strategy, compatible):
        await asked.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=150)
    arguments = parser.parse_args()
    with running_anthropic() as fake, running_compatible("deepseek") as compatible:
        uvloop.run(compare_all(fake.url, compatible.setting, arguments.runs))


if __name__ == "__main__":
    main()
