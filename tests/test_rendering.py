"""An answer as HTML: safe whatever it says, and the same whether it streams in or is read later."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.rendering import BLOCK_CHARS, HIGHLIGHT_CHARS, TEXT_CHARS, LiveRenderer, render_blocks, render_markdown

SAMPLE = """# Claiming jobs
Let the **database** hand out rows, see https://example.org/a?b=1&c=2.
- first
- second, with `code`

  and a second paragraph
- third

1. one
2. two

```python
def claim(job):

    return job
```
Text right after the fence.

| a | b |
|---|--:|
| 1 | 22 |

> quoted

    indented

    still indented
~~gone~~ and the end"""

MARKDOWN = st.text(alphabet="ab 1.-*+#>`~|:[]()!<&\n\t\\_\"'", max_size=200)


class _Seen(HTMLParser):
    """Every tag and attribute of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def streamed(text: str, sizes: list[int]) -> tuple[list[str], str]:
    """The blocks of a text that arrives in pieces of these sizes, and what a page shows just before the end."""
    renderer = LiveRenderer()
    blocks: list[str] = []
    shown, at, turn = "", 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        rendered = renderer.feed(text[at : at + size])
        blocks += rendered.blocks
        shown = rendered.open if rendered.blocks else shown + rendered.open
        at, turn = at + size, turn + 1
    return blocks + renderer.finish(), shown


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
def test_an_answer_that_streams_in_looks_like_its_history(size: int) -> None:
    assert streamed(SAMPLE, [size])[0] == render_blocks(SAMPLE)


@settings(max_examples=300, deadline=None)
@given(MARKDOWN, st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_where_a_text_is_cut_on_its_way_changes_nothing(text: str, sizes: list[int]) -> None:
    assert streamed(text, sizes)[0] == render_blocks(text)


@settings(max_examples=300, deadline=None)
@given(MARKDOWN)
def test_no_word_is_lost_on_the_way_to_the_page(text: str) -> None:
    source = re.findall(r"[ab]+", re.sub(r"`{3,}.*|~{3,}.*", "", text))
    if "](" in text or "<" in text or "]:" in text or "&" in text:
        return
    html = re.sub(r"<[^>]*>", "", render_markdown(text))
    assert all(word in html for word in source)


def test_only_the_open_block_is_text_and_it_is_whole_when_a_block_has_closed() -> None:
    renderer = LiveRenderer()
    assert renderer.feed("One **bo").blocks == []
    assert renderer.feed("ld** word").open == "ld** word"
    rendered = renderer.feed(".\n\nTwo")
    assert rendered.blocks == ["<p>One <strong>bold</strong> word.</p>"]
    assert rendered.open == "Two"
    assert renderer.finish() == ["<p>Two</p>"]
    assert renderer.finish() == []


def test_a_list_stays_one_list_while_it_grows() -> None:
    renderer = LiveRenderer()
    assert renderer.feed("Some:\n- a\n\n- b\n").blocks == ["<p>Some:</p>"]
    rendered = renderer.feed("\nAfter it.\n")
    assert len(rendered.blocks) == 1
    assert rendered.blocks[0].count("<li>") == 2


def test_a_blank_line_inside_a_fence_closes_nothing() -> None:
    renderer = LiveRenderer()
    assert renderer.feed("```\none\n\ntwo\n").blocks == []
    (block,) = renderer.feed("```\n").blocks
    assert "one\n\ntwo" in block


def test_code_is_a_figure_with_its_language_and_classes_only() -> None:
    html = render_markdown("```python\ndef f(): return 'x'\n```")
    assert '<figure class="code"><figcaption><span>Python</span></figcaption><pre tabindex="0"><code>' in html
    assert '<span class="k">def</span>' in html
    assert "style=" not in html


@pytest.mark.parametrize("language", ["", "no-such-language", "<b>", "python" * 100, '"><script>'])
def test_code_of_any_other_language_is_plain_text(language: str) -> None:
    html = render_markdown(f"```{language}\na < b\n```")
    assert "a &lt; b" in html
    assert {tag for tag, _ in _Seen(html).tags} <= {"figure", "figcaption", "span", "pre", "code"}


def test_numbers_in_a_table_stand_right_by_a_class() -> None:
    html = render_markdown("| a | b | c |\n|---|--:|:-:|\n| x | 1 | y |")
    assert '<table class="table">' in html
    assert '<td class="number">1</td>' in html
    assert '<td class="centre">y</td>' in html


def test_headings_of_an_answer_stand_below_the_question() -> None:
    assert [tag for tag, _ in _Seen(render_markdown("# a\n## b\n### c\n###### d")).tags] == ["h3", "h3", "h4", "h6"]


def test_an_address_becomes_a_link_that_hands_nothing_on() -> None:
    ((_, attributes),) = [seen for seen in _Seen(render_markdown("see https://example.org/x.")).tags if seen[0] == "a"]
    assert attributes == {"href": "https://example.org/x", "rel": "noopener noreferrer nofollow ugc"}


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "[x](/accounts/logout/)",
        "[x](//example.org)",
        "<javascript:alert(1)>",
        "[a]: javascript:alert(1)\n\n[a]",
        "![x](javascript:alert(1))",
        "![a](https://example.org/i.png)",
        "[![a](https://e.org/i.png)](https://example.org)",
        '<a href="https://example.org" onclick="x()">a</a>',
        "<style>*{display:none}</style>",
        "<svg onload=alert(1)>",
        "<iframe src=https://example.org></iframe>",
        "<form action=https://example.org><input name=q></form>",
        '[x](https://example.org "onmouseover=alert(1)")',
        "`<b onclick=x>`",
        "```html\n<script>alert(1)</script>\n```",
        'https://example.org/"onmouseover="alert(1)',
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "| <img src=x onerror=y> |\n|---|\n| [x](javascript:1) |",
    ],
)
def test_nothing_a_model_writes_can_act(source: str) -> None:
    for tag, attributes in _Seen(render_markdown(source)).tags:
        assert tag not in {"script", "style", "img", "svg", "iframe", "form", "input", "object", "base", "meta", "link"}
        assert not any(name.startswith("on") or name in {"style", "src", "id"} for name in attributes)
        assert (attributes.get("href") or "https://").startswith(("http://", "https://", "mailto:"))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="<>/\"'=&;:()[]!`#x javscriptonerhmlf\n", max_size=120))
def test_no_text_whatever_gets_an_attribute_past_the_cleaner(text: str) -> None:
    allowed = {"href", "title", "rel", "start", "tabindex", "role", "aria-label", "class"}
    for _, attributes in _Seen(render_markdown(text)).tags:
        assert set(attributes) <= allowed


def test_an_image_is_a_link_with_its_words() -> None:
    html = render_markdown("![a chart](https://example.org/i.png)")
    assert '<a href="https://example.org/i.png"' in html
    assert ">a chart</a>" in html


@pytest.mark.thorough
def test_what_is_longer_than_any_answer_is_shown_as_plain_text() -> None:
    block = render_markdown("**x** " * BLOCK_CHARS)
    assert block.startswith('<p class="plain">**x**')
    blocks = render_blocks("a\n\n" * (TEXT_CHARS // 3 + 10))
    assert blocks[-1].startswith('<p class="plain">')


def test_long_code_is_shown_without_colours() -> None:
    html = render_markdown("```python\n" + "x = 1\n" * (HIGHLIGHT_CHARS // 6 + 1) + "```")
    assert "<span>Python</span>" in html
    assert 'class="n"' not in html


def test_a_text_of_nothing_has_no_blocks() -> None:
    assert render_blocks("") == render_blocks(" \n\n \n") == []
