"""What every door to knowledge shares: refusals in the contract's words, rows in its shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import Http404
from rest_framework.generics import GenericAPIView
from rest_framework.response import Response

from billing.plans import plan_of
from chat.shortage import UPGRADE_URL
from klerai.accounts.models import Person
from klerai.api import ApiError, invalid
from retrieval.contents import chunk_counts
from retrieval.errors import (
    FileTooLarge,
    NameRefused,
    NoSuchDocument,
    NoSuchKnowledgeBase,
    QuotaPassed,
    RetrievalError,
    SharedIsReadOnly,
)
from retrieval.knowledge import Document, KnowledgeBase
from retrieval.quotas import Quota, kept_by

SHAPE_OF_BASE = {
    "type": "object",
    "required": ["slug", "name", "shared"],
    "properties": {
        "slug": {"type": "string"},
        "name": {"type": "string"},
        "shared": {"type": "boolean", "description": "Everyone reads it; only operators write it."},
    },
}
SHAPE_OF_DOCUMENT = {
    "type": "object",
    "required": ["id", "title", "external_id", "status", "progress", "error", "chunks", "bytes"],
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "title": {"type": "string"},
        "external_id": {"type": "string", "description": "Its id in the corpus it came from; empty for a file."},
        "status": {"type": "string", "enum": list(Document.Status.values)},
        "progress": {"type": "integer", "minimum": 0, "maximum": 100},
        "error": {"type": ["string", "null"], "description": "Why it failed, in a sentence."},
        "chunks": {"type": "integer", "description": "Passages it was cut into."},
        "bytes": {"type": "integer"},
    },
}


class KnowledgeView(GenericAPIView):  # type: ignore[type-arg]
    """A door whose refusals by the gate are answered as the contract words them."""

    def handle_exception(self, exc: Exception) -> Response:
        return super().handle_exception(as_api_error(exc) if isinstance(exc, RetrievalError) else exc)


def as_api_error(refusal: RetrievalError) -> Exception:
    """What to raise in a door: what may not be read does not exist."""
    match refusal:
        case NoSuchKnowledgeBase() | NoSuchDocument():
            return Http404()
        case SharedIsReadOnly():
            return ApiError("forbidden", str(refusal), status=403)
        case FileTooLarge():
            which, most = "bytes of a file", refusal.limit_bytes
            words = str(refusal)
            return ApiError("message_too_long", words, status=413, limit=which, used=None, max=most, resets_at=None)
        case QuotaPassed():
            return _quota_passed(refusal)
        case NameRefused():
            return invalid({refusal.field: [str(refusal)]})
        case _:
            return ApiError("invalid", str(refusal), status=400, fields={})


def quota_of(person: Person) -> Quota:
    """What the person's plan has room for."""
    terms = plan_of(person)
    return Quota(terms.title, terms.most_documents, terms.most_bytes)


def _quota_passed(refusal: QuotaPassed) -> ApiError:
    kept = kept_by(refusal.person)
    return ApiError(
        "message_too_long",
        str(refusal),
        status=413,
        limit=refusal.limit,
        used=kept.documents if refusal.limit == "documents" else kept.bytes,
        max=refusal.most,
        resets_at=None,
        upgrade_url=UPGRADE_URL,
    )


def knowledge_base_json(knowledge_base: KnowledgeBase) -> dict[str, Any]:
    return {
        "slug": knowledge_base.slug,
        "name": knowledge_base.name,
        "shared": knowledge_base.owner_id is None,
    }


def documents_json(documents: Sequence[Document]) -> list[dict[str, Any]]:
    chunks = chunk_counts(documents)
    return [
        {
            "id": str(document.pk),
            "title": document.title,
            "external_id": document.external_id,
            "status": document.status,
            "progress": document.progress,
            "error": document.error or None,
            "chunks": chunks.get(document.pk, 0),
            "bytes": document.bytes,
        }
        for document in documents
    ]
