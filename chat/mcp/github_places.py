"""What a person sees and cites of what was read on GitHub."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from chat.sources import Source

_PLACE = re.compile(
    r"repo://(?P<owner>[^/]+)/(?P<repo>[^/]+)/(?:refs/heads/(?P<branch>.+?)/|refs/tags/(?P<tag>.+?)/|sha/(?P<sha>\w+)/|.*?)"
    r"contents/(?P<path>.+)"
)
_NUMBERS = ("issue_number", "pullNumber")


def github_label(title: str, arguments: Mapping[str, Any]) -> str:
    """“Read file: octocat/hello, README.md”."""
    repository = "/".join(str(arguments[name]) for name in ("owner", "repo") if arguments.get(name))
    number = next((f"#{arguments[name]}" for name in _NUMBERS if arguments.get(name) is not None), "")
    about = [repository, str(arguments.get("path") or ""), number, str(arguments.get("query") or "")]
    named = ", ".join(part for part in about if part)
    return f"{title}: {named}" if named else title


def github_told(text: str) -> str:
    """What GitHub's JSON says, in a line for the person; "" when it is of another kind."""
    try:
        said = json.loads(text)
    except ValueError:
        return ""
    match said:
        case {"number": int(number), "title": str(title)}:
            state = said.get("state")
            return f"#{number} {title}" + (f", {state}" if isinstance(state, str) else "")
        case {"total_count": int(count)}:
            return f"{count:,} found"
        case {"login": str(login)}:
            return f"Signed in as {login}"
        case list() if all(isinstance(entry, dict) for entry in said):
            named = [str(entry.get("name") or entry.get("title") or entry.get("path") or "") for entry in said]
            shown = ", ".join(filter(None, named[:3]))
            return f"{len(said):,} found" + (f": {shown}" if shown else "") + (" …" if len(said) > 3 and shown else "")
    return ""


def repository_link(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Where on GitHub a call looks, for its card; empty when it names no repository."""
    owner, repo = arguments.get("owner"), arguments.get("repo")
    if not (isinstance(owner, str) and isinstance(repo, str)):
        return []
    url = f"https://github.com/{quote(owner, safe='')}/{quote(repo, safe='')}"
    for name, page in (("issue_number", "issues"), ("pullNumber", "pull")):
        if isinstance(arguments.get(name), int):
            number = arguments[name]
            return [card_place(Source(f"{owner}/{repo}#{number}", "", 0, 0, "github", url=f"{url}/{page}/{number}"))]
    return [card_place(Source(f"{owner}/{repo}", "", 0, 0, "github", url=url))]


def file_source(block: Mapping[str, Any]) -> Source | None:
    """The file a block holds, to be cited; None when it holds none."""
    resource = block.get("resource") if block.get("type") == "resource" else None
    if not isinstance(resource, Mapping) or not isinstance(resource.get("text"), str):
        return None
    place = _PLACE.fullmatch(str(resource.get("uri", "")))
    if place is None:
        return None
    owner, repo, path = place["owner"], place["repo"], place["path"]
    reference = place["branch"] or place["tag"] or place["sha"] or "HEAD"
    url = f"https://github.com/{quote(owner)}/{quote(repo)}/blob/{quote(reference)}/{quote(path)}"
    text = resource["text"]
    return Source(f"{owner}/{repo}", text, 0, len(text), "github", section=path, url=url)


def card_place(source: Source) -> dict[str, Any]:
    """What a card keeps of a source, so that it can be cited again when its result is opened again."""
    return {
        "title": source.title,
        "section": source.section,
        "url": source.url,
        "start": source.start,
        "end": source.end,
        "origin": source.origin,
    }
