"""Tools as people call them: what a model knows by its name stands on the page in plain words, with a sign."""

from __future__ import annotations

from collections.abc import Iterable

from chat.mcp.naming import server_and_tool
from chat.mcp.specs import GITHUB

_WORDS = {
    "generate_response": "the way to answer",
    "get_weather": "the weather service",
    "index_keywords": "the keyword index",
    "knowledge_base_search": "the knowledge base",
    "perplexity_search": "the web",
    "rag_search": "the knowledge base",
    "retrieve_documentation": "the documentation",
    "retrieve_full_context": "its memory",
}
_ICONS = {
    "calculator": "calculator",
    "generate_response": "pencil",
    "get_weather": "cloud-sun",
    "index_keywords": "tags",
    "knowledge_base_search": "search",
    "perplexity_search": "globe",
    "rag_search": "search",
    "retrieve_documentation": "book-open",
    "retrieve_full_context": "history",
}


def what_was_used(names: Iterable[str]) -> str:
    """“the documentation and GitHub”: each once, in the order they were used first."""
    words = list(dict.fromkeys(map(_used, names)))
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def plain_name(name: str) -> str:
    """“Calculator”, “GitHub: get file contents”."""
    server, tool = server_and_tool(name)
    words = tool.replace("_", " ").strip()
    return f"{_server(server)}: {words}" if server else words[:1].upper() + words[1:]


def icon_of(name: str) -> str:
    server, _ = server_and_tool(name)
    if server:
        return "git-branch" if server == GITHUB else "plug"
    return _ICONS.get(name, "wrench")


def _used(name: str) -> str:
    server, _ = server_and_tool(name)
    return _server(server) if server else _WORDS.get(name, f"the {name.replace('_', ' ')}")


def _server(name: str) -> str:
    return "GitHub" if name == GITHUB else name
