"""The fake embedding services as a test holds them: running, and the settings pointed at them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.fakes.gemini_server import GeminiFake
from tests.fakes.ollama_server import OllamaFake
from tests.fakes.outside import running
from tests.fakes.voyage_server import VoyageFake

KEY = "key-that-nobody-may-read"


@pytest.fixture
def voyage_fake(settings: Settings) -> Iterator[VoyageFake]:
    with running(VoyageFake()) as fake:
        settings.VOYAGE_API_KEY, settings.VOYAGE_BASE_URL = KEY, f"{fake.url}/v1"
        yield fake


@pytest.fixture
def gemini_fake(settings: Settings) -> Iterator[GeminiFake]:
    with running(GeminiFake()) as fake:
        settings.GEMINI_API_KEY, settings.GEMINI_BASE_URL = KEY, fake.url
        yield fake


@pytest.fixture
def ollama_fake(settings: Settings) -> Iterator[OllamaFake]:
    with running(OllamaFake()) as fake:
        settings.OLLAMA_BASE_URL = fake.url
        yield fake
