"""Reads the documentation of libraries, services and APIs: the sections that answer a question (seed 000)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import structlog

from chat.errors import ChatError
from chat.messages import ToolSpec
from chat.passages import HOW_TO_CITE, quoted_block
from chat.sources import Source
from chat.structured import StructuredCall
from chat.tools.base import ToolContext, ToolFailure, ToolOutput
from retrieval.docs import Documentation, Form, Ranked, find_documentation
from retrieval.errors import DocumentationUnavailable, NoDocumentation

MOST_CHARACTERS = 32_000
_SPARE_SECONDS = 0.5
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RetrieveDocumentation:
    """Sections numbered to be cited, with the addresses they come from."""

    name: str = "retrieve_documentation"
    description: str = (
        "Reads the current documentation of a library, framework, tool, service or API and returns the sections that "
        "answer the query best, numbered, with their addresses. Use it before you write code against a product or "
        "explain how it is used, since what you remember may be outdated. Name the product and what you need of it; "
        "ask about one product a call."
    )
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 2,
                    "maxLength": 500,
                    "description": "Product and topic, such as “Next.js middleware authentication”.",
                }
            },
            "required": ["query"],
            "additionalProperties": False,
        }
    )
    examples: tuple[str, ...] = (
        "How do I set up OAuth with Twitter?",
        "Show me how Django paginates a query set.",
        "Which options does Next.js middleware take?",
    )
    category: str = "documentation"
    contexts: tuple[str, ...] = ()
    reads_private: bool = False
    fetches: bool = False
    writes: bool = False

    def label(self, arguments: Mapping[str, Any]) -> str:
        return f"Read the documentation on “{arguments.get('query', '')}”"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        small = None if context.small is None else _Filling(context.small)
        seconds = max(context.seconds - _SPARE_SECONDS, 1)
        try:
            found = await find_documentation(str(arguments["query"]), small=small, seconds=seconds)
        except NoDocumentation as error:
            return ToolFailure(str(error), is_retryable=True)
        except DocumentationUnavailable as error:
            return ToolFailure(f"{error} Go on without the documentation, and say so.", is_retryable=False)
        return _output(found, context)


@dataclass(frozen=True, slots=True)
class _Filling:
    """The chat's small model, asked to fill in a form; what it cannot answer is left to words and scores."""

    small: StructuredCall

    async def __call__(self, task: str, material: str, *, form: Form) -> Mapping[str, Any] | None:
        answer = ToolSpec(form.name, form.description, form.parameters)
        try:
            return (await self.small(task, material, answer=answer)).fields
        except ChatError as fault:
            logger.info("documentation_without_model", step=form.name, reason=str(fault)[:300])
            return None


def _output(found: Documentation, context: ToolContext) -> ToolOutput:
    shown = _that_fit(found.sections)
    places = [_place(found, ranked) for ranked in shown]
    sources = [Source(text=ranked.section.text, **place) for ranked, place in zip(shown, places, strict=True)]
    numbers = context.sources.add(sources)
    return ToolOutput(_text(found, shown, numbers), _summary(found, shown), card={"sources": places, **_card(found)})


def _that_fit(sections: Sequence[Ranked]) -> list[Ranked]:
    """Whole sections, best first; the first one is there whatever its length."""
    shown: list[Ranked] = []
    left = MOST_CHARACTERS
    for ranked in sections:
        if not shown or len(ranked.section.text) <= left:
            shown.append(ranked)
            left -= len(ranked.section.text)
    return shown


def _text(found: Documentation, shown: Sequence[Ranked], numbers: Sequence[int]) -> str:
    """Markdown: what was read, the sections between marks, and their addresses."""
    count = "1 section" if len(shown) == 1 else f"{len(shown)} sections"
    library = found.library
    head = f"{count} of the documentation of {library.title} (`{library.id}`)"
    topic = f" on {found.topic}" if found.topic else ""
    blocks = [_block(found, ranked, number) for ranked, number in zip(shown, numbers, strict=True)]
    links = [_link(ranked, number) for ranked, number in zip(shown, numbers, strict=True)]
    missing = len(found.sections) - len(shown)
    rest = [f"{missing} more did not fit. Ask about a part of the topic to read them."] if missing else []
    lines = [f"{head}{topic}. {HOW_TO_CITE.format(number=numbers[0])}", *found.notes]
    return "\n".join([*lines, *blocks, "<sources>", *links, "</sources>", *rest])


def _block(found: Documentation, ranked: Ranked, number: int) -> str:
    section = ranked.section
    facts = {"title": found.library.title, "section": section.title, "url": section.url}
    return quoted_block(number, facts, section.text)


def _link(ranked: Ranked, number: int) -> str:
    title = ranked.section.title.replace("[", "(").replace("]", ")").replace("<", "‹").replace(">", "›")
    return f"- [{number}] {title}" + (f": <{ranked.section.url}>" if ranked.section.url else "")


def _summary(found: Documentation, shown: Sequence[Ranked]) -> str:
    titles = [ranked.section.title for ranked in shown]
    named = ", ".join(titles[:2]) + (f" and {len(titles) - 2} more" if len(titles) > 2 else "")
    count = "1 section" if len(shown) == 1 else f"{len(shown)} sections"
    note = f" {found.notes[0]}" if found.is_stale else ""
    return f"{found.library.title} ({found.library.id}): {count} of {found.count}, {named}.{note}"


def _card(found: Documentation) -> dict[str, Any]:
    library = {"id": found.library.id, "title": found.library.title}
    return {"library": library, "product": found.name, "topic": found.topic, "notes": list(found.notes)}


def _place(found: Documentation, ranked: Ranked) -> dict[str, Any]:
    """Where a section stands and how it was found; all of a source but its text."""
    return {
        "title": found.library.title,
        "section": ranked.section.title,
        "url": ranked.section.url or None,
        "start": 0,
        "end": len(ranked.section.text),
        "origin": "documentation",
        "ranks": asdict(ranked.ranks),
        "scores": asdict(ranked.scores),
    }


TOOL = RetrieveDocumentation()
