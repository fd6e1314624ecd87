"""The API's manners: one error body, strict JSON in, lists with a cursor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

BODY_LIMIT = 256_000
CHALLENGE = 'Bearer realm="KlerAI"'
NOT_FOUND_MESSAGE = "There is nothing here, or it is not yours."
UNAUTHENTICATED_MESSAGE = "Sign in first, or send a valid key as “Authorization: Bearer kl_…”. Nothing was charged."
FORBIDDEN_MESSAGE = "This page is out of date. Reload it and send again. Nothing was charged."
INVALID_MESSAGE = "Some values were not accepted; `fields` says which and why. Nothing was charged."


class ApiError(Exception):
    """A refusal as the contract words it; raised in a door, answered by the door's edge."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int,
        headers: Mapping[str, str] | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.headers = dict(headers or {})
        self.details = details

    def as_response(self) -> JsonResponse:
        response = error_json(self.code, self.message, self.status, **self.details)
        for name, value in self.headers.items():
            response[name] = value
        return response


def error_json(code: str, message: str, status: int, **details: Any) -> JsonResponse:
    return JsonResponse(_error_body(code, message, **details), status=status)


def invalid(fields: Mapping[str, Iterable[str]]) -> ApiError:
    """What to raise when values of a body or a query are wrong."""
    listed = {name: list(problems) for name, problems in fields.items()}
    return ApiError("invalid", INVALID_MESSAGE, status=400, fields=listed)


def not_found_json() -> JsonResponse:
    """The same bytes for what does not exist and for what belongs to somebody else."""
    return error_json("not_found", NOT_FOUND_MESSAGE, 404)


def not_allowed(methods: Iterable[str]) -> JsonResponse:
    allowed = ", ".join(sorted(methods))
    response = error_json("unsupported", f"This address takes {allowed} only. Nothing was changed.", 405)
    response["Allow"] = allowed
    return response


def too_large_json(limit: int = BODY_LIMIT, *, used: int | None = None) -> JsonResponse:
    return too_large(limit, used=used).as_response()


def too_large(limit: int = BODY_LIMIT, *, used: int | None = None) -> ApiError:
    """`used` is how many bytes there are, as far as it is known."""
    message = f"The request is larger than {limit // 1000} kB. Nothing was charged; send less at once."
    which = "bytes of a request"
    return ApiError("message_too_long", message, status=413, limit=which, used=used, max=limit, resets_at=None)


def read_json(request: HttpRequest, *, limit: int = BODY_LIMIT) -> dict[str, Any]:
    """The JSON object in the body, of which never more than `limit` bytes are read.

    Raises ApiError: 413 over the limit, 415 for another content type, 400 `invalid` for anything
    that is not one JSON object. Lone surrogates pass: only the reader of a field can name it.
    """
    if request.content_type != "application/json":
        raise ApiError("unsupported", "Send JSON with the header “Content-Type: application/json”.", status=415)
    declared = int(request.META.get("CONTENT_LENGTH") or 0)
    if declared > limit:
        raise too_large(limit, used=declared)
    raw = request.read(limit + 1)
    if len(raw) > limit:
        raise too_large(limit)
    try:
        body = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ApiError("invalid", "The body is not valid JSON. Nothing was charged.", status=400, fields={}) from error
    if not isinstance(body, dict):
        raise ApiError("invalid", "The body must be a JSON object. Nothing was charged.", status=400, fields={})
    return body


def error_response(error: Exception, context: Mapping[str, Any]) -> HttpResponse | Response | None:
    """DRF's exceptions in the contract's words. None lets Django answer, which is a bug's 500."""
    match error:
        case ApiError():
            return error.as_response()
        case exceptions.ValidationError():
            return _drf_error("invalid", INVALID_MESSAGE, error, fields=_fields(error.detail))
        case exceptions.ParseError():
            return _drf_error("invalid", "The body is not valid JSON. Nothing was charged.", error, fields={})
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return _drf_error("unauthenticated", UNAUTHENTICATED_MESSAGE, error)
        case exceptions.PermissionDenied():
            return _drf_error("forbidden", str(error.detail), error)
        case DjangoPermissionDenied():
            return error_json("forbidden", "This is not yours to do. Nothing was changed.", 403)
        case Http404() | exceptions.NotFound():
            return not_found_json()
        case exceptions.Throttled():
            return _throttled(error)
        case RequestDataTooBig():
            return too_large_json()
        case exceptions.APIException() if error.status_code < 500:
            return _drf_error("unsupported", str(error.detail), error)
    return None


def _throttled(error: exceptions.Throttled) -> JsonResponse:
    seconds = int(getattr(error, "wait", None) or 1)
    response = error_json("rate_limited", f"Too many requests; try again in {seconds} s. Nothing was charged.", 429)
    response["Retry-After"] = str(seconds)
    return response


def _drf_error(code: str, message: str, error: exceptions.APIException, **details: Any) -> JsonResponse:
    response = error_json(code, message, error.status_code, **details)
    if challenge := getattr(error, "auth_header", None):
        response["WWW-Authenticate"] = challenge
    return response


def _fields(detail: Any, prefix: str = "") -> dict[str, list[str]]:
    """DRF's nested detail as dotted names, so that a form can put each sentence under its field."""
    match detail:
        case Mapping():
            parts = [_fields(value, f"{prefix}.{name}" if prefix else str(name)) for name, value in detail.items()]
        case list() if any(isinstance(item, Mapping) for item in detail):
            parts = [_fields(item, f"{prefix}.{place}") for place, item in enumerate(detail) if item]
        case list():
            parts = [{prefix or "body": [str(item) for item in detail]}]
        case _:
            parts = [{prefix or "body": [str(detail)]}]
    return {name: problems for part in parts for name, problems in part.items()}


def _error_body(code: str, message: str, **details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **details}}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
