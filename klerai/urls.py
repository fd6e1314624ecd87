"""Every address of the product."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import include, path

from billing import local_pages, webhook
from chat import urls_pages
from chat.views import (
    billing,
    catalogue,
    conversations,
    documents,
    knowledge_bases,
    knowledge_search,
    memory,
    openai_api,
    query,
    runs,
)
from klerai import api_docs, error_pages, health, legal_pages, local_mail, setup_page

urlpatterns = [
    *urls_pages.urlpatterns,
    *runs.urlpatterns,
    *query.urlpatterns,
    *openai_api.urlpatterns,
    *conversations.urlpatterns,
    *memory.urlpatterns,
    *catalogue.urlpatterns,
    *billing.urlpatterns,
    *webhook.urlpatterns,
    *legal_pages.urlpatterns,
    *api_docs.urlpatterns,
    *knowledge_bases.urlpatterns,
    *documents.urlpatterns,
    *knowledge_search.urlpatterns,
    path("accounts/", include("klerai.accounts.urls")),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("setup/", setup_page.setup, name="setup"),
]

if settings.LOCAL_MODE:
    urlpatterns += [path("local/mail/", local_mail.local_mail, name="local_mail"), *local_pages.urlpatterns]

handler400 = error_pages.bad_request
handler403 = error_pages.permission_denied
handler404 = error_pages.not_found
handler500 = error_pages.server_error
