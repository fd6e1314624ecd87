"""Documents over REST: dropped in, looked at, tried again, taken back, thrown away."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.utils.http import content_disposition_header
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from chat.views.knowledge import SHAPE_OF_DOCUMENT, KnowledgeView, as_api_error, documents_json, quota_of
from klerai.accounts.authentication import for_person, requester
from klerai.accounts.models import Person
from klerai.api import ApiError, invalid
from klerai.database import in_database
from klerai.pagination import PAGE, NewestFirst, page_of
from klerai.uploads import note_length
from retrieval.errors import RetrievalError
from retrieval.ingestion.accept import delete_document, retry_document
from retrieval.ingestion.originals import original_piece
from retrieval.ingestion.uploads import accept_files
from retrieval.knowledge import Document, documents_in, documents_listed, written, written_document

UPLOAD = {
    "multipart/form-data": {
        "type": "object",
        "required": ["file"],
        "properties": {"file": {"type": "array", "items": {"type": "string", "format": "binary"}}},
    }
}
ACCEPTED = {
    "type": "object",
    "required": ["documents"],
    "properties": {
        "documents": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "status"],
                "properties": {name: SHAPE_OF_DOCUMENT["properties"][name] for name in ("id", "status")},  # type: ignore[index]
            },
        }
    },
}


class DocumentShape(serializers.BaseSerializer[Document]):
    def to_representation(self, instance: Document) -> dict[str, Any]:
        (shape,) = documents_json([instance])
        return shape


class Documents(KnowledgeView):
    """The documents of a knowledge base, and new ones."""

    pagination_class = NewestFirst
    parser_classes = [MultiPartParser]
    serializer_class = DocumentShape

    def get_queryset(self) -> QuerySet[Document]:
        return documents_listed(requester(self.request), self.kwargs["slug"]).defer("text")

    @extend_schema(operation_id="documents", parameters=PAGE, responses={200: page_of(SHAPE_OF_DOCUMENT)})
    def get(self, request: Request, slug: str) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(documents_json(page or ()))

    @extend_schema(request=UPLOAD, responses={202: ACCEPTED})
    def post(self, request: Request, slug: str) -> Response:
        written(requester(request), slug)
        if request._request.content_type != "multipart/form-data":
            raise ApiError("unsupported", "Send files in the field “file”, as multipart/form-data.", status=415)
        note_length(request._request)
        taken = accept_files(requester(request), slug, request._request, quota=quota_of(requester(request)))
        if not taken:
            raise invalid({"file": ["Send at least one file in the field “file”, as multipart/form-data."]})
        documents = [{"id": str(each.document.pk), "status": each.document.status} for each in taken]
        return Response({"documents": documents}, status=202)


class DocumentDetail(KnowledgeView):
    """One document: how far it is, and deleting it."""

    serializer_class = DocumentShape

    @extend_schema(operation_id="document", responses={200: SHAPE_OF_DOCUMENT})
    def get(self, request: Request, slug: str, document_id: UUID) -> Response:
        (shape,) = documents_json([found_in(requester(request), slug, document_id)])
        return Response(shape)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, document_id: UUID) -> Response:
        person = requester(request)
        found_in(person, slug, document_id)
        delete_document(written_document(person, document_id))
        return Response(status=204)


class DocumentRetry(KnowledgeView):
    """A document that failed, queued again."""

    serializer_class = DocumentShape

    @extend_schema(request=None, responses={202: SHAPE_OF_DOCUMENT})
    def post(self, request: Request, slug: str, document_id: UUID) -> Response:
        person = requester(request)
        found_in(person, slug, document_id)
        (shape,) = documents_json([retry_document(written_document(person, document_id))])
        return Response(shape, status=202)


def found_in(person: Person, slug: str, document_id: UUID) -> Document:
    """The document without its text, if `slug` reads it. Raises Http404 and NoSuchKnowledgeBase."""
    found = documents_in(person, slug).defer("text").filter(pk=document_id).first()
    if found is None:
        raise Http404
    return found


@for_person("GET")
async def original(request: HttpRequest, person: Person, slug: str, document_id: UUID) -> HttpResponseBase:
    """The file as it was given, a piece at a time, only ever to be saved."""
    try:
        document = await in_database(found_in, person, slug, document_id)
    except RetrievalError as refusal:
        raise as_api_error(refusal) from refusal
    first = await in_database(original_piece, document, 0)
    if first is None:
        raise Http404
    name = document.source.rpartition("/")[2] or f"{document.title}.txt"
    headers = {
        "Content-Disposition": content_disposition_header(True, name.replace("\n", " ")) or "attachment",
        "Content-Type": "application/octet-stream",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
        "Cache-Control": "private, no-store",
    }
    return StreamingHttpResponse(_pieces(document, first), headers=headers)


async def _pieces(document: Document, first: bytes) -> AsyncGenerator[bytes, None]:
    piece: bytes | None = first
    position = 0
    while piece is not None:
        yield piece
        position += 1
        piece = await in_database(original_piece, document, position)


_DOCUMENTS = "api/knowledge-bases/<slug:slug>/documents"
urlpatterns = [
    path(_DOCUMENTS, Documents.as_view(), name="api_documents"),
    path(f"{_DOCUMENTS}/<uuid:document_id>", DocumentDetail.as_view(), name="api_document"),
    path(f"{_DOCUMENTS}/<uuid:document_id>/retry", DocumentRetry.as_view(), name="api_document_retry"),
    path(f"{_DOCUMENTS}/<uuid:document_id>/original", original, name="api_document_original"),
]
