"""Where the pages are."""

from __future__ import annotations

from django.urls import path

from chat.views import (
    buying,
    citations,
    credits_page,
    departure_pages,
    export_pages,
    key_pages,
    knowledge_pages,
    ledger_page,
    pages,
    plan_actions,
    portal_page,
    pricing_page,
    reader,
    receipt_page,
    search_page,
    servers_pages,
    settings_pages,
    ways_out,
)

urlpatterns = [
    path("", pages.home, name="home"),
    path("chat/<uuid:conversation_id>/", pages.conversation, name="conversation"),
    path("chat/runs/<uuid:run_id>/", pages.run, name="run"),
    *citations.urlpatterns,
    path("sidebar/", pages.sidebar, name="sidebar"),
    *credits_page.urlpatterns,
    *ledger_page.urlpatterns,
    *receipt_page.urlpatterns,
    *portal_page.urlpatterns,
    *buying.urlpatterns,
    *plan_actions.urlpatterns,
    *pricing_page.urlpatterns,
    *ways_out.urlpatterns,
    *knowledge_pages.urlpatterns,
    *reader.urlpatterns,
    *search_page.urlpatterns,
    path("settings/", settings_pages.settings, name="settings"),
    path("settings/name/", settings_pages.save_name, name="save-name"),
    path("settings/ceiling/", settings_pages.save_ceiling, name="save-ceiling"),
    path("settings/time-zone/", settings_pages.save_time_zone, name="save-time-zone"),
    path("settings/theme/", settings_pages.save_theme, name="theme"),
    *servers_pages.urlpatterns,
    *export_pages.urlpatterns,
    *departure_pages.urlpatterns,
    *key_pages.urlpatterns,
]
