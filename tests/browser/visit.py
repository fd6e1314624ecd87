"""A person at a browser: what they do in words, and what they see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings

from klerai.accounts.models import Person
from tests.people import sign_in

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Locator, Page

PATIENCE_MS = 20_000
SERIOUS = {"serious", "critical"}


def session_of(person: Person, url: str) -> Any:
    """A signed-in browser's cookie."""
    name = settings.SESSION_COOKIE_NAME
    return {"name": name, "value": sign_in(person).cookies[name].value, "url": url}


class Visit:
    """One page. `check` fails on anything the browser complained about: scripts, policy, missing files."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.expected_status: set[int] = set()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, path: str) -> None:
        self.page.goto(path)

    def ask(self, message: str) -> Locator:
        """Send a question; the article it gets."""
        before = self.runs.count()
        self.box.fill(message)
        self.send.click()
        article = self.runs.nth(before)
        article.wait_for()
        return article

    def wait_for_words(self, words: str) -> None:
        self.runs.last.locator(".prose", has_text=words).last.wait_for()

    def wait_for_end(self) -> None:
        self.page.locator("article.run:last-of-type .receipt-line").wait_for()

    def answer(self) -> str:
        return self.runs.last.locator(".answer > .prose").inner_text().strip()

    @property
    def box(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message")

    @property
    def runs(self) -> Locator:
        return self.page.get_by_role("region", name="Conversation").locator("article[data-run-id]")

    @property
    def balance(self) -> Locator:
        return self.page.locator("#sidebar-balance")

    @property
    def send(self) -> Locator:
        return self.page.get_by_role("button", name="Send")

    @property
    def stop(self) -> Locator:
        return self.page.get_by_role("button", name="Stop")

    def is_wider_than_the_window(self) -> bool:
        found: bool = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return found

    def barriers(self) -> list[str]:
        """What axe finds serious."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {node['html'][:200]}"
            for each in found
            if each["impact"] in SERIOUS
            for node in each["nodes"]
        ]

    def check(self) -> None:
        assert not self.complaints, self.complaints

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type not in {"error", "warning"}:
            return
        is_expected = any(f"status of {status}" in message.text for status in self.expected_status)
        if not is_expected:
            self.complaints.append(f"{message.type}: {message.text} ({urlsplit(self.page.url).path})")
