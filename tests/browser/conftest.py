"""Chromium before a real server of the product; a page that breaks its own rules fails the test that opened it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from klerai.accounts.models import Person
from tests.browser.visit import Visit, session_of
from tests.serving import server_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NEEDED = ("playwright", "axe_playwright_python")

OpenVisit = Callable[..., Visit]


def what_is_missing() -> str:
    """What keeps these tests from running; nothing when it is empty."""
    packages = [name for name in NEEDED if find_spec(name) is None]
    if packages:
        return f"{' and '.join(packages)} not installed: uv sync --group browser"
    return "" if chromium() else "Chromium is not installed"


@pytest.fixture(autouse=True)
def _django_in_the_thread_of_playwright(monkeypatch: pytest.MonkeyPatch) -> None:
    """Playwright's loop stands still while a test runs; Django need not be afraid of it."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")


def chromium() -> str | None:
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


@pytest.fixture(scope="session")
def can_browse() -> None:
    """Says what is missing; with KLERAI_REQUIRE_BROWSER=1 that is a failure."""
    missing = what_is_missing()
    if missing and os.environ.get("KLERAI_REQUIRE_BROWSER") == "1":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)


@pytest.fixture(scope="module")
def browser(can_browse: None) -> Iterator[Browser]:
    """One Chromium for a module: no longer, because no other test could have an event loop beside Playwright's."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])


@pytest.fixture(scope="session")
def website(can_browse: None, database: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in a process of its own that answers without a model, slowly enough to be watched."""
    with server_process(tmp_path_factory.mktemp("website"), KLERAI_STRATEGY="offline") as server:
        yield server.url


@pytest.fixture
def visit(website: str, browser: Browser) -> Iterator[OpenVisit]:
    """Opens browsers: `visit(person)`, or `visit(None)` for a stranger; more options go to Playwright."""
    with ExitStack() as stack:

        def opened(person: Person | None, **options: Any) -> Visit:
            context = browser.new_context(base_url=website, **{"viewport": {"width": 1280, "height": 800}, **options})
            stack.callback(context.close)
            if person is not None:
                context.add_cookies([session_of(person, website)])
            made = Visit(context.new_page())
            stack.callback(made.check)
            return made

        yield opened


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where README pictures go; only when they are asked for."""
    if os.environ.get("KLERAI_WRITE_PICTURES") != "1":
        pytest.skip("pictures are written with KLERAI_WRITE_PICTURES=1")
    return Path(__file__).resolve().parents[2] / "static" / "pictures"
