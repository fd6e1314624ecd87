"""The pages of knowledge: what there is, and one knowledge base with its documents while they come in."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chat.views.document_lists import lists_of
from chat.views.frame import framed, person_of
from chat.views.knowledge import quota_of
from retrieval.bases import delete_knowledge_base, make_knowledge_base, rename
from retrieval.contents import Contents, contents_of
from retrieval.errors import NameRefused, NoSuchKnowledgeBase, RetrievalError
from retrieval.ingestion.accept import accept_upload
from retrieval.knowledge import DEFAULT_SLUG, KnowledgeBase, knowledge_bases_of, read, written
from retrieval.quotas import kept_by

SHARED = "?shared=1"


@dataclass(frozen=True, slots=True)
class BaseView:
    """A knowledge base in a list of them, or as the heading of its own page."""

    slug: str
    name: str
    is_shared: bool
    is_default: bool
    contents: Contents

    @property
    def url(self) -> str:
        return reverse("knowledge-base", args=[self.slug]) + (SHARED if self.is_shared else "")


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def knowledge(request: HttpRequest) -> HttpResponse:
    """Every knowledge base the person may read; POST makes a new one."""
    if request.method != "POST":
        return _overview(request)
    try:
        made = make_knowledge_base(person_of(request), name=request.POST.get("name", ""))
    except NameRefused as refusal:
        return _overview(request, error=str(refusal))
    return redirect("knowledge-base", made.slug)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def knowledge_base(request: HttpRequest, slug: str) -> HttpResponse:
    """Its documents; POST adds files where no script does."""
    if request.method == "POST":
        return _add_files(request, slug)
    found = _readable(request, slug)
    lists = lists_of(found, find=request.GET.get("find", ""), shown=request.GET.get("shown", ""))
    context = {"base": _view(found), "lists": lists, "zone": person_of(request).time_zone}
    if request.headers.get("X-Requested-With") == "fetch":
        return render(request, "knowledge/live.html", context)
    return framed(request, "knowledge/base.html", context)


@never_cache
@login_required
@require_safe
def knowledge_settings(request: HttpRequest, slug: str) -> HttpResponse:
    return _settings(request, _owned(request, slug))


@login_required
@require_POST
def rename_base(request: HttpRequest, slug: str) -> HttpResponse:
    found = _owned(request, slug)
    before = found.name
    try:
        rename(found, request.POST.get("name", ""))
    except NameRefused as refusal:
        found.name = before
        return _settings(request, found, error=str(refusal))
    messages.success(request, f"It is called “{found.name}” now. Its address stays as it was.")
    return redirect("knowledge-settings", slug)


@login_required
@require_POST
def delete_base(request: HttpRequest, slug: str) -> HttpResponse:
    found = _owned(request, slug)
    name = found.name
    delete_knowledge_base(found)
    messages.success(request, f"“{name}” was deleted with its documents.")
    return redirect("knowledge")


def _overview(request: HttpRequest, *, error: str = "") -> HttpResponse:
    person = person_of(request)
    bases = list(knowledge_bases_of(person))
    if not any(base.owner_id and base.slug == DEFAULT_SLUG for base in bases):
        bases.insert(0, read(person))
    contents = contents_of(bases)
    views = [_view(base, contents.get(base.pk)) for base in bases]
    context = {
        "own": [view for view in views if not view.is_shared],
        "shared": [view for view in views if view.is_shared],
        "quota": quota_of(person),
        "kept": kept_by(person),
        "error": error,
        "name": request.POST.get("name", ""),
    }
    response = framed(request, "knowledge/overview.html", context)
    response.status_code = 422 if error else 200
    return response


def _settings(request: HttpRequest, base: KnowledgeBase, *, error: str = "") -> HttpResponse:
    response = framed(request, "knowledge/settings.html", {"base": _view(base), "error": error})
    response.status_code = 422 if error else 200
    return response


def _view(base: KnowledgeBase, contents: Contents | None = None) -> BaseView:
    found = contents if contents is not None else contents_of([base]).get(base.pk, Contents())
    return BaseView(base.slug, base.name, base.owner_id is None, base.slug == DEFAULT_SLUG, found)


def _readable(request: HttpRequest, slug: str) -> KnowledgeBase:
    try:
        return read(person_of(request), slug, is_shared="shared" in request.GET)
    except NoSuchKnowledgeBase as error:
        raise Http404 from error


def _owned(request: HttpRequest, slug: str) -> KnowledgeBase:
    try:
        return written(person_of(request), slug)
    except RetrievalError as error:
        raise Http404 from error


def _add_files(request: HttpRequest, slug: str) -> HttpResponse:
    person = person_of(request)
    _owned(request, slug)
    files = request.FILES.getlist("file")
    if not files:
        messages.error(request, "No file was chosen. Choose one or more, then add them.")
    for file in files:
        try:
            accept_upload(person, slug, file.name or "", file.chunks(), quota=quota_of(person))
        except RetrievalError as refusal:
            messages.error(request, f"{file.name}: {refusal}")
    return redirect("knowledge-base", slug)


urlpatterns = [
    path("knowledge/", knowledge, name="knowledge"),
    path("knowledge/<slug:slug>/", knowledge_base, name="knowledge-base"),
    path("knowledge/<slug:slug>/settings/", knowledge_settings, name="knowledge-settings"),
    path("knowledge/<slug:slug>/settings/rename/", rename_base, name="knowledge-rename"),
    path("knowledge/<slug:slug>/settings/delete/", delete_base, name="knowledge-delete"),
]
