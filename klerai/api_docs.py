"""The page on which the API is read and tried. Its program comes from a Python package, none of it from elsewhere."""

from __future__ import annotations

from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe
from drf_spectacular.views import SpectacularAPIView

# Its icons are pictures inside its style sheet.
_POLICY = {"img-src": ["data:"]}


@require_safe
@csp_update(_POLICY)
def docs(request: HttpRequest) -> HttpResponse:
    return render(request, "api_docs.html")


urlpatterns = [
    path("api/schema/", SpectacularAPIView.as_view(permission_classes=[]), name="schema"),
    path("api/docs/", docs, name="docs"),
]
