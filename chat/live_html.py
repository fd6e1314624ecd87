"""Dresses the events of a run for a page: closed blocks as safe HTML, the open one as text."""

from __future__ import annotations

from typing import Any

from chat.events import ContentChunk, ContentReplaced, Logged, MessageComplete, RunFailed, ToolCallStart
from chat.rendering import LiveRenderer, Rendered


class LiveHtml:
    """Feed it every event of a run from the first on: a block is known only with what stood before it."""

    def __init__(self) -> None:
        self._turn = 0
        self._renderer = LiveRenderer()

    def dressed(self, event: Logged) -> dict[str, Any]:
        """The event's data and what the page shows for it."""
        match event.type:
            case ContentChunk.type:
                if event.data["turn"] != self._turn:
                    self._turn, self._renderer = event.data["turn"], LiveRenderer()
                return {**event.data, **_html(self._renderer.feed(event.data["text"]))}
            case ContentReplaced.type:
                self._renderer = LiveRenderer()
                return {**event.data, **_html(self._renderer.feed(event.data["text"]))}
            case ToolCallStart.type:
                self._renderer = LiveRenderer()
                return event.data
            case MessageComplete.type | RunFailed.type:
                return {**event.data, "html": self._renderer.finish()}
        return event.data


def _html(rendered: Rendered) -> dict[str, Any]:
    return {"blocks": rendered.blocks, "open": rendered.open}
