"""Every page, in both themes and on every screen: no complaint, no barrier, nothing wider than the window."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from klerai.accounts.models import Person
from tests.browser.conftest import OpenVisit
from tests.browser.visit import Visit
from tests.people import make_person

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SUMS = "What is 12 × 48, and what is 8 % of 900?"
OPEN_PAGES = ("/", "/accounts/login/", "/accounts/signup/", "/accounts/password/reset/")
OWN_PAGES = (
    "/",
    "/billing/",
    "/billing/?usage=tool&verify=1",
    "/billing/ledger/",
    "/settings/",
    "/setup/",
    "/accounts/reauthenticate/",
    "/accounts/password/change/",
)
SIZES = ((1440, 900), (768, 1024), (390, 844), (320, 640))
JUDGED_BY_AXE = {1440, 390}

THEMES = ["light", "dark"]


def judge(there: Visit, path: str) -> list[str]:
    there.open(path)
    size = there.page.viewport_size
    wrong = there.barriers() if size and size["width"] in JUDGED_BY_AXE else []
    if there.is_wider_than_the_window():
        wrong.append("wider than the window")
    return [f"{path} {size}: {each}" for each in wrong]


@pytest.mark.thorough
@pytest.mark.parametrize("theme", THEMES)
def test_pages_for_strangers_have_no_barriers(visit: OpenVisit, theme: Literal["light", "dark"]) -> None:
    there = visit(None, color_scheme=theme)
    wrong = []
    for width, height in SIZES:
        there.page.set_viewport_size({"width": width, "height": height})
        wrong += [each for path in OPEN_PAGES for each in judge(there, path)]
    assert not wrong


@pytest.mark.thorough
@pytest.mark.parametrize("theme", THEMES)
def test_pages_of_a_person_have_no_barriers(visit: OpenVisit, theme: Literal["light", "dark"]) -> None:
    there = visit(make_person(), color_scheme=theme)
    there.open("/")
    there.ask(SUMS)
    there.wait_for_words("576")
    there.wait_for_end()
    conversation = there.page.url
    there.page.locator(".receipt-line").click()
    receipt = there.page.get_by_role("link", name="The whole receipt").get_attribute("href")
    memory = f"{conversation}memory/"
    assert receipt
    wrong = []
    for width, height in SIZES:
        there.page.set_viewport_size({"width": width, "height": height})
        wrong += [each for path in (*OWN_PAGES, conversation, receipt, memory) for each in judge(there, path)]
    assert not wrong


@pytest.mark.thorough
def test_an_open_receipt_and_the_modes_have_no_barriers(visit: OpenVisit) -> None:
    there = visit(make_person())
    there.open("/")
    there.ask(SUMS)
    there.wait_for_end()
    there.page.locator("article .fold > summary").click()
    there.page.locator(".receipt-line").click()
    assert there.barriers() == []
    there.page.keyboard.press("Escape")
    there.page.get_by_role("button", name="Mode: Assistant").click()
    assert there.page.get_by_role("radiogroup", name="Mode").get_by_role("radio").count() == 5
    assert there.barriers() == []


def test_the_sidebar_is_a_drawer_on_a_phone(visit: OpenVisit) -> None:
    there = visit(make_person(), viewport={"width": 390, "height": 844})
    there.open("/")
    drawer = there.page.get_by_role("navigation", name="KlerAI")
    assert not drawer.is_visible()
    there.page.get_by_role("button", name="Open the sidebar").click()
    assert drawer.is_visible()
    assert there.barriers() == []
    there.page.keyboard.press("Escape")
    assert not drawer.is_visible()


def test_a_chosen_theme_is_there_at_the_first_paint(visit: OpenVisit) -> None:
    there = visit(make_person(), color_scheme="light")
    there.open("/")
    with there.page.expect_response("**/settings/theme/") as answered:
        there.page.get_by_role("button", name="Switch between light and dark").click()
    assert answered.value.status == 204
    source = there.page.request.get("/billing/").text()
    assert '<html lang="en" data-theme="dark">' in source
    there.page.context.clear_cookies(name="sessionid")
    assert '<html lang="en" data-theme="dark">' in there.page.request.get("/accounts/login/").text()


def test_reading_works_without_scripts(visit: OpenVisit) -> None:
    person = make_person()
    there = visit(person)
    there.open("/")
    there.ask(SUMS)
    there.wait_for_end()
    reader = visit(person, java_script_enabled=False)
    reader.open(there.page.url)
    assert "576" in reader.answer()
    reader.page.locator("article .fold > summary").click()
    assert reader.page.locator(".tool-card").first.is_visible()
    assert not reader.page.get_by_role("button", name="Regenerate", exact=True).is_visible()


def test_pictures_for_the_readme(visit: OpenVisit, pictures: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    person = make_person()
    Person.objects.filter(pk=person.pk).update(name="Robin")
    there = visit(person, viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    there.open("/")
    there.ask("What is 17.5 % of 2,480?")
    there.wait_for_words("434")
    there.wait_for_end()
    there.page.locator("article .fold > summary").click()
    for name, theme in (("conversation", "light"), ("conversation-dark", "dark")):
        there.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        there.page.screenshot(path=tmp_path / "shot.png")
        image.open(tmp_path / "shot.png").convert("RGB").save(pictures / f"{name}.webp", quality=80, method=6)
    there.page.emulate_media(color_scheme="light")
    there.page.locator(".receipt-line").click()
    there.page.get_by_role("link", name="The whole receipt").click()
    there.page.get_by_role("heading", name="What it cost").wait_for()
    there.page.screenshot(path=tmp_path / "shot.png")
    image.open(tmp_path / "shot.png").convert("RGB").save(pictures / "receipt.webp", quality=80, method=6)
