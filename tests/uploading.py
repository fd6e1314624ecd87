"""Files as people send them, and the worker's part done at once."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
from asgiref.sync import async_to_sync

from retrieval.ingestion.pipeline import process
from retrieval.models import Document, KnowledgeBase
from tests.harness.doors import Visitor

DEFAULT = "/api/knowledge-bases/default_kb"
GUIDE = """# Guide

Everything about otters.

## Rivers

Otters sleep afloat, holding hands, in slow rivers.

## Lakes

A heron stands in the reed and waits.
"""


def send(there: Visitor, *files: tuple[str, str | bytes], base: str = DEFAULT) -> httpx.Response:
    """Upload files of these names and contents."""
    parts = [("file", (name, data if isinstance(data, bytes) else data.encode())) for name, data in files]
    return there.http.post(f"{base}/documents", files=parts)


def added(there: Visitor, name: str = "guide.md", text: str | bytes = GUIDE, base: str = DEFAULT) -> str:
    """The id of a document that is uploaded and read."""
    response = send(there, (name, text), base=base)
    assert response.status_code == 202, response.text
    document_id = str(response.json()["documents"][0]["id"])
    read(document_id)
    return document_id


def read(document_id: str) -> None:
    """What the worker does."""
    async_to_sync(process)(uuid.UUID(document_id))


def shared_base(name: str = "Otter guide") -> KnowledgeBase:
    """One that everybody reads and nobody but operators writes, with one document."""
    slug = f"shared-{uuid.uuid4().hex[:12]}"
    return KnowledgeBase.objects.create(owner=None, slug=slug, name=name)


def shared_document(base: KnowledgeBase, text: str = "Otters for everyone.") -> Document:
    return Document.objects.create(
        knowledge_base=base, title="Otters", sha256=uuid.uuid4().hex, bytes=len(text), text=text, status="ready"
    )


def listed(there: Visitor, path: str = f"{DEFAULT}/documents") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = there.get(path).json()["results"]
    return found
