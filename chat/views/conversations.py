"""Conversations over REST."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chat.errors import Refusal
from chat.models import Conversation, Run
from chat.profiles import DEFAULT_MODE, PROFILES
from chat.queries import conversation_of, conversations_of
from chat.shapes import conversation_json, thread_json
from chat.vault import vault
from chat.views.operation_schema import refused
from chat.views.runs import as_api_error
from klerai.accounts.authentication import requester
from klerai.api import ApiError
from klerai.json_schema import named
from klerai.pagination import PAGE, NewestFirst, page_of
from retrieval.web_results import forget_conversation


class ConversationChange(serializers.Serializer[Any]):
    """What a person may set of a conversation; everything else is left as it is."""

    title = serializers.CharField(max_length=200, required=False, allow_blank=True, trim_whitespace=True)
    mode = serializers.ChoiceField(choices=list(PROFILES), required=False)
    pinned = serializers.BooleanField(required=False, source="is_pinned")
    archived = serializers.BooleanField(required=False, source="is_archived")


class ConversationShape(serializers.BaseSerializer[Conversation]):
    def to_representation(self, instance: Conversation) -> dict[str, Any]:
        return conversation_json(instance)


class ByUpdate(NewestFirst):
    ordering = ("-updated_at", "-id")


class Conversations(GenericAPIView):  # type: ignore[type-arg]
    """The person's conversations, and a new empty one."""

    pagination_class = ByUpdate
    serializer_class = ConversationShape

    def get_queryset(self) -> QuerySet[Conversation]:
        found = conversations_of(requester(self.request))
        words = self.request.query_params.get("q", "").strip()[:200].replace("\x00", "")
        if words:
            found = found.filter(Q(title__icontains=words) | Q(items__content__icontains=words)).distinct()
        return found

    @extend_schema(
        operation_id="conversations",
        parameters=[OpenApiParameter("q", str, description="Words in the title or in what was said."), *PAGE],
        responses={200: page_of(named("Conversation"))},
    )
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response([conversation_json(conversation) for conversation in page or ()])

    @extend_schema(request=ConversationChange, responses={201: named("Conversation")})
    def post(self, request: Request) -> Response:
        change = _change(request)
        made = Conversation.objects.create(person=requester(request), **{"mode": DEFAULT_MODE, **change})
        return Response(conversation_json(made), status=201)


class ConversationDetail(GenericAPIView):  # type: ignore[type-arg]
    """One conversation with the messages of the branch shown."""

    serializer_class = ConversationShape

    @extend_schema(operation_id="conversation", responses={200: named("Thread"), **refused(410)})
    def get(self, request: Request, conversation_id: UUID) -> Response:
        try:
            return Response(thread_json(_found(request, conversation_id)))
        except Refusal as refusal:
            raise as_api_error(refusal) from refusal

    @extend_schema(request=ConversationChange, responses={200: named("Conversation")})
    def patch(self, request: Request, conversation_id: UUID) -> Response:
        conversation, change = _found(request, conversation_id), _change(request)
        for name, value in change.items():
            setattr(conversation, name, value)
        conversation.save(update_fields=list(change))
        return Response(conversation_json(conversation))

    @extend_schema(responses={204: None, **refused(409)})
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        with transaction.atomic():
            conversation = conversations_of(requester(request)).select_for_update().filter(pk=conversation_id).first()
            if conversation is None:
                raise Http404
            live = conversation.runs.filter(state__in=Run.LIVE).first()
            if live is not None:
                raise ApiError(
                    "conversation_busy",
                    "This conversation is still answering a question. Stop it first; nothing was deleted.",
                    status=409,
                    run_id=str(live.run_id),
                )
            forget_conversation(conversation.pk)
            vault().forget(conversation.runs.values_list("pk", flat=True))
            conversation.delete()
        return Response(status=204)


def _found(request: Request, conversation_id: UUID) -> Conversation:
    conversation = conversation_of(requester(request), conversation_id)
    if conversation is None:
        raise Http404
    return conversation


def _change(request: Request) -> dict[str, Any]:
    change = ConversationChange(data=request.data)
    change.is_valid(raise_exception=True)
    return dict(change.validated_data)


urlpatterns = [
    path("api/conversations", Conversations.as_view(), name="api_conversations"),
    path("api/conversations/<uuid:conversation_id>", ConversationDetail.as_view(), name="api_conversation"),
]
