"""People, their logins and their keys, as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "klerai.accounts"
    label = "accounts"

    def ready(self) -> None:
        from klerai.accounts import schema, signals  # noqa: F401  registers; models exist only now
