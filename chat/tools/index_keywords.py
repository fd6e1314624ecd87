"""Keeps keywords of a web result, so that later searches find it again (seed 001)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from chat.tools.base import ToolContext, ToolFailure, ToolOutput
from chat.tools.perplexity_search import is_available as is_available
from chat.transcript import item_on_branch, question_of
from klerai.database import in_database
from retrieval.errors import KeywordsRefused, NoSuchWebResult
from retrieval.web_results import GUIDANCE, index

_QUERY = re.compile(r"q[1-9]\d{0,5}")
_RESULT = re.compile(r"web-[0-9a-f]{8}")
_TOOL_RESULT = re.compile(r"q[1-9]\d{0,5}-t[1-9]\d{0,3}")
_ID_INSIDE = re.compile(r'<web_answer [^>\n]*\bid="(web-[0-9a-f]{8})"')


@dataclass(frozen=True, slots=True)
class IndexKeywords:
    """Links keywords, the question and a result of perplexity_search. Free of charge."""

    name: str = "index_keywords"
    description: str = (
        "Stores keywords of a result of perplexity_search, so that later searches in the knowledge base find it again. "
        f"Call it once after each web search. {GUIDANCE} A keyword that is there already is merged and leads to both."
    )
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {
                "keywords": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 1_000, "description": GUIDANCE},
                    "description": "3 to 10 keywords of 2 to 50 characters.",
                },
                "query_id": {
                    "type": "string",
                    "maxLength": 40,
                    "description": "The ID of the question, such as q3; the result names it.",
                },
                "perplexity_result_id": {
                    "type": "string",
                    "maxLength": 40,
                    "description": "The ID of the result, such as web-1f09c2ab, or of the tool result, such as q3-t2.",
                },
            },
            "required": ["keywords", "query_id", "perplexity_result_id"],
            "additionalProperties": False,
        }
    )
    examples: tuple[str, ...] = ("Remember this result under its keywords",)
    category: str = "tool"
    contexts: tuple[str, ...] = ()
    reads_private: bool = False
    fetches: bool = False
    writes: bool = False  # of the product's own index only, and nothing a person would have to confirm

    def label(self, arguments: Mapping[str, Any]) -> str:
        keywords = arguments.get("keywords")
        named = ", ".join(map(str, keywords[:3])) if isinstance(keywords, list) else ""
        return f"Remember the result under {named or 'its keywords'}"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        query = _plain(arguments["query_id"])
        asked = await in_database(question_of, context.run_id)
        if asked.is_temporary:
            return ToolFailure(
                "Nothing is kept of a temporary conversation, so there is no result to index. Go on without it.",
                is_retryable=False,
            )
        if not _QUERY.fullmatch(query) or await in_database(item_on_branch, context.run_id, query) is None:
            return ToolFailure(
                f"There is no question “{query}” in this conversation. This question is {asked.ref}.", is_retryable=True
            )
        result = await _result_of(_plain(arguments["perplexity_result_id"]), context)
        store = partial(index, result_ref=result, conversation_id=context.conversation_id, question_ref=query)
        try:
            done = await in_database(store, context.person_id, list(arguments["keywords"]))
        except KeywordsRefused as error:
            return ToolFailure(f"Nothing was indexed. {error}", is_retryable=True)
        except NoSuchWebResult as error:
            return ToolFailure(
                f"Nothing was indexed. {error} Give the ID that perplexity_search named, such as web-1f09c2ab.",
                is_retryable=True,
            )
        told: dict[str, Any] = {"indexed": True, **({"merged": True} if done.has_merged else {})}
        told["keyword_count"] = done.count
        return ToolOutput(
            json.dumps(told), f"{done.count} keyword{'' if done.count == 1 else 's'} now lead to the result"
        )


def _plain(written: Any) -> str:
    """The ID itself, also when it was written with its brackets or as the summary's."""
    return str(written).strip().strip("[]").removeprefix("ID:").split(",")[0].strip().removesuffix("-sum")


async def _result_of(ref: str, context: ToolContext) -> str:
    """The ID of the web result that is meant, or what was written. Whose it is, is looked at where it is read."""
    if _RESULT.fullmatch(ref) or not _TOOL_RESULT.fullmatch(ref):
        return ref
    text = context.results.get(ref)
    if text is None:
        item = await in_database(item_on_branch, context.run_id, ref)
        text = item.content if item is not None else ""
    inside = _ID_INSIDE.search(text)
    return inside[1] if inside else ref


TOOL = IndexKeywords()
