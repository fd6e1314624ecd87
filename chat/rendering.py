"""Markdown to safe HTML, block by block, so that a live answer and its history look the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from chat.markdown_blocks import BlockSplitter, split_blocks

BLOCK_CHARS = 16_000  # parsing hostile text takes up to 10 µs a character, and other streams wait meanwhile
TEXT_CHARS = 400_000
HIGHLIGHT_CHARS = 10_000

_SCHEMES = ("http://", "https://", "mailto:")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}]")
_HIGHEST_HEADING, _LOWEST_HEADING = 3, 6  # a page's title is h1 and a question h2


@dataclass(frozen=True, slots=True)
class Rendered:
    """What new text did to an answer.

    `blocks` are the blocks it closed, as HTML. Without any, `open` is only the text to append to the open block;
    with some, `open` is the whole text of the block that is open now.
    """

    blocks: list[str]
    open: str


class LiveRenderer:
    """Renders one turn of an answer while it grows; parses Markdown only when a block has closed."""

    def __init__(self) -> None:
        self._splitter = BlockSplitter()
        self._line = ""

    def feed(self, text: str) -> Rendered:
        if "\n" not in text:
            self._line += text
            return Rendered([], text)
        *whole, self._line = (self._line + text).split("\n")
        closed = [block for line in whole for block in self._splitter.take(line + "\n")]
        if not closed:
            return Rendered([], text)
        return Rendered([_render_block(block) for block in closed], self._splitter.open_lines + self._line)

    def finish(self) -> list[str]:
        """The HTML of what is still open. Feed nothing after this."""
        closed = self._splitter.take(self._line) if self._line else []
        self._line = ""
        return [_render_block(block) for block in closed + self._splitter.finish()]


def render_blocks(text: str) -> list[str]:
    """The blocks of a finished text as safe HTML; what is longer than `TEXT_CHARS` follows as plain text."""
    blocks = [_render_block(block) for block in split_blocks(text[:TEXT_CHARS])]
    rest = text[TEXT_CHARS:]
    return [*blocks, _plain(rest)] if rest else blocks


def render_markdown(text: str) -> str:
    """A finished text as safe HTML."""
    return "\n".join(render_blocks(text))


def _render_block(source: str) -> str:
    if len(source) > BLOCK_CHARS and not source.startswith(("```", "~~~")):
        return _plain(source)
    return _cleaner().clean(_markdown().render(source)).strip()


def _plain(source: str) -> str:
    return _cleaner().clean(f'<p class="plain">{escape(source)}</p>')


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    markdown.enable(["table", "strikethrough"])
    markdown.validateLink = lambda url: url.lower().startswith(_SCHEMES)  # type: ignore[method-assign]
    return markdown


@cache
def _cleaner() -> nh3.Cleaner:
    """The last step before any HTML leaves: what is not listed here is not in an answer."""
    tokens = set(STANDARD_TYPES.values()) - {""}
    return nh3.Cleaner(
        tags={
            *("p", "br", "hr", "strong", "em", "s", "code", "pre", "a", "ul", "ol", "li", "blockquote"),
            *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
            *("figure", "figcaption", "span", "div"),
        },
        clean_content_tags={"script", "style"},
        attributes={
            "a": {"href", "title"},
            "ol": {"start"},
            "pre": {"tabindex"},
            "div": {"tabindex", "role", "aria-label"},
        },
        allowed_classes={
            "figure": {"code"},
            "div": {"table-scroll"},
            "table": {"table"},
            "th": {"number", "centre"},
            "td": {"number", "centre"},
            "p": {"plain"},
            "span": tokens,
        },
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow ugc",
    )


class _Renderer(RendererHTML):
    """Our markup for what Markdown can say. Nothing here is trusted; the cleaner follows."""

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        content = tokens[idx].content
        if "://" not in content or _inside_link(tokens, idx):
            return escape(content)
        parts: list[str] = []
        end = 0
        for found in _ADDRESS.finditer(content):
            parts += [escape(content[end : found.start()]), _link(found[0], found[0])]
            end = found.end()
        return "".join([*parts, escape(content[end:])])

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        words = self.renderInlineAsText(token.children, options, env) if token.children else ""
        address = str(token.attrGet("src") or "")
        if _inside_link(tokens, idx):
            return escape(words or address)
        return _link(address, words or address)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        words = tokens[idx].info.split()
        return _figure(tokens[idx].content, words[0] if words else "")

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _figure(tokens[idx].content, "")

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<{_heading(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"</{_heading(tokens[idx])}>\n"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="table-scroll" tabindex="0" role="group" aria-label="Table"><table class="table">\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _cell(tokens[idx])

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _cell(tokens[idx])


def _inside_link(tokens: Sequence[Token], idx: int) -> bool:
    return sum(token.nesting for token in tokens[:idx] if token.type in {"link_open", "link_close"}) > 0


def _link(address: str, words: str) -> str:
    return f'<a href="{escape(address)}">{escape(words)}</a>'


def _heading(token: Token) -> str:
    level = int(token.tag[1:]) + 1
    return f"h{min(max(level, _HIGHEST_HEADING), _LOWEST_HEADING)}"


def _cell(token: Token) -> str:
    match token.attrGet("style"):
        case "text-align:right":
            return f'<{token.tag} class="number">'
        case "text-align:center":
            return f'<{token.tag} class="centre">'
        case _:
            return f"<{token.tag}>"


def _figure(source: str, language: str) -> str:
    lexer = _lexer(language[:40].lower())
    if lexer is None or len(source) > HIGHLIGHT_CHARS:
        inner = escape(source.rstrip("\n"))
    else:
        inner = highlight(source, lexer, _formatter()).rstrip("\n")
    title = lexer.name if lexer is not None else (language[:40] or "Text")
    return (
        f'<figure class="code"><figcaption><span>{escape(title)}</span></figcaption>'
        f'<pre tabindex="0"><code>{inner}</code></pre></figure>\n'
    )


@cache
def _formatter() -> HtmlFormatter[str]:
    return HtmlFormatter(nowrap=True)


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    if not language:
        return None
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
