"""A small server that speaks Stripe and announces: `python -m tests.fakes.stripe_server --webhook URL --secret S`.

Its page of a checkout takes no card. For KlerAI its address is `STRIPE_API_BASE`, `STRIPE_SECRET_KEY` any with
sk_test_ before it, and `STRIPE_PRICES` pro=price_pro,500=price_500,1500=price_1500,4000=price_4000.
"""

from __future__ import annotations

import argparse
import html
import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import httpx
import stripe

from tests.fakes import stripe_objects as objects
from tests.fakes.stripe_api import Api, as_json
from tests.fakes.stripe_objects import Thing
from tests.fakes.stripe_world import World

SECRET = "whsec_of_the_fake_that_nobody_may_read"


@dataclass(frozen=True, slots=True)
class Trouble:
    """How the next request is met: by an error of that status, or by silence until the fake is closed."""

    status: int = 500
    is_stalled: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    method: str
    path: str
    body: str
    headers: dict[str, str]


@dataclass(slots=True)
class StripeFake:
    """A world with an API before it. `version` is that of the webhook endpoint, whatever a request asks for."""

    world: World = field(default_factory=World)
    version: str = objects.API_VERSION
    secret: str = SECRET
    requests: list[Seen] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None
    _closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self, host: str = "127.0.0.1", port: int = 0) -> Self:
        self._server = ThreadingHTTPServer((host, port), _handler(self, Api(self.world, pay_url=lambda: self.url)))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=[0.01], name="StripeFake", daemon=True).start()
        return self

    def close(self) -> None:
        self._closing.set()
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def wait_for_close(self, seconds: float | None = None) -> bool:
        return self._closing.wait(seconds)

    def letter(self, event: Thing) -> tuple[bytes, str]:
        """The announcement as it is sent, with its signature by the SDK's own hand."""
        shown = {name: value for name, value in event.items() if name != "is_delivered"}
        shown |= {"api_version": self.version}
        shown["data"] = {"object": objects.in_version(event["data"]["object"], self.version)}
        return self.signed(shown)

    def signed(self, content: Thing, *, at: int | None = None, secret: str | None = None) -> tuple[bytes, str]:
        raw = json.dumps(content)
        return raw.encode(), stripe.WebhookSignature.generate_signature_header(
            raw, self.secret if secret is None else secret, at or int(time.time())
        )

    def deliver(self, url: str, events: Iterable[Thing]) -> list[int]:
        """Send these in this order, once each; the status of each answer."""
        with httpx.Client(timeout=30, trust_env=False) as client:
            return [self._send(client, url, event) for event in events]

    def _send(self, client: httpx.Client, url: str, event: Thing) -> int:
        raw, header = self.letter(event)
        headers = {"Stripe-Signature": header, "Content-Type": "application/json"}
        status = client.post(url, content=raw, headers=headers).status_code
        event["is_delivered"] = event["is_delivered"] or status == 200
        return status

    def keep_delivering(self, url: str) -> None:
        """Until it is closed, whatever was not taken yet, every half second."""
        while not self.wait_for_close(0.5):
            waiting = [event for event in list(self.world.events) if not event["is_delivered"]]
            with suppress(httpx.HTTPError):
                self.deliver(url, waiting)


@contextmanager
def running_stripe(**how: Any) -> Iterator[StripeFake]:
    fake = StripeFake(**how).start()
    try:
        yield fake
    finally:
        fake.close()


def _handler(fake: StripeFake, api: Api) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_DELETE(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            address = urlsplit(self.path)
            if not address.path.startswith("/v1/"):
                return self._page(address.path, parse_qs(body))
            headers = {name.lower(): value for name, value in self.headers.items()}
            fake.requests.append(Seen(self.command, self.path, body, headers))
            if fake.troubles:
                trouble = fake.troubles.pop(0)
                if trouble.is_stalled:
                    fake.wait_for_close()
                    self.close_connection = True
                    return None
                error = {"error": {"type": "api_error", "message": "Something went wrong on Stripe's end."}}
                return self._say(trouble.status, as_json(error), "application/json")
            status, said, more = api.answer(self.command, address.path, address.query, body, headers)
            return self._say(status, as_json(said), "application/json", {"Request-Id": "req_fake", **more})

        def _page(self, path: str, form: dict[str, list[str]]) -> None:
            """Where a person pays, without a card, or manages what they pay for."""
            *_, place, id = path.split("/")
            thing = fake.world.things.get(id)
            if thing is None or place not in ("pay", "portal"):
                return self._say(404, b"Not found", "text/plain")
            if self.command == "POST":
                onwards = _acted(fake.world, thing, form.get("action", [""])[0])
                return self._say(303, b"", "text/plain", {"Location": onwards or path})
            return self._say(200, _shown(fake.world, thing).encode(), "text/html; charset=utf-8")

        def _say(self, status: int, body: bytes, kind: str, more: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(more or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _acted(world: World, thing: Thing, action: str) -> str:
    """What a button did; where it leads."""
    if thing["object"] == "checkout.session" and thing["status"] == "open":
        if action == "pay":
            world.pay(thing["id"])
            return str(thing["success_url"]).replace("{CHECKOUT_SESSION_ID}", thing["id"])
        return str(thing["cancel_url"])
    for subscription in _living(world, thing["id"]):
        match action:
            case "cancel" | "keep":
                world.update(subscription["id"], cancel_at_period_end=action == "cancel")
            case "renew" | "fail":
                world.renew(subscription["id"], is_paid=action == "renew")
            case "recover":
                world.recover(subscription["id"])
    return ""


def _shown(world: World, thing: Thing) -> str:
    if thing["object"] == "checkout.session":
        title, buttons = f"Pay {thing['amount_total'] / 100:.2f} {thing['currency']}", ["pay", "leave"]
    else:
        states = ", ".join(one["status"] for one in _living(world, thing["id"])) or "none"
        title, buttons = f"Subscription: {states}", ["cancel", "keep", "renew", "fail", "recover"]
    made = "".join(f'<button name="action" value="{name}">{name}</button>' for name in buttons)
    return f"<!doctype html><title>Fake Stripe</title><h1>{html.escape(title)}</h1><form method=post>{made}</form>"


def _living(world: World, customer: str) -> list[Thing]:
    found = world.of_kind("subscription")
    return [one for one in found if one["customer"] == customer and one["status"] != "canceled"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--webhook", required=True, help="the address of KlerAI's /webhooks/stripe")
    parser.add_argument("--secret", default=SECRET, help="STRIPE_WEBHOOK_SECRET of KlerAI")
    parser.add_argument("--version", default=objects.API_VERSION, help="of the webhook endpoint")
    arguments = parser.parse_args()
    fake = StripeFake(secret=arguments.secret, version=arguments.version)
    with suppress(KeyboardInterrupt):
        print(fake.start(arguments.host, arguments.port).url, flush=True)
        fake.keep_delivering(arguments.webhook)


if __name__ == "__main__":
    main()
