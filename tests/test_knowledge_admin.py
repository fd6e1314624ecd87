"""Knowledge in the admin: counts, status and reasons for operators, no words of anybody."""

from __future__ import annotations

import uuid

import pytest
from pytest_django import Settings

from retrieval.models import Document, KnowledgeBase
from tests.people import make_alice, make_person, sign_in
from tests.uploading import shared_base, shared_document

PAGES = ("/admin/retrieval/knowledgebase/", "/admin/retrieval/document/")


@pytest.fixture(autouse=True)
def local(settings: Settings) -> None:
    settings.LOCAL_MODE = True


def hers(error: str = "") -> Document:
    base = KnowledgeBase.objects.create(owner=make_alice(), slug="plans", name="Secret plans")
    return Document.objects.create(
        knowledge_base=base,
        title="Secret title",
        sha256=uuid.uuid4().hex,
        bytes=12,
        text="Secret words",
        status="failed" if error else "ready",
        error=error,
    )


def test_operators_see_what_failed_and_why_and_nothing_that_was_written() -> None:
    document = hers("The PDF is damaged.")
    boss = sign_in(make_person("boss", is_admin=True))
    email = document.knowledge_base.owner.email  # type: ignore[union-attr]
    for page in (
        f"{PAGES[1]}?q={email}",
        f"{PAGES[1]}{document.pk}/change/",
        f"{PAGES[0]}?q={email}",
        f"{PAGES[0]}{document.knowledge_base_id}/change/",
    ):
        text = boss.get(page).content.decode()
        assert email in text, page
        assert "Secret" not in text, page
        assert 'name="_save"' not in text
    assert "The PDF is damaged." in boss.get(f"{PAGES[1]}?status__exact=failed&q={email}").content.decode()


def test_what_everyone_reads_is_named() -> None:
    base = shared_base(name := f"Otter guide {uuid.uuid4().hex[:6]}")
    document = shared_document(base)
    boss = sign_in(make_person("boss", is_admin=True))
    assert name in boss.get(f"{PAGES[0]}{base.pk}/change/").content.decode()
    assert "Otters" in boss.get(f"{PAGES[1]}{document.pk}/change/").content.decode()


def test_people_who_are_not_staff_see_nothing_of_it() -> None:
    for page in PAGES:
        assert sign_in(make_alice()).get(page, follow=True).status_code == 403
