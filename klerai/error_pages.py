"""What Django shows when a page fails: the contract's JSON under the API's paths, a page elsewhere."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from klerai.api import error_json, not_found_json

API_PATHS = ("/api/", "/v1/", "/webhooks/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_api(request):
        return error_json("invalid", "This request cannot be read. Nothing was charged.", 400, fields={})
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_api(request):
        return error_json("forbidden", "This is not yours to do. Nothing was changed.", 403)
    return defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return not_found_json() if _is_api(request) else defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    if _is_api(request):
        return error_json("internal", "Something broke on our side. Try again in a moment.", 500)
    return defaults.server_error(request)


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(API_PATHS)
