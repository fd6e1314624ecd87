"""Knowledge bases over REST."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, QuerySet, Value, When
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.views.knowledge import SHAPE_OF_BASE, KnowledgeView, knowledge_base_json
from klerai.accounts.authentication import requester
from klerai.pagination import PAGE, NewestFirst, page_of
from retrieval.bases import NAME_CHARACTERS, SLUG_CHARACTERS, delete_knowledge_base, make_knowledge_base, rename
from retrieval.knowledge import KnowledgeBase, knowledge_bases_of, read, written


class NewKnowledgeBase(serializers.Serializer[Any]):
    """A name; the slug is made from it unless one is given."""

    name = serializers.CharField(max_length=NAME_CHARACTERS, required=False)
    slug = serializers.SlugField(max_length=SLUG_CHARACTERS, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError({"name": ["Give it a name."]})
        return {"name": attrs.get("name") or attrs["slug"], "slug": attrs.get("slug", "")}


class NewName(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=NAME_CHARACTERS)


class KnowledgeBaseShape(serializers.BaseSerializer[KnowledgeBase]):
    def to_representation(self, instance: KnowledgeBase) -> dict[str, Any]:
        return knowledge_base_json(instance)


class OwnBeforeShared(NewestFirst):
    ordering = ("is_shared", "-created_at", "-id")  # type: ignore[assignment]  # of any length at run time


class KnowledgeBases(KnowledgeView):
    """All a person may read, their own before the shared ones, and a new one of their own."""

    pagination_class = OwnBeforeShared
    serializer_class = KnowledgeBaseShape

    def get_queryset(self) -> QuerySet[KnowledgeBase]:
        is_shared = Case(When(owner=None, then=Value(1)), default=Value(0))
        return knowledge_bases_of(requester(self.request)).annotate(is_shared=is_shared)

    @extend_schema(operation_id="knowledge_bases", parameters=PAGE, responses={200: page_of(SHAPE_OF_BASE)})
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response([knowledge_base_json(each) for each in page or ()])

    @extend_schema(request=NewKnowledgeBase, responses={201: SHAPE_OF_BASE})
    def post(self, request: Request) -> Response:
        wanted = NewKnowledgeBase(data=request.data)
        wanted.is_valid(raise_exception=True)
        made = make_knowledge_base(requester(request), **wanted.validated_data)
        return Response(knowledge_base_json(made), status=201)


class KnowledgeBaseDetail(KnowledgeView):
    """One knowledge base: read, named anew, deleted with all its documents."""

    serializer_class = KnowledgeBaseShape

    @extend_schema(operation_id="knowledge_base", responses={200: SHAPE_OF_BASE})
    def get(self, request: Request, slug: str) -> Response:
        return Response(knowledge_base_json(read(requester(request), slug)))

    @extend_schema(request=NewName, responses={200: SHAPE_OF_BASE})
    def patch(self, request: Request, slug: str) -> Response:
        knowledge_base = written(requester(request), slug)
        wanted = NewName(data=request.data)
        wanted.is_valid(raise_exception=True)
        rename(knowledge_base, wanted.validated_data["name"])
        return Response(knowledge_base_json(knowledge_base))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        delete_knowledge_base(written(requester(request), slug))
        return Response(status=204)


urlpatterns = [
    path("api/knowledge-bases", KnowledgeBases.as_view(), name="api_knowledge_bases"),
    path("api/knowledge-bases/<slug:slug>", KnowledgeBaseDetail.as_view(), name="api_knowledge_base"),
]
