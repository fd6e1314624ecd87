"""Signing in through another server in a browser: a form may lead there, and its cookie is there at the way back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from klerai.accounts.models import Person
from tests.browser.visit import Visit
from tests.fakes.openid_server import CLIENT_ID, CLIENT_SECRET, Account, OpenIdFake
from tests.fakes.outside import running
from tests.people import new_email
from tests.serving import server_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
HARBOUR = Account("al-1")


@pytest.fixture
def harbour(tmp_path_factory: pytest.TempPathFactory, can_browse: None) -> Iterator[tuple[str, OpenIdFake]]:
    """A server of the product that takes its people from Harbour too."""
    with running(OpenIdFake()) as fake:
        set_up = {"OIDC_SERVER_URL": fake.url, "OIDC_CLIENT_ID": CLIENT_ID, "OIDC_CLIENT_SECRET": CLIENT_SECRET}
        folder = tmp_path_factory.mktemp("harbour")
        with server_process(folder, KLERAI_STRATEGY="offline", OIDC_NAME="Harbour", **set_up) as server:
            yield server.url, fake


@pytest.mark.thorough
def test_a_new_person_comes_in_by_a_button(browser: Browser, harbour: tuple[str, OpenIdFake]) -> None:
    url, fake = harbour
    fake.visitor = replace(HARBOUR, email=new_email())
    context = browser.new_context(base_url=url, timezone_id="Europe/Berlin", viewport={"width": 390, "height": 800})
    there = Visit(context.new_page())
    there.open("/accounts/login/")
    assert not there.is_wider_than_the_window()
    assert not there.barriers()
    there.page.get_by_role("button", name="Continue with Harbour").click()
    there.page.get_by_role("link", name="Continue as Al Ice").click()
    there.page.get_by_role("heading", name="What would you like to know?").wait_for()
    person = Person.objects.get(email=fake.visitor.email)
    assert (person.name, person.time_zone) == ("Al Ice", "Europe/Berlin")
    there.open("/settings/")
    there.page.get_by_text(f"Signs you in as {person.email}.").wait_for()
    there.page.get_by_role("link", name="Set a password").wait_for()
    assert not there.barriers()
    there.check()
    context.close()
