"""The fake services of the web as a test holds them: running, and the settings pointed at them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.fakes.open_meteo_server import OpenMeteoFake
from tests.fakes.outside import running
from tests.fakes.perplexity_server import PerplexityFake

KEY = "pplx-a-key-nobody-may-read"


@pytest.fixture
def perplexity_fake(settings: Settings) -> Iterator[PerplexityFake]:
    with running(PerplexityFake()) as fake:
        settings.PERPLEXITY_API_KEY, settings.PERPLEXITY_BASE_URL = KEY, fake.url
        yield fake


@pytest.fixture
def open_meteo_fake(settings: Settings) -> Iterator[OpenMeteoFake]:
    with running(OpenMeteoFake()) as fake:
        settings.OPEN_METEO_BASE_URL = settings.OPEN_METEO_GEOCODING_BASE_URL = fake.url
        yield fake
