"""The fake OpenID Connect server as a test holds it: running, and the settings pointed at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from klerai.accounts.social_settings import SocialLogin
from tests.fakes.openid_server import CLIENT_ID, CLIENT_SECRET, OpenIdFake
from tests.fakes.outside import running


@pytest.fixture
def openid_fake(settings: Settings) -> Iterator[OpenIdFake]:
    with running(OpenIdFake()) as fake:
        settings.SOCIAL_LOGINS = (
            SocialLogin("oidc", "Harbour", "openid_connect", fake.url, CLIENT_ID, CLIENT_SECRET),
            SocialLogin("github", "GitHub", "github", fake.url, CLIENT_ID, CLIENT_SECRET),
        )
        yield fake
