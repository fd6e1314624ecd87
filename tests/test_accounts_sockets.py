"""Who opens a WebSocket: our own pages by session, programs by key, and nobody else."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.test import Client

from klerai.accounts.models import ApiKey, Person
from klerai.accounts.sockets import PersonSocketMiddleware, still_allowed
from klerai.body_limit import BodyLimit
from tests.people import key_text, make_alice, make_charlie, session_cookie, sign_in, suspend

Send = Callable[[dict[str, Any]], Awaitable[None]]


async def inner(scope: dict[str, Any], receive: Any, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] == "websocket.receive":
        allowed = await still_allowed(scope)
        await send({"type": "websocket.send", "text": json.dumps([str(scope["person"].pk), allowed])})


def socket(**headers: str) -> WebsocketCommunicator:
    sent = [(name.lower().encode(), value.encode()) for name, value in {"host": "testserver", **headers}.items()]
    return WebsocketCommunicator(PersonSocketMiddleware(inner), "/ws/chat/", headers=sent)


async def is_open(**headers: str) -> bool:
    communicator = socket(**headers)
    connected, _ = await communicator.connect(timeout=10)
    await communicator.disconnect()
    return bool(connected)


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    return await sync_to_async(function)(*arguments)


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://testserver", True),
        ("HTTP://TESTSERVER", True),
        ("", False),
        ("null", False),
        ("http://evil.example", False),
        ("http://sub.testserver", False),
        ("http://testserver.evil.example", False),
        ("http://testserver:81", False),
        ("http://testserver:8000", False),
        ("https://testserver", False),
        ("http://testserver/", False),
        ("http://evil.example@testserver", False),
        ("file://testserver", False),
    ],
)
async def test_a_socket_by_session_opens_from_our_own_pages_only(origin: str, expected: bool) -> None:
    cookie = session_cookie(await in_thread(sign_in, await in_thread(make_alice)))
    headers = {"origin": origin} if origin else {}
    assert await is_open(cookie=cookie, **headers) is expected


async def test_a_foreign_host_name_does_not_make_its_origin_ours() -> None:
    cookie = session_cookie(await in_thread(sign_in, await in_thread(make_alice)))
    assert not await is_open(cookie=cookie, host="evil.example", origin="http://evil.example")


async def test_a_socket_by_key_needs_no_origin_and_nobody_gets_none() -> None:
    alice = await in_thread(make_alice)
    text = await in_thread(key_text, alice)
    assert await is_open(authorization=f"Bearer {text}")
    assert await is_open(authorization=f"Bearer {text}", origin="https://app.example")
    assert not await is_open(authorization=f"Bearer {text}x")
    assert not await is_open(origin="http://testserver")
    assert not await is_open(origin="http://testserver", cookie="sessionid=forged; x=y")


async def test_two_headers_of_one_name_count_as_none() -> None:
    cookie = session_cookie(await in_thread(sign_in, await in_thread(make_alice)))
    communicator = socket(cookie=cookie, origin="http://testserver")
    communicator.scope["headers"].append((b"origin", b"http://testserver"))
    assert (await communicator.connect(timeout=10))[0] is False


@pytest.mark.parametrize("end", ["suspend", "revoke", "sign out", "new password", "delete"])
async def test_an_open_socket_learns_when_its_login_ends(end: str) -> None:
    alice = await in_thread(make_alice)
    name = str(alice.pk)
    browser = await in_thread(sign_in, alice)
    if end == "revoke":
        opened = socket(authorization=f"Bearer {await in_thread(key_text, alice)}")
    else:
        opened = socket(cookie=session_cookie(browser), origin="http://testserver")
    assert (await opened.connect(timeout=10))[0]
    await opened.send_to(text_data="?")
    assert json.loads(await opened.receive_from(timeout=10)) == [name, True]
    await in_thread(end_login, end, alice, browser)
    await opened.send_to(text_data="?")
    assert json.loads(await opened.receive_from(timeout=10)) == [name, False]
    await opened.disconnect()


def end_login(end: str, alice: Person, browser: Client) -> None:
    match end:
        case "suspend":
            suspend(alice)
        case "revoke":
            ApiKey.objects.filter(person=alice).update(is_active=False)
        case "sign out":
            browser.logout()
        case "new password":
            alice.set_password("another-kettle-18")
            alice.save()
        case "delete":
            alice.delete()


async def test_a_suspended_person_or_a_revoked_key_opens_no_socket() -> None:
    alice, charlie = await in_thread(make_alice), await in_thread(make_charlie)
    text = await in_thread(key_text, charlie)
    cookie = session_cookie(await in_thread(sign_in, alice))
    await in_thread(suspend, alice)
    await in_thread(lambda: ApiKey.objects.filter(person=charlie).update(is_active=False))
    assert not await is_open(cookie=cookie, origin="http://testserver")
    assert not await is_open(authorization=f"Bearer {text}")


async def test_the_limit_is_not_for_sockets() -> None:
    text = await in_thread(key_text, await in_thread(make_alice))
    headers = [(b"authorization", f"Bearer {text}".encode()), (b"content-length", b"999999")]
    limited = WebsocketCommunicator(BodyLimit(PersonSocketMiddleware(inner)), "/ws/chat/", headers=headers)
    assert (await limited.connect(timeout=10))[0]
    await limited.disconnect()
