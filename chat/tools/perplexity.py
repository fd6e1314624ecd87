"""Perplexity's agent API: a question to an answer with the pages it went by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from chat.tools.outside import Answered, OutsideFault, Service, ask_json, refused, said_by, unreadable
from chat.tools.showing import clean
from chat.web_passages import NUMBERS
from klerai.http import vendor_client
from retrieval.web_results import Page, WebAnswer

PATH = "/v1/responses"
PRESET = "fast"
SECONDS = 25
MOST_PAGES = 8
LONGEST_SNIPPET = 2_000
INSTRUCTIONS = (
    "Answer from what you find on the web, briefly and with figures, names and dates. Say what cannot be found. "
    "Mark every statement with the number of the result it comes from, like [1]."
)
_LONGEST_TITLE = 300


async def ask_the_web(query: str, context: str = "", *, seconds: float = SECONDS) -> WebAnswer:
    """The answer of the web; `context` is what is known already. Raises OutsideFault."""
    service = Service("Perplexity", seconds, key=settings.PERPLEXITY_API_KEY)
    asked = f"{query}\n\nThis is known already and need not be found again:\n{context}" if context else query
    body = {"input": asked, "preset": PRESET, "instructions": INSTRUCTIONS}
    headers = {"Authorization": f"Bearer {settings.PERPLEXITY_API_KEY}"}
    async with vendor_client(settings.PERPLEXITY_BASE_URL, timeout_seconds=seconds, headers=headers) as client:
        answered = await ask_json(client, service, "POST", PATH, body=body)
    if answered.status != 200:
        raise _refusal(service, answered)
    match answered.body:
        case {"status": "completed", "output": [*items]}:
            found = _answer_of(items, str(answered.body.get("model") or ""))
            if found is None:
                raise OutsideFault("Perplexity found nothing to say to this. Ask in other words.", is_retryable=True)
            return found
        case {"status": "failed" | "cancelled" | "requires_action"}:
            said = said_by(service, answered)
            raise OutsideFault(f"Perplexity could not answer{f': {said}' if said else '.'} Go on without it.")
    raise unreadable(service)


def _refusal(service: Service, answered: Answered) -> OutsideFault:
    """Where the API has moved again, the words it moved with name Sonar or the Agent API."""
    said = said_by(service, answered).lower()
    if answered.status in (404, 410) or "sonar" in said or "agent api" in said:
        return OutsideFault(
            "Perplexity no longer offers the interface this server asks at its PERPLEXITY_BASE_URL. Only the people "
            "who run the server can change that; go on without it."
        )
    return refused(service, answered)


def _answer_of(items: Sequence[Any], model: str) -> WebAnswer | None:
    """The texts of the messages with their numbers made those of the pages; None where nothing is said."""
    pages: dict[str, Page] = {}
    by_number: dict[int, str] = {}
    for number, page in _results(items):
        pages.setdefault(page.url, page)
        if number is not None:
            by_number.setdefault(number, page.url)
    texts = []
    for text, marks in _texts(items):
        marked = list(_annotated(text, marks))
        for page, start, end in marked:
            pages.setdefault(page.url, page)
            if (mark := re.fullmatch(r"\s*\[(\d{1,3})\]\s*", text[start:end])) is not None:
                by_number[int(mark[1])] = page.url
        texts.append(text if NUMBERS.search(text) else _with_numbers(text, marked, by_number))
    text = "\n\n".join(texts).strip()
    if not text:
        return None
    return _numbered_anew(text, pages, by_number, model)


def _numbered_anew(text: str, pages: Mapping[str, Page], by_number: Mapping[int, str], model: str) -> WebAnswer:
    """Pages that are cited first, in order of their first use, and then others up to the most that are kept."""
    used = [int(number) for mark in NUMBERS.findall(text) for number in mark.split(",")]
    cited = dict.fromkeys(by_number[number] for number in used if number in by_number)
    kept = [*cited, *(url for url in pages if url not in cited)][: max(MOST_PAGES, len(cited))]
    places = {url: place for place, url in enumerate(kept, start=1)}

    def renumbered(mark: re.Match[str]) -> str:
        urls = [by_number.get(int(number)) for number in mark[1].split(",")]
        return "".join(f" [{places[url]}]" for url in dict.fromkeys(urls) if url in places)

    return WebAnswer(NUMBERS.sub(renumbered, text), tuple(pages[url] for url in kept), clean(model)[:80])


def _with_numbers(text: str, marked: Sequence[tuple[Page, int, int]], by_number: dict[int, str]) -> str:
    """A text that names its pages by annotations only, with a number behind each place."""
    for page, _, end in sorted(marked, key=lambda one: -one[2]):
        number = next((n for n, url in by_number.items() if url == page.url), None)
        if number is None:
            number = max(by_number, default=0) + 1
            by_number[number] = page.url
        text = f"{text[:end]} [{number}]{text[end:]}"
    return text


def _results(items: Sequence[Any]) -> Iterator[tuple[int | None, Page]]:
    for item in items:
        match item:
            case {"type": "search_results" | "fetch_url_results", "results": [*found]} | {
                "type": "fetch_url_results",
                "contents": [*found],
            }:
                for one in found:
                    page = _page(one)
                    if page is not None:
                        number = one.get("id")
                        yield number if isinstance(number, int) else None, page


def _texts(items: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    for item in items:
        match item:
            case {"type": "message", "content": [*parts]}:
                for part in parts:
                    match part:
                        case {"type": "output_text", "text": str(text)}:
                            marks = part.get("annotations")
                            yield clean(text), marks if isinstance(marks, list) else ()


def _annotated(text: str, marks: Sequence[Any]) -> Iterator[tuple[Page, int, int]]:
    for one in marks:
        match one:
            case {"type": "url_citation", "start_index": int(start), "end_index": int(end)} if (
                0 <= start <= end <= len(text)
            ):
                page = _page(one)
                if page is not None:
                    yield page, start, end


def _page(found: Any) -> Page | None:
    """A page that may be linked to: by http or https, and named."""
    match found:
        case {"url": str(url)} if _is_web(url):
            title, snippet, date = (_text(found, name) for name in ("title", "snippet", "date"))
            return Page(title[:_LONGEST_TITLE] or urlsplit(url).netloc, url, snippet[:LONGEST_SNIPPET], date[:40])
    return None


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return clean(value).strip() if isinstance(value, str) else ""


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and url == clean(url) and len(url) <= 2_000
    except ValueError:
        return False
