"""The one authentication, with a face for DRF and a face for plain async views."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.middleware.csrf import CsrfViewMiddleware
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from klerai.accounts.access import Access, in_words, scopes_for
from klerai.accounts.errors import Forbidden, TooManyRequests, Unauthenticated
from klerai.accounts.logins import KeyLogin, Login, SessionLogin, login_of
from klerai.accounts.models import Person
from klerai.accounts.request_limits import KEY, count_request, headers_of, refuse_too_many
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

if TYPE_CHECKING:  # it imports this module while it loads
    from rest_framework.views import APIView

LIMITS = "klerai.request_limits"
P = ParamSpec("P")
AsyncView = Callable[..., Coroutine[Any, Any, HttpResponseBase]]
PersonView = Callable[Concatenate[HttpRequest, Person, P], Awaitable[HttpResponseBase]]


def login_of_request(request: HttpRequest) -> Login:
    """Whose request it is; one by key is counted, and what it is told of that is left for the way out.

    Raises Unauthenticated, Forbidden for an unsafe request by session without its CSRF token, and TooManyRequests.
    """
    login = login_of(request.headers.get("Authorization", ""), request.session)
    if isinstance(login, SessionLogin):
        _refuse_forgery(request)
        return login
    now = timezone.now()
    counted = count_request(login, now=now)
    request.META[LIMITS] = headers_of(counted, now=now)
    refuse_too_many(counted, now=now)
    return login


def for_person(*methods: str, opens_to: Sequence[Access] = ()) -> Callable[[PersonView[P]], AsyncView]:
    """Make an async view a door of the API.

    The view gets the person as its second argument, is called for `methods` only, and answers
    refusals, `ApiError` and `Http404` as the contract's JSON. A key needs one of the scopes in
    `opens_to`, or the one that the method asks for. Django's own CSRF check is replaced by ours,
    which asks sessions only.
    """

    def decorate(view: PersonView[P]) -> AsyncView:
        @csrf_exempt
        @wraps(view)
        async def door(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if request.method not in methods:
                return not_allowed(methods)
            try:
                login: Login = await in_database(login_of_request, request)
                refuse_scope(login, opens_to or scopes_for(request.method))
                return await view(request, login.person, *args, **kwargs)
            except Unauthenticated:
                return unauthenticated_json()
            except Forbidden as error:
                return error_json("forbidden", error.reason, 403)
            except TooManyRequests as error:
                return too_many_requests(error).as_response()
            except ApiError as error:
                return error.as_response()
            except Http404:
                return not_found_json()
            except RequestDataTooBig:
                return too_large_json()

        return door

    return decorate


def refuse_scope(login: Login, opens_to: Sequence[Access]) -> None:
    """Raises Forbidden for a key that has none of these scopes."""
    if not login.may(opens_to):
        raise Forbidden(
            f"This key may not do that: it lacks the scope {in_words(opens_to)}. "
            "Make a key that has it in the settings. Nothing was charged."
        )


def unauthenticated_json() -> HttpResponse:
    response = error_json("unauthenticated", UNAUTHENTICATED_MESSAGE, 401)
    response["WWW-Authenticate"] = CHALLENGE
    return response


def too_many_requests(error: TooManyRequests) -> ApiError:
    """The contract's words for a limit that is passed."""
    span = {60: "a minute", 3600: "an hour"}.get(error.window_seconds, f"in {error.window_seconds} s")
    whose = "with this key" if error.limit == KEY else "with all your keys"
    return ApiError(
        "rate_limited",
        f"{error.most:,} requests {span} {whose}; try again in {error.wait_seconds} s. Nothing was charged.",
        status=429,
        headers={"Retry-After": str(error.wait_seconds)},
        limit=error.limit,
        used=error.most,
        max=error.most,
        resets_at=error.resets_at.isoformat(),
    )


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
        except TooManyRequests as error:
            raise too_many_requests(error) from error
        return login.person, login

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


class ByScope(BasePermission):
    """For DRF views: somebody, with a key that has one of the scopes in the view's `opens_to`, or the method's."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.auth, KeyLogin | SessionLogin):
            return False
        try:
            refuse_scope(request.auth, scopes_of_view(view, request.method))
        except Forbidden as error:
            raise PermissionDenied(error.reason) from error
        return True


def scopes_of_view(view: APIView, method: str | None) -> Sequence[Access]:
    opens_to: Sequence[Access] = getattr(view, "opens_to", ())
    return opens_to or scopes_for(method)


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
