"""What happens to every answer on its way out."""

from __future__ import annotations

from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from klerai.accounts.authentication import LIMITS
from klerai.accounts.sessions import note_session
from klerai.database import in_database


@sync_and_async_middleware
def note_sessions(get_response: Any) -> Any:
    """Note the session behind a page; programs' answers and files are left alone."""
    if iscoroutinefunction(get_response):

        async def noting_async(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = await get_response(request)
            if _is_page_of_a_session(request, response):
                await in_database(note_session, request)
            return response

        return noting_async

    def noting(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = get_response(request)
        if _is_page_of_a_session(request, response):
            note_session(request)
        return response

    return noting


@sync_and_async_middleware
def state_limits(get_response: Any) -> Any:
    """Tell a program beside every answer how many requests it has left."""
    if iscoroutinefunction(get_response):

        async def stating_async(request: HttpRequest) -> HttpResponseBase:
            return _with_limits(request, await get_response(request))

        return stating_async

    def stating(request: HttpRequest) -> HttpResponseBase:
        return _with_limits(request, get_response(request))

    return stating


def _with_limits(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    for name, value in request.META.get(LIMITS, {}).items():
        response[name] = value
    return response


def _is_page_of_a_session(request: HttpRequest, response: HttpResponseBase) -> bool:
    is_page = response.status_code == 200 and response.get("Content-Type", "").startswith("text/html")
    return is_page and settings.SESSION_COOKIE_NAME in request.COOKIES
