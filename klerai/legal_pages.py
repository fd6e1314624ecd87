"""Terms, privacy, refunds and contact: the operator's words where there are any, else the drafts that come with us."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from chat.rendering import render_markdown
from klerai.models import LegalPage
from klerai.recipients import as_markdown, recipients

DRAFTS = Path(__file__).parent / "legal"


def draft_of(slug: str) -> str:
    return (DRAFTS / f"{slug}.md").read_text()


@require_safe
def legal_page(request: HttpRequest, slug: str) -> HttpResponse:
    """What the operator wrote is Markdown and passes the same cleaner as a model's words."""
    page = LegalPage.objects.filter(slug=slug).exclude(text="").first()
    text = _filled(page.text if page else draft_of(slug), request)
    context = {
        "title": LegalPage.Slug(slug).label,
        "html": mark_safe(render_markdown(text)),  # its last step is the cleaner
        "changed_at": page.updated_at if page else None,
        "is_usd": slug in {LegalPage.Slug.TERMS, LegalPage.Slug.REFUNDS},
    }
    return render(request, "legal.html", context)


def _filled(text: str, request: HttpRequest) -> str:
    """Only these names stand for something; other braces are the operator's."""
    values = {
        "vendors": as_markdown(recipients()),
        "site": request.get_host(),
        "contact": settings.DEFAULT_FROM_EMAIL.rpartition("<")[2].strip("> "),
        **{f"{slug}_page": request.build_absolute_uri(reverse(slug)) for slug in LegalPage.Slug.values},
    }
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


urlpatterns = [path(f"{slug}/", legal_page, {"slug": slug}, name=slug) for slug in LegalPage.Slug.values]
