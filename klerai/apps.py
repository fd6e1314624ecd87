"""The project itself and its admin, as Django apps."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig


class KlerAIConfig(AppConfig):
    name = "klerai"


class AdminConfig(DjangoAdminConfig):
    default_site = "klerai.admin_site.StaffSite"
