"""What allauth asks of a provider, through the door outwards: it takes any session like those of `requests`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import httpx2
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from asgiref.sync import async_to_sync

from klerai.http import vendor_client

TIMEOUT_SECONDS = 10
MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """The part of an answer that allauth reads."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        try:
            return json.loads(self.content)
        except ValueError as error:
            raise OAuth2Error("It answered with something that is not JSON.") from error

    def raise_for_status(self) -> None:
        if self.status_code >= 400:
            raise OAuth2Error(f"It answered with status {self.status_code}.")


class ProviderSession:
    """Asks the addresses an operator chose, and those that these name. Whatever goes wrong is an OAuth2Error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> Answer:
        return self.request("GET", url, headers=headers)

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
    ) -> Answer:
        basic = None if auth is None else (auth.username, auth.password)
        asked = {"params": params, "data": data, "headers": {"Accept": "application/json", **(headers or {})}}
        return async_to_sync(_ask)(method, url, asked, basic)


async def _ask(method: str, url: str, asked: Mapping[str, Any], basic: tuple[str, str] | None) -> Answer:
    body = bytearray()
    try:
        async with (
            vendor_client(url, timeout_seconds=TIMEOUT_SECONDS) as client,
            client.stream(method, url, auth=basic, **asked) as response,
        ):
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > MOST_BYTES:
                    raise OAuth2Error("It answered with more than is read.")
    except httpx2.HTTPError as error:
        raise OAuth2Error(f"It did not answer: {type(error).__name__}.") from error
    return Answer(response.status_code, response.headers, bytes(body))
