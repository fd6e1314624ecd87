"""Cuts what Context7 answers into sections: JSON, and text in its two layouts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from retrieval.documentation.plain import address_in, on_one_line, plain

CHARACTERS_A_TOKEN = 4
MOST_TOKENS = 50_000
MOST_SECTIONS = 1_000
_LONGEST_TITLE = 200

_DASHES = re.compile(r"-{20,}\s*")
_FENCE = re.compile(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>.*)")
_BANNER = re.compile(r"={20,}\s*")
_BANNER_WORDS = ("CODE SNIPPETS", "QUESTIONS AND ANSWERS")
_TITLE = re.compile(r"(?m)^(?:#{1,4} +|TITLE: *)(?P<title>\S.*)$")
_SOURCE = re.compile(r"(?mi)^source: *(?P<address>\S.*)$")
_FIELD = re.compile(r"^(?P<name>TITLE|DESCRIPTION|LANGUAGE|CODE): ?(?P<value>.*)$")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a library's documentation, as Markdown; `url` is empty where it has no address."""

    title: str
    url: str
    text: str

    @property
    def whole(self) -> str:
        """All its words, for an index."""
        return self.text if self.title in self.text else f"{self.title}\n{self.text}"

    def to_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Cut:
    """The sections that are kept, and how many were left out to keep within the budget."""

    sections: tuple[Section, ...]
    left_out: int = 0


def sections_of_text(text: str) -> list[Section]:
    """The sections between lines of at least 20 dashes, those inside code fences not counted."""
    found = []
    for part in split(plain(text)):
        body = _without_banner(part).strip("\n").rstrip()
        if body.strip():
            found.append(_section(body))
    return found


def sections_of_json(found: Any) -> list[Section]:
    """The code and info snippets of a v2 answer; what has another form is passed over."""
    if not isinstance(found, dict):
        return []
    code = [_code_section(entry) for entry in _entries(found.get("codeSnippets"))]
    info = [_info_section(entry) for entry in _entries(found.get("infoSnippets"))]
    return [section for section in (*code, *info) if section.text.strip()]


def within_budget(sections: Sequence[Section], *, tokens: int = MOST_TOKENS) -> Cut:
    """As many whole sections as fit, in their order. A first one that is too long by itself ends at a line."""
    left = tokens * CHARACTERS_A_TOKEN
    kept: list[Section] = []
    for section in sections[:MOST_SECTIONS]:
        if len(section.text) > left:
            if kept:
                continue
            section = Section(section.title, section.url, section.text[:left].rpartition("\n")[0])
        kept.append(section)
        left -= len(section.text)
    return Cut(tuple(kept), len(sections) - len(kept))


def split(text: str) -> Iterator[str]:
    """The parts of a text between its separators.

    A fence that nothing closes is no fence: otherwise one slip would make all that follows a single section.
    """
    part: list[str] = []
    for line, is_code in _followed(text.split("\n")):
        if not is_code and _DASHES.fullmatch(line):
            yield "\n".join(part)
            part = []
        else:
            part.append(line)
    yield "\n".join(part)


def _followed(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it stands in code that a fence closes."""
    at = 0
    while at < len(lines):
        opening = _FENCE.fullmatch(lines[at])
        is_fence = opening is not None and not (opening["marks"][0] == "`" and "`" in opening["info"])
        if opening is None or not is_fence:
            yield lines[at], False
            at += 1
            continue
        end = next((i for i in range(at + 1, len(lines)) if _closes(lines[i], opening["marks"])), None)
        if end is None:
            yield from ((line, False) for line in lines[at:])
            return
        yield from ((line, True) for line in lines[at : end + 1])
        at = end + 1


def _closes(line: str, marks: str) -> bool:
    found = _FENCE.fullmatch(line)
    return found is not None and found["marks"].startswith(marks) and not found["info"].strip()


def _without_banner(part: str) -> str:
    """Without the lines of `=` and the heading between them that the older layout begins with."""
    lines = part.split("\n")
    while lines and (not lines[0].strip() or _BANNER.fullmatch(lines[0]) or lines[0].strip() in _BANNER_WORDS):
        lines.pop(0)
    return "\n".join(lines)


def _section(body: str) -> Section:
    title, source = _TITLE.search(body), _SOURCE.search(body)
    first = next(line for line in body.split("\n") if line.strip())
    named = title["title"] if title else first.lstrip("#> ")
    url = address_in(source["address"].strip()) if source else ""
    if source and url:
        body = f"{body[: source.start()].rstrip()}\n\n{body[source.end() :].lstrip()}"
    text = _as_markdown(body) if body.startswith("TITLE:") else body
    return Section(on_one_line(named, most=_LONGEST_TITLE) or "Untitled", url, text.strip())


def _as_markdown(body: str) -> str:
    """A section of the older layout in the newer one's form: a heading, plain fields, the code under its language."""
    told: list[str] = []
    language = ""
    lines = iter(body.split("\n"))
    for line in lines:
        field = _FIELD.match(line)
        match field["name"] if field else "":
            case "TITLE" if field:
                told.append(f"### {field['value']}")
                told.append("")
            case "DESCRIPTION" if field:
                told.append(field["value"])
            case "LANGUAGE" if field:
                language = field["value"].strip().lower()
            case "CODE":
                opening = next(lines, "")
                bare = opening.strip() == "```" and _LANGUAGE.fullmatch(language)
                told += [f"```{language}" if bare else opening, *lines]
            case _:
                told.append(line)
    return "\n".join(told)


def _code_section(entry: dict[str, Any]) -> Section:
    title = on_one_line(entry.get("codeTitle") or entry.get("pageTitle"), most=_LONGEST_TITLE)
    told = [f"### {title}", _told(entry.get("codeDescription"))]
    for example in _entries(entry.get("codeList")):
        code = _told(example.get("code"))
        if code:
            told.append(_fenced(code, on_one_line(example.get("language"), most=30)))
    text = "\n\n".join(part for part in told[1:] if part)
    return Section(title or "Untitled", address_in(entry.get("codeId")), f"{told[0]}\n\n{text}" if text else "")


def _info_section(entry: dict[str, Any]) -> Section:
    trail = on_one_line(entry.get("breadcrumb"), most=_LONGEST_TITLE).replace(" > ", " › ")
    content = _told(entry.get("content"))
    return Section(trail or "Untitled", address_in(entry.get("pageId")), content)


def _fenced(code: str, language: str) -> str:
    """In a fence longer than any inside it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}{language.lower() if _LANGUAGE.fullmatch(language) else ''}\n{code}\n{marks}"


def _told(value: Any) -> str:
    return plain(value).strip("\n").rstrip() if isinstance(value, str) else ""


def _entries(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
