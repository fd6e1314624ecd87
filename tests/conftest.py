"""What every test may ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.database import OpenConnections, made_for_this_process
from tests.fakes.anthropic import anthropic_fake as anthropic_fake
from tests.fakes.anthropic import anthropic_server as anthropic_server
from tests.fakes.context7 import context7_fake as context7_fake
from tests.fakes.embedding import gemini_fake as gemini_fake
from tests.fakes.embedding import ollama_fake as ollama_fake
from tests.fakes.embedding import voyage_fake as voyage_fake
from tests.fakes.openid import openid_fake as openid_fake
from tests.fakes.stripe import stripe_fake as stripe_fake
from tests.fakes.stripe import stripe_server as stripe_server
from tests.fakes.web import open_meteo_fake as open_meteo_fake
from tests.fakes.web import perplexity_fake as perplexity_fake
from tests.harness.scenario import pytest_runtest_makereport as pytest_runtest_makereport
from tests.harness.scenario import pytest_terminal_summary as pytest_terminal_summary
from tests.harness.scenario import scenario as scenario
from tests.serving import server as server
from tests.serving import vendor_server as vendor_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("KLERAI_THOROUGH") == "1":
        return
    later = pytest.mark.skip(reason="thorough: runs with KLERAI_THOROUGH=1, as in CI")
    for item in items:
        if item.get_closest_marker("thorough"):
            item.add_marker(later)


@pytest.fixture(scope="session")
def django_db_setup() -> Iterator[None]:
    """A database of this process alone, migrated as the owner and used as the application's role."""
    with made_for_this_process():
        yield


@pytest.fixture(scope="session", autouse=True)
def database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[OpenConnections]:
    """Real commits, seen by every thread; nothing is ever rolled back or flushed, so a test makes its own people."""
    with django_db_blocker.unblock(), OpenConnections() as connections:
        yield connections


@pytest.fixture(autouse=True)
def _no_connection_outlives_its_thread(database: OpenConnections) -> Iterator[None]:
    yield
    database.close_abandoned()
