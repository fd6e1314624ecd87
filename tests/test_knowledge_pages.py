"""The pages of knowledge: lists that tell the truth, a reader that opens at the passage, nothing of anybody else."""

from __future__ import annotations

import re
import uuid
from html import unescape

import httpx
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from retrieval.models import Chunk, Document
from tests.harness.doors import Visitor, by_key, by_session
from tests.people import make_charlie, sign_in
from tests.test_pages import words
from tests.uploading import GUIDE, added, send, shared_base, shared_document

NASTY = '<script>alert(1)</script> <img src=x onerror="alert(2)"> [x](javascript:alert(3)) {{ 7|add:1 }} **bold**'

EVERYTHING = """
```python
x = 1  # <b>
```

| a | b |
|---|---|
| 1 | 2 |

- one
- two

> said **so**
"""


def reader(document: str, base: str = "default_kb") -> str:
    return f"/knowledge/{base}/documents/{document}/"


def marked(page: httpx.Response) -> str:
    """The words that are highlighted, in one line."""
    found = re.findall(r"<mark[^>]*>(.*?)</mark>", page.text, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", "", " ".join(found))).split())


def form(there: Visitor, path: str, **fields: object) -> httpx.Response:
    """The page a browser shows after the form was sent."""
    answer = sign_in(there.person).post(path, fields, follow=True)
    return httpx.Response(answer.status_code, html=answer.content.decode())


def make_base(there: Visitor, name: str) -> httpx.Response:
    return form(there, "/knowledge/", name=name)


def test_a_new_person_sees_where_to_begin(server: str) -> None:
    with by_session(server) as alice:
        overview, base = alice.get("/knowledge/"), alice.get("/knowledge/default_kb/")
        assert "My documents Nothing in it yet" in words(overview)
        assert "Nothing in here yet. Add a document, then ask about it." in words(base)
        assert 'href="/knowledge/"' in alice.get("/").text
        assert 'aria-current="page"' in overview.text


def test_knowledge_bases_are_made_renamed_and_deleted_by_form(server: str) -> None:
    with by_session(server) as alice:
        assert "Team handbook" in words(make_base(alice, "Team handbook"))
        refused = make_base(alice, "  ")
        assert (refused.status_code, "Give it a name." in words(refused)) == (422, True)
        settings = "/knowledge/team-handbook/settings/"
        assert "It is called “Handbook” now." in words(form(alice, f"{settings}rename/", name="Handbook"))
        assert form(alice, f"{settings}rename/", name="").status_code == 422
        assert "“Handbook” was deleted" in words(form(alice, f"{settings}delete/"))
        assert alice.get("/knowledge/team-handbook/").status_code == 404


def test_files_are_added_by_a_plain_form_too(server: str) -> None:
    with by_session(server) as alice:
        sent = form(alice, "/knowledge/default_kb/", file=SimpleUploadedFile("guide.md", GUIDE.encode()))
        assert "In progress 1 file. You may leave this page." in words(sent)
        assert "No file was chosen." in words(form(alice, "/knowledge/default_kb/", file=""))


def test_the_lists_say_how_far_each_document_is(server: str) -> None:
    with by_session(server) as alice:
        added(alice)
        added(alice, "broken.pdf", b"%PDF-1.7 nonsense")
        send(alice, ("waiting.txt", "Otters wait."))
        page = alice.get("/knowledge/default_kb/")
        shown = words(page)
        assert re.search(r"In progress 1 file\. .* waiting\.txt Waiting for its turn 12 bytes", shown)
        assert re.search(r"Could not be added .* broken\.pdf The PDF .* Try again Remove", shown)
        assert re.search(r"Ready .* guide\.md Markdown \d+ \d+ bytes today", shown)
        assert re.search(r"1 document in \d passages?\. Only you can see what is in here\.", shown)
        assert "No document here has “heron” in its title." in words(alice.get("/knowledge/default_kb/?find=heron"))
        assert "guide.md" in words(alice.get("/knowledge/default_kb/?find=GUID"))


def test_what_a_page_fetches_while_it_watches_is_a_part_of_itself(server: str) -> None:
    with by_session(server) as alice:
        added(alice)
        part = alice.get("/knowledge/default_kb/", headers={"X-Requested-With": "fetch"})
        assert "<html" not in part.text
        assert (
            part.text[part.text.index('<section class="section" id="ready"') :][:200]
            in alice.get("/knowledge/default_kb/").text
        )


def test_a_document_is_deleted_after_a_question_and_tried_again_by_form(server: str) -> None:
    with by_session(server) as alice:
        broken = added(alice, "broken.pdf", b"%PDF-1.7 nonsense")
        assert "In progress 1 file" in words(form(alice, f"{reader(broken)}retry/"))
        assert "Delete this document? “broken.pdf” goes with" in words(alice.get(f"{reader(broken)}delete/"))
        assert "“broken.pdf” was deleted." in words(form(alice, f"{reader(broken)}delete/"))
        assert alice.get(reader(broken)).status_code == 404


@pytest.mark.parametrize("name", ["guide.md", "guide.txt"])
def test_the_reader_opens_at_the_passage_with_exactly_it_marked(server: str, name: str) -> None:
    with by_session(server) as alice:
        document = added(alice, name, GUIDE)
        start, end = GUIDE.index("holding"), GUIDE.index(" rivers.")
        page = alice.get(f"{reader(document)}?start={start}&end={end}")
        assert marked(page) == "holding hands, in slow"
        assert page.text.count('id="passage"') == 1
        assert "A heron stands" in words(page)
        assert marked(alice.get(reader(document))) == ""


def test_every_passage_of_a_markdown_document_is_marked_whole(server: str) -> None:
    with by_session(server) as alice:
        text = (
            GUIDE
            + "\n```python\nx = 1  # <b>\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- two\n\n> said **so**\n"
        )
        document = added(alice, text=text)
        for chunk in Chunk.objects.filter(document=document):
            page = alice.get(f"{reader(document)}?start={chunk.start}&end={chunk.end}")
            letters = set(re.findall(r"\w+", chunk.text)) - {"python"}
            assert letters <= set(re.findall(r"\w+", marked(page)))
            assert "\ue0f0" not in page.text


@pytest.mark.parametrize("name", ["nasty.md", "nasty.txt", "nasty.csv"])
def test_script_in_a_document_stays_text(server: str, name: str) -> None:
    with by_session(server) as alice:
        document = added(alice, name, f"{NASTY}\n\n# {NASTY}\n\n{NASTY}\n")
        for query in ("", "?start=0&end=60", "?start=5&end=6", "?start=30&end=90&from=0"):
            page = alice.get(reader(document) + query)
            assert page.status_code == 200
            assert "<script>alert" not in page.text
            assert not re.search(r"<img|href=.javascript|<[^>]*\sonerror=", page.text, flags=re.IGNORECASE)
            assert "<script>alert(1)</script>" in words(page).replace(" < ", "<") or "alert(1)" in words(page)


def test_a_mark_never_leaves_the_text_it_stands_in() -> None:
    from chat.views.passage_text import Range, blocks_of

    text = '[a"b>c](https://x.example/?q="><script> "t\'>it") and `code`\n\n- [x](https://y.example) \ue0f0\n'
    for start in range(len(text)):
        for end in (start + 1, start + 7, len(text)):
            html = "".join(
                block.html for block in blocks_of(text, offset=0, media_type="text/markdown", marked=Range(start, end))
            )
            assert not set(re.findall(r"<(\w+)", html)) - {"p", "a", "code", "mark", "ul", "li", "em"}
            assert not re.search(r'="[^"]*<mark', html)
            assert html.count("<mark") == html.count("</mark>")


def test_a_long_document_is_read_in_parts_that_join_to_the_whole(server: str) -> None:
    lines = [f"Line {number:05d} about otters and herons by the river." for number in range(4_000)]
    with by_session(server) as alice:
        document = added(alice, "long.txt", "\n\n".join(lines))
        text = Document.objects.get(pk=document).text
        start = text.index("Line 02000")
        page = alice.get(f"{reader(document)}?start={start}&end={start + 10}")
        assert marked(page) == "Line 02000"
        assert len(page.text) < 200_000
        seen: list[str] = []
        address: str | None = f"{reader(document)}?from=0"
        while address:
            part = alice.get(address, headers={"X-Requested-With": "fetch"}).text
            seen += re.findall(r"Line \d{5}", part)
            later = re.search(r'href="([^"]*)" data-later', part)
            address = reader(document) + unescape(later[1]) if later else None
        assert seen == [line[:10] for line in lines]
        before = re.search(r'href="([^"]*)" data-earlier', page.text)
        assert before
        earlier = re.findall(r"Line \d{5}", alice.get(reader(document) + unescape(before[1])).text)
        assert earlier[-1] < re.findall(r"Line \d{5}", page.text)[0]


def test_the_outline_leads_to_every_heading(server: str) -> None:
    with by_session(server) as alice:
        document = added(alice, text=GUIDE + "\n```\n# no heading\n```\n")
        page = alice.get(reader(document))
        entries = re.findall(r'<li data-level="(\d)"><a href="([^"]*)"[^>]*>([^<]*)</a>', page.text)
        assert [(level, title) for level, _, title in entries] == [("0", "Guide"), ("1", "Rivers"), ("1", "Lakes")]
        there = alice.get(reader(document) + unescape(entries[2][1]))
        assert re.search(r'id="here"[^>]*></span><h\d>Lakes', there.text)


@pytest.mark.parametrize(
    "query", ["?start=9&end=3", "?start=x&end=y", "?start=999999&end=9999999", "?from=999999999", "?until=0", "?at=-1"]
)
def test_an_address_that_points_nowhere_still_opens_the_document(server: str, query: str) -> None:
    with by_session(server) as alice:
        page = alice.get(reader(added(alice)) + query)
        assert page.status_code == 200
        assert marked(page) == ""


def test_what_belongs_to_somebody_else_does_not_exist(server: str) -> None:
    with by_session(server) as alice, by_session(server, make_charlie()) as charlie:
        make_base(alice, name := f"Secret {uuid.uuid4().hex[:8]}")
        slug = name.lower().replace(" ", "-")
        document = added(alice, base=f"/api/knowledge-bases/{slug}")
        own = (f"/knowledge/{slug}/", f"/knowledge/{slug}/settings/", f"/search/?kb={slug}")
        missing = tuple(path.replace(slug, f"{slug}x") for path in own)
        papers = (reader(document, slug), f"{reader(document, slug)}delete/")
        nothing = tuple(path.replace(document, str(uuid.uuid4())) for path in papers)
        for hers, nobodys in zip((*own, *papers), (*missing, *nothing), strict=True):
            assert alice.get(hers).status_code == 200, hers
            refused, none = charlie.get(hers), charlie.get(nobodys)
            assert refused.status_code == none.status_code == 404
            assert words(refused) == words(none)
        for path in (
            f"/knowledge/{slug}/settings/rename/",
            f"/knowledge/{slug}/settings/delete/",
            f"/knowledge/{slug}/",
            f"{papers[0]}retry/",
            papers[1],
        ):
            assert form(charlie, path, name="Mine").status_code == 404, path
        assert charlie.get(reader(document)).status_code == 404, "nor under a slug of their own"
        assert name not in charlie.get("/knowledge/").text
        assert Document.objects.filter(pk=document, knowledge_base__name=name).exists()


def test_a_stranger_is_sent_to_the_door_and_back(server: str) -> None:
    with by_key(server) as alice:
        document = added(alice)
    for path in ("/knowledge/", "/knowledge/default_kb/", reader(document), "/search/"):
        answer = httpx.get(server + path, trust_env=False)
        assert (answer.status_code, answer.headers["location"]) == (302, f"/accounts/login/?next={path}")


def test_a_shared_knowledge_base_can_be_read_and_not_changed(server: str) -> None:
    base = shared_base(f"Otter guide {uuid.uuid4().hex[:6]}")
    document = str(shared_document(base).pk)
    with by_session(server) as alice:
        assert base.name in words(alice.get("/knowledge/"))
        page = alice.get(f"/knowledge/{base.slug}/")
        assert "Everyone here can read it" in words(page)
        assert "Drop files" not in page.text
        assert "Delete" not in page.text
        assert "Otters for everyone." in words(alice.get(reader(document, base.slug)))
        for path in (f"/knowledge/{base.slug}/settings/", f"{reader(document, base.slug)}delete/"):
            assert alice.get(path).status_code == 404


def test_hostile_titles_are_text_on_every_page(server: str) -> None:
    with by_session(server) as alice:
        document = added(alice, "<img src=x onerror=alert(1)>'\"{{7}}.md", GUIDE)
        Document.objects.filter(pk=document).update(title="<img src=x onerror=alert(1)>'\"{{7}}.md")
        make_base(alice, "<svg onload=alert(1)>")
        for path in (
            "/knowledge/",
            "/knowledge/default_kb/",
            reader(document),
            f"{reader(document)}delete/",
            "/search/?q=otters+sleep",
        ):
            page = alice.get(path)
            assert not re.search(r"<img|<svg onload", page.text)
        assert "<img src=x onerror=alert(1)>'\"{{7}}.md" in unescape(alice.get(reader(document)).text)
