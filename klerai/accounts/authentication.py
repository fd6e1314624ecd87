"""The one authentication, with a face for DRF and a face for plain async views."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.middleware.csrf import CsrfViewMiddleware
from django.views.decorators.csrf import csrf_exempt
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from klerai.accounts.errors import Forbidden, Unauthenticated
from klerai.accounts.logins import Login, SessionLogin, login_of
from klerai.accounts.models import Person
from klerai.api import (
    CHALLENGE,
    FORBIDDEN_MESSAGE,
    UNAUTHENTICATED_MESSAGE,
    ApiError,
    error_json,
    not_allowed,
    not_found_json,
    too_large_json,
)
from klerai.database import in_database

P = ParamSpec("P")
AsyncView = Callable[..., Coroutine[Any, Any, HttpResponseBase]]
PersonView = Callable[Concatenate[HttpRequest, Person, P], Awaitable[HttpResponseBase]]


def login_of_request(request: HttpRequest) -> Login:
    """Raises Unauthenticated, or Forbidden for an unsafe request by session without its CSRF token."""
    login = login_of(request.headers.get("Authorization", ""), request.session)
    if isinstance(login, SessionLogin):
        _refuse_forgery(request)
    return login


async def authenticate(request: HttpRequest) -> Person:
    """Like `login_of_request`, for async views."""
    login: Login = await in_database(login_of_request, request)
    return login.person


def for_person(*methods: str) -> Callable[[PersonView[P]], AsyncView]:
    """Make an async view a door of the API.

    The view gets the person as its second argument, is called for `methods` only, and answers
    refusals, `ApiError` and `Http404` as the contract's JSON. Django's own CSRF check is replaced
    by ours, which asks sessions only.
    """

    def decorate(view: PersonView[P]) -> AsyncView:
        @csrf_exempt
        @wraps(view)
        async def door(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if request.method not in methods:
                return not_allowed(methods)
            try:
                person = await authenticate(request)
                return await view(request, person, *args, **kwargs)
            except Unauthenticated:
                return unauthenticated_json()
            except Forbidden as error:
                return error_json("forbidden", error.reason, 403)
            except ApiError as error:
                return error.as_response()
            except Http404:
                return not_found_json()
            except RequestDataTooBig:
                return too_large_json()

        return door

    return decorate


def unauthenticated_json() -> HttpResponse:
    response = error_json("unauthenticated", UNAUTHENTICATED_MESSAGE, 401)
    response["WWW-Authenticate"] = CHALLENGE
    return response


class PersonAuthentication(BaseAuthentication):
    """For DRF views: nobody is None, so that public endpoints may exist; a bad key is always 401."""

    def authenticate(self, request: Request) -> tuple[Person, Login] | None:
        http_request: HttpRequest = request._request
        try:
            login = login_of_request(http_request)
        except Unauthenticated as error:
            if "Authorization" in http_request.headers:
                raise AuthenticationFailed(UNAUTHENTICATED_MESSAGE) from error
            return None
        except Forbidden as error:
            raise PermissionDenied(error.reason) from error
        return login.person, login

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


def _unprotected(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def requester(request: Request) -> Person:
    """Who asks, behind a DRF view that lets nobody else in."""
    assert isinstance(request.user, Person)
    return request.user


class _ForgeryCheck(CsrfViewMiddleware):
    """Django's check, answering with the reason in place of a page."""

    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def _refuse_forgery(request: HttpRequest) -> None:
    if request.content_type == "multipart/form-data":
        # The token of an upload stands in its header: nobody reads hundreds of megabytes to look for one in there.
        request.POST = QueryDict()
    check = _ForgeryCheck(_unprotected)
    check.process_request(request)
    if check.process_view(request, _unprotected, (), {}):
        raise Forbidden(FORBIDDEN_MESSAGE)
