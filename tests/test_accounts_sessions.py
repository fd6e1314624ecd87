"""Where a person is signed in: listed in plain words, ended for every door at the next request."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client
from django.utils import timezone

from klerai.accounts.models import Person
from klerai.accounts.sockets import still_allowed
from tests.front_door import is_signed_in, log_in
from tests.people import PASSWORD, make_alice, make_charlie, session_cookie, sign_in

SETTINGS, OTHERS = "/settings/", "/accounts/sessions/others/end/"
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15"
    " (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1"
)
LAPTOP = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
WINDOWS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36"
    " (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0"
)
TABLET = (
    "Mozilla/5.0 (Linux; Android 16; Pixel Tablet) AppleWebKit/537.36"
    " (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
)


def browser_of(person: Person, user_agent: str = LAPTOP, address: str = "203.0.113.7") -> Client:
    browser = Client(headers={"User-Agent": user_agent}, REMOTE_ADDR=address)
    assert log_in(browser, person.email)["Location"] == "/"
    return browser


def session_row(browser: Client) -> UserSession:
    found: UserSession = UserSession.objects.get(session_key=browser.session.session_key)
    return found


def end(browser: Client, row: UserSession) -> int:
    return browser.post(f"/accounts/sessions/{row.pk}/end/").status_code


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        (PHONE, "Safari on an iPhone"),
        (LAPTOP, "Firefox on Linux"),
        (WINDOWS, "Edge on Windows"),
        (TABLET, "Chrome on Android"),
        ("curl/8.11", "An unknown browser"),
        ("", "An unknown browser"),
        ("<b>Firefox/1</b>", "Firefox"),
    ],
)
def test_a_device_is_told_in_plain_words(user_agent: str, words: str) -> None:
    page = browser_of(make_alice(), user_agent).get(SETTINGS).content.decode()
    assert f'<th scope="row">{words}</th>' in page


def test_the_settings_list_every_device_with_its_address_and_say_which_is_this_one() -> None:
    alice = make_alice()
    laptop, phone = browser_of(alice), browser_of(alice, PHONE, "2001:db8::7")
    browser_of(make_charlie(), TABLET, "198.51.100.9")
    page = laptop.get(SETTINGS).content.decode()
    rows = re.findall(r'<th scope="row">(.*?)</th>.*?<span[^>]*>(.*?)</span></td><td[^>]*>(.*?)</td>', page)
    assert [(device, address) for device, address, _ in rows] == [
        ("Firefox on Linux", "203.0.113.7"),
        ("Safari on an iPhone", "2001:db8::7"),
    ]
    assert rows[0][2] == "now, this one"
    assert phone.get(SETTINGS).content.decode().count("Sign out Firefox on Linux") == 1


def test_signing_out_one_device_leaves_the_others() -> None:
    alice = make_alice()
    laptop, phone, tablet = browser_of(alice), browser_of(alice, PHONE), browser_of(alice, TABLET)
    assert end(laptop, session_row(phone)) == 302
    assert [is_signed_in(each) for each in (laptop, phone, tablet)] == [True, False, True]
    assert phone.get(SETTINGS)["Location"].startswith("/accounts/login/")
    assert phone.get("/api/conversations").status_code == 401
    assert "iPhone" not in laptop.get(SETTINGS).content.decode()


def test_signing_out_everywhere_else_keeps_this_one_and_other_people() -> None:
    alice, charlie = make_alice(), make_charlie()
    laptop, others, stranger = browser_of(alice), [browser_of(alice) for _ in range(3)], browser_of(charlie)
    page = laptop.post(OTHERS, follow=True).content.decode()
    assert "3 other devices are signed out." in page
    assert "Sign out everywhere else" not in page
    assert [is_signed_in(each) for each in (laptop, *others, stranger)] == [True, False, False, False, True]


async def test_an_open_socket_of_an_ended_session_is_refused_at_its_next_check() -> None:
    def prepared() -> tuple[Client, Client, Person]:
        alice = make_alice()
        return browser_of(alice), browser_of(alice, PHONE), alice

    laptop, phone, alice = await sync_to_async(prepared)()
    cookie = await sync_to_async(session_cookie)(phone)
    headers = [(b"host", b"testserver"), (b"origin", b"http://testserver"), (b"cookie", cookie.encode())]
    scope = {"type": "websocket", "headers": headers, "person": alice}
    assert await still_allowed(scope)
    await sync_to_async(end)(laptop, await sync_to_async(session_row)(phone))
    assert not await still_allowed(scope)


def test_a_strangers_session_is_like_one_that_does_not_exist() -> None:
    alice, charlie = browser_of(make_alice()), browser_of(make_charlie())
    assert end(charlie, session_row(alice)) == 404
    assert charlie.post("/accounts/sessions/999999999/end/").status_code == 404
    assert is_signed_in(alice)
    assert Client().post(OTHERS)["Location"].startswith("/accounts/login/")


def test_ending_takes_a_press_and_a_token() -> None:
    alice = make_alice()
    laptop, phone = browser_of(alice), browser_of(alice, PHONE)
    assert laptop.get(OTHERS).status_code == 405
    forged = Client(enforce_csrf_checks=True)
    forged.cookies = laptop.cookies
    assert forged.post(OTHERS).status_code == 403
    assert end(forged, session_row(phone)) == 403
    assert is_signed_in(phone)


def test_ending_this_session_signs_out_here() -> None:
    laptop = browser_of(make_alice())
    end(laptop, session_row(laptop))
    assert not is_signed_in(laptop)


def test_changing_the_password_ends_the_other_sessions_and_takes_them_off_the_list() -> None:
    alice = make_alice()
    laptop, phone = browser_of(alice), browser_of(alice, PHONE)
    change = {"oldpassword": PASSWORD, "password1": "new-kettle-2024"}
    assert laptop.post("/accounts/password/change/", change).status_code == 302
    assert phone.get(SETTINGS).status_code == 302
    page = laptop.get(SETTINGS).content.decode()
    assert "iPhone" not in page
    assert page.count("this one") == 1


def test_a_session_from_before_the_list_is_on_it_from_its_next_page_on() -> None:
    alice = make_alice()
    old = sign_in(alice)
    old.get("/billing/", headers={"User-Agent": PHONE})
    assert "Safari on an iPhone" in browser_of(alice).get(SETTINGS).content.decode()


def test_last_seen_and_address_follow_the_pages_to_the_minute() -> None:
    browser = browser_of(make_alice())
    row = session_row(browser)
    browser.get("/billing/", REMOTE_ADDR="198.51.100.1")
    assert session_row(browser).ip == "203.0.113.7", "seen a moment ago: no write"
    UserSession.objects.filter(pk=row.pk).update(last_seen_at=timezone.now() - timedelta(hours=2))
    browser.get("/api/conversations")
    assert session_row(browser).last_seen_at < timezone.now() - timedelta(hours=1), "programs' doors note nothing"
    browser.get("/billing/", REMOTE_ADDR="198.51.100.1")
    noted = session_row(browser)
    assert noted.ip == "198.51.100.1"
    assert noted.last_seen_at > timezone.now() - timedelta(minutes=1)


async def test_pages_are_noted_under_asgi_too() -> None:
    client = await sync_to_async(browser_of)(await sync_to_async(make_alice)())
    row = await sync_to_async(session_row)(client)
    await UserSession.objects.filter(pk=row.pk).aupdate(last_seen_at=timezone.now() - timedelta(hours=2))
    browser = AsyncClient()
    browser.cookies = client.cookies
    assert (await browser.get("/billing/")).status_code == 200
    assert (await UserSession.objects.aget(pk=row.pk)).last_seen_at > timezone.now() - timedelta(minutes=1)


def test_a_server_reached_without_an_address_still_serves_pages() -> None:
    browser = sign_in(make_alice())
    assert browser.get("/billing/", REMOTE_ADDR="").status_code == 200
