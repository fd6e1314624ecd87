"""Knowledge in the browser: files dropped, watched until they are ready, opened at a passage, thrown away."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from retrieval.models import Document
from tests.browser.conftest import OpenVisit
from tests.browser.visit import Visit
from tests.people import make_person
from tests.serving import wait_until
from tests.uploading import GUIDE, read

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

    from klerai.accounts.models import Person

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

BASE = "/knowledge/default_kb/"
LONG = "\n\n".join(f"Line {number:04d} about otters and herons in the slow river." for number in range(3_000))
DROP = """([files]) => {
  const data = new DataTransfer();
  for (const [name, text] of files) data.items.add(new File([text], name));
  for (const type of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
  }
}"""

DROP_A_FOLDER = """() => {
  const leaf = (path) => {
    const name = path.split("/").pop();
    return { name, fullPath: path, isFile: true, file: (done) => done(new File([`Otters of ${path}.`], name)) };
  };
  const folder = (path, entries) => ({
    name: path.split("/").pop(), fullPath: path,
    createReader: () => { const batches = [entries, []]; return { readEntries: (done) => done(batches.shift()) }; },
  });
  const inner = (path) => folder(path, [leaf(`${path}/read.txt`), leaf(`${path}/.git`)]);
  const notes = [inner("/notes/a"), inner("/notes/b")];
  const event = new Event("drop", { bubbles: true, cancelable: true });
  event.dataTransfer = { types: ["Files"], files: [], items: [{ webkitGetAsEntry: () => folder("/notes", notes) }] };
  document.body.dispatchEvent(event);
}"""


def drop(page: Page, *files: tuple[str, str]) -> None:
    page.evaluate(DROP, [[list(file) for file in files]])


def documents_of(person: Person) -> Any:
    return Document.objects.filter(knowledge_base__owner=person)


def work(person: Person, *, number: int) -> None:
    """Wait until these many files are there, then do what the worker does."""
    wait_until(lambda: documents_of(person).count() == number, what="the files to be stored")
    with ThreadPoolExecutor(1) as worker:  # Playwright's loop stands in this thread
        for document in documents_of(person).filter(status=Document.Status.QUEUED):
            worker.submit(read, str(document.pk)).result()


def with_guide(there: Visit, person: Person, name: str = "guide.md", text: str = GUIDE) -> None:
    there.open(BASE)
    drop(there.page, (name, text))
    work(person, number=1)
    there.page.get_by_role("link", name=name).wait_for()


@pytest.mark.thorough
def test_files_are_dropped_watched_and_opened_at_a_passage(visit: OpenVisit) -> None:
    there = visit(alice := make_person())
    there.open(BASE)
    drop(there.page, ("guide.md", GUIDE), ("notes.txt", "Otters swim."), ("broken.pdf", "%PDF-1.7 nonsense"))
    waiting = there.page.get_by_role("region", name="In progress")
    waiting.get_by_role("row", name=re.compile("guide.md Waiting for its turn")).wait_for()
    assert there.page.get_by_role("status").filter(has_text="3 files added.").count() == 1
    work(alice, number=3)
    there.page.get_by_role("region", name="Ready").get_by_role("row", name=re.compile("guide.md Markdown")).wait_for()
    there.page.get_by_role("status").filter(has_text="Done. 1 file could not be added.").wait_for(state="attached")
    assert waiting.count() == 0
    assert there.page.get_by_text("2 documents in").is_visible()
    failed = there.page.get_by_role("region", name="Could not be added")
    assert "broken.pdf The PDF" in " ".join(failed.inner_text().split())
    failed.get_by_role("button", name="Remove broken.pdf").click()
    failed.wait_for(state="detached")

    there.open("/search/")
    there.page.get_by_role("searchbox", name="Question").fill("where do otters sleep")
    there.page.get_by_role("button", name="Search").click()
    there.page.get_by_role("row", name=re.compile("guide.md")).first.get_by_role("link").first.click()
    passage = there.page.locator("#passage")
    passage.wait_for()
    assert there.page.evaluate("document.activeElement.id") == "passage"
    assert passage.bounding_box()["y"] < 800  # type: ignore[index]
    assert "Otters sleep afloat" in " ".join(there.page.locator("mark").all_inner_texts())


@pytest.mark.thorough
def test_the_files_of_a_folder_keep_their_paths_apart(visit: OpenVisit) -> None:
    there = visit(alice := make_person())
    there.open(BASE)
    there.page.evaluate(DROP_A_FOLDER)
    work(alice, number=2)
    there.page.get_by_role("link", name="notes › a › read.txt").wait_for()
    there.page.get_by_role("link", name="notes › b › read.txt").wait_for()


@pytest.mark.thorough
def test_polling_ends_when_nothing_is_in_progress(visit: OpenVisit) -> None:
    there = visit(alice := make_person())
    there.page.clock.install()
    asked: list[Request] = []
    ended: list[Request] = []
    there.page.on("request", lambda request: asked.append(request))
    there.page.on("requestfinished", lambda request: ended.append(request))
    there.page.on("requestfailed", lambda request: ended.append(request))
    there.open(BASE)
    drop(there.page, ("guide.md", GUIDE))
    there.page.get_by_role("row", name=re.compile("guide.md Waiting")).wait_for()
    work(alice, number=1)
    ready = there.page.get_by_role("link", name="guide.md")
    wait_until(lambda: ready.count() or there.page.clock.run_for(500), what="the page to look again")
    wait_until(lambda: len(asked) == len(ended) or there.page.wait_for_timeout(20), what="every answer")
    before = len(asked)
    there.page.clock.run_for(60_000)
    assert len(asked) == before


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open(BASE)
    there.page.evaluate(
        DROP.replace("new File([text], name)", "new File([new Uint8Array(101e6)], name)"), [[["big.pdf", ""]]]
    )
    refused = there.page.get_by_role("region", name="Not taken")
    refused.get_by_text("big.pdf has 101 MB; the limit is 100 MB. Split it, and add the parts you need.").wait_for()
    refused.get_by_role("button", name="Dismiss big.pdf").click()
    refused.wait_for(state="hidden")


def test_a_document_is_deleted_after_a_dialog_and_by_keyboard(visit: OpenVisit) -> None:
    there = visit(alice := make_person())
    with_guide(there, alice)
    there.page.get_by_role("button", name="More for guide.md").press("Enter")
    there.page.get_by_role("link", name="Delete").press("Enter")
    dialog = there.page.get_by_role("dialog", name="Delete this document?")
    assert "guide.md" in dialog.inner_text()
    assert there.page.evaluate("document.activeElement.textContent") == "Keep it"
    dialog.get_by_role("button", name="Keep it").press("Enter")
    dialog.wait_for(state="hidden")
    there.page.get_by_role("button", name="More for guide.md").click()
    there.page.get_by_role("link", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    there.page.get_by_text("“guide.md” was deleted.").wait_for()
    assert not documents_of(alice).exists()


@pytest.mark.thorough
def test_a_long_document_goes_on_in_place(visit: OpenVisit) -> None:
    there = visit(alice := make_person())
    with_guide(there, alice, "long.txt", LONG)
    document = documents_of(alice).get()
    start = document.text.index("Line 1500")
    there.open(f"{BASE}documents/{document.pk}/?start={start}&end={start + 9}")
    assert there.page.locator("mark").inner_text() == "Line 1500"
    earlier = there.page.get_by_role("link", name="Earlier in this document")
    earlier.scroll_into_view_if_needed()
    place = there.page.locator("#passage").bounding_box()
    earlier.click()
    there.page.get_by_text("Line 1300").wait_for()
    assert abs(there.page.locator("#passage").bounding_box()["y"] - place["y"]) < 3  # type: ignore[index]
    there.page.get_by_role("link", name=re.compile("Go on reading")).click()

    there.page.get_by_text("Line 2000").wait_for()
    lines = re.findall(r"Line \d{4}", there.page.locator(".reader").inner_text())
    assert lines == sorted(set(lines))


@pytest.mark.thorough
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_of_knowledge_have_no_barriers(visit: OpenVisit, theme: Any) -> None:
    there = visit(alice := make_person(), color_scheme=theme)
    with_guide(there, alice)
    drop(there.page, ("a name that goes on and on without any space " + "x" * 120 + ".pdf", "%PDF-1.7 nonsense"))
    work(alice, number=2)
    document = documents_of(alice).get(title="guide.md").pk
    paths = ["/knowledge/", BASE, f"{BASE}settings/", f"{BASE}documents/{document}/?start=0&end=80", "/search/"]
    wrong = []
    for width, height in ((1440, 900), (390, 844), (320, 640)):
        there.page.set_viewport_size({"width": width, "height": height})
        for path in (*paths, f"{BASE}documents/{document}/delete/", "/search/?q=where+do+otters+sleep"):
            there.open(path)
            wrong += [f"{path} {width}: {each}" for each in there.barriers()]
            if there.is_wider_than_the_window():
                wrong.append(f"{path} {width}: wider than the window")
    assert not wrong
