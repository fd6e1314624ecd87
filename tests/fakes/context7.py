"""The fake Context7 as a test holds it: running, with nothing kept of what it said before."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from retrieval.documentation.service import Context7
from retrieval.models import LibrarySearch, LibraryText, LibraryVectors
from tests.fakes.context7_server import Context7Fake, running_context7


@pytest.fixture
def context7_fake(settings: Settings) -> Iterator[Context7Fake]:
    for kept in (LibrarySearch, LibraryText, LibraryVectors):
        kept.objects.all().delete()
    with running_context7() as fake:
        settings.CONTEXT7 = Context7(fake.url, f"ctx7sk-{uuid.uuid4()}")
        yield fake
