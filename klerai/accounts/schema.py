"""How the OpenAPI schema says that a session or a key signs a request in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension

from klerai.accounts.access import Access
from klerai.accounts.authentication import scopes_of_view


class PersonScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # its registry hook is untyped
    target_class = "klerai.accounts.authentication.PersonAuthentication"
    name = ["key", "session"]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        return [
            {"type": "http", "scheme": "bearer", "bearerFormat": "kl_…", "description": "An API key."},
            {
                "type": "apiKey",
                "in": "cookie",
                "name": settings.SESSION_COOKIE_NAME,
                "description": "A browser's session; unsafe methods need the header X-CSRFToken as well.",
            },
        ]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[Any]]]:
        """Either will do; without this the schema would ask for both."""
        return security(scopes_of_view(auto_schema.view, auto_schema.method))


def security(opens_to: Iterable[Access]) -> list[dict[str, list[Any]]]:
    """A key with one of these scopes, or a session."""
    return [*({"key": [scope.value]} for scope in opens_to), {"session": []}]
