"""URLs with one small door of each kind, so that tests of a door do not depend on what lies behind it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.urls import include, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from klerai import urls
from klerai.accounts.authentication import for_person
from klerai.accounts.models import ApiKey, Person
from klerai.api import ApiError, read_json
from klerai.pagination import NewestFirst


@for_person("GET", "POST")
async def async_door(request: HttpRequest, person: Person) -> JsonResponse:
    body = read_json(request) if request.method == "POST" else {}
    return JsonResponse({"person": str(person.pk), "body": body})


@for_person("GET")
async def busy_door(request: HttpRequest, person: Person) -> JsonResponse:
    raise ApiError("conversation_busy", "Busy.", status=409, headers={"Retry-After": "3"}, run_id="r1")


class Note(serializers.Serializer[Any]):
    words = serializers.CharField(max_length=5)
    lines = serializers.ListField(child=serializers.IntegerField(), required=False)


class DrfDoor(APIView):
    def get(self, request: Request) -> Response:
        assert isinstance(request.user, Person)
        return Response({"person": str(request.user.pk)})

    def post(self, request: Request) -> Response:
        Note(data=request.data).is_valid(raise_exception=True)
        return self.get(request)


class KeyList(APIView):
    @extend_schema(responses=None)
    def get(self, request: Request) -> Response:
        pages = NewestFirst()
        rows = pages.paginate_queryset(ApiKey.objects.filter(person=request.user), request, self)
        return pages.get_paginated_response([key.name for key in rows or []])


def broken(request: HttpRequest) -> JsonResponse:
    raise RuntimeError("a bug")


urlpatterns = [
    path("api/probe/async", async_door),
    path("api/probe/busy", busy_door),
    path("api/probe/drf", DrfDoor.as_view()),
    path("api/probe/keys", KeyList.as_view()),
    path("api/probe/broken", broken),
    path("broken", broken),
    path("local/mail/", include("klerai.local_mail")),
    *urls.urlpatterns,
]
handler400 = urls.handler400
handler403 = urls.handler403
handler404 = urls.handler404
handler500 = urls.handler500
