"""Stripe's API over a world: which address reads or makes what, once for each idempotency key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from tests.fakes import stripe_objects as objects
from tests.fakes.stripe_objects import Thing
from tests.fakes.stripe_world import NoSuchThing, World

Answer = tuple[int, Thing, dict[str, str]]
_PLACE = re.compile(r"[^\[\]]+")
_LISTS = {
    "subscriptions": "subscription",
    "refunds": "refund",
    "disputes": "dispute",
    "checkout/sessions": "checkout.session",
    "invoices": "invoice",
}


class Refused(Exception):
    """An answer of Stripe's that is an error."""

    def __init__(self, status: int, code: str, message: str, *, type: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"type": type, "code": code, "message": message}}


class Api:
    """What the SDK talks to. `pay_url` is where checkouts and portals are."""

    def __init__(self, world: World, *, pay_url: Callable[[], str]) -> None:
        self._world = world
        self._pay_url = pay_url
        self._made: dict[str, tuple[str, Answer]] = {}

    def answer(self, method: str, path: str, query: str, body: str, headers: dict[str, str]) -> Answer:
        version = headers.get("stripe-version", objects.API_VERSION)
        key = headers.get("authorization", "").removeprefix("Bearer ")
        with self._world.lock:
            try:
                if not key.startswith(("sk_test_", "rk_test_")):
                    raise Refused(401, "api_key_invalid", "Invalid API Key provided: sk_***")
                params = read_form(body or query)
                if method == "POST" and (once := headers.get("idempotency-key")):
                    return self._once(once, f"{path}?{body}", lambda: self._answer(method, path, params, version))
                return self._answer(method, path, params, version)
            except NoSuchThing as missing:
                error = Refused(404, "resource_missing", f"No such object: '{missing}'")
                return error.status, error.body, {}
            except Refused as refused:
                return refused.status, refused.body, {}

    def _once(self, key: str, asked: str, make: Callable[[], Answer]) -> Answer:
        if key not in self._made:
            self._made[key] = asked, make()
            return self._made[key][1]
        before, answer = self._made[key]
        if before != asked:
            words = "Keys for idempotent requests can only be used with the same parameters they were first used with."
            raise Refused(400, "idempotency_key_in_use", words, type="idempotency_error")
        return answer[0], answer[1], {"idempotent-replayed": "true"}

    def _answer(self, method: str, path: str, params: Thing, version: str) -> Answer:
        thing = self._thing(method, path.removeprefix("/v1/").strip("/"), params)
        return 200, objects.in_version(self._expanded(thing, params.get("expand", [])), version), {}

    def _thing(self, method: str, path: str, params: Thing) -> Thing:
        match method, path.split("/"):
            case "POST", ["customers"]:
                return self._customer(params)
            case "POST", ["checkout", "sessions"]:
                return self._session(params)
            case "POST", ["billing_portal", "sessions"]:
                return self._portal(params)
            case "GET", ["events"]:
                return self._events(params)
            case "GET", _ if path in _LISTS:
                return self._list(_LISTS[path], params, path)
            case "GET", [*_, id]:
                return self._world.get(id)
            case "POST", ["checkout", "sessions", id, "expire"]:
                if self._world.get(id)["status"] != "open":
                    raise Refused(400, "", 'Only Checkout Sessions with a status in ["open"] can be expired.')
                self._world.expire(id)
                return self._world.get(id)
            case "POST", ["subscriptions", id]:
                return self._change(id, params)
            case "DELETE", ["subscriptions", id]:
                if self._world.get(id)["status"] == "canceled":
                    raise NoSuchThing(id)
                self._world.end(id)
                return self._world.get(id)
        raise Refused(404, "url_invalid", f"Unrecognized request URL ({method}: /v1/{path}).")

    def _customer(self, params: Thing) -> Thing:
        made = {"id": self._world.new_id("cus"), "object": "customer", "created": self._world.now, "livemode": False}
        return self._world.keep({**made, "email": params.get("email"), "metadata": params.get("metadata", {})})

    def _session(self, params: Thing) -> Thing:
        self._world.get(params["customer"])
        try:
            price = self._world.get(params["line_items"][0]["price"])
        except NoSuchThing as missing:
            raise Refused(400, "resource_missing", f"No such price: '{missing}'") from missing
        if (price["type"] == "recurring") != (params["mode"] == "subscription"):
            raise Refused(400, "", f"You specified `{params['mode']}` mode with a price of another kind.")
        id = self._world.new_id("cs_test")
        url = f"{self._pay_url()}/pay/{id}"
        return self._world.keep(objects.session(id, self._world.now, params, price=price, url=url))

    def _portal(self, params: Thing) -> Thing:
        customer = self._world.get(params["customer"])["id"]
        made = {"id": self._world.new_id("bps"), "object": "billing_portal.session", "customer": customer}
        return {**made, "return_url": params["return_url"], "url": f"{self._pay_url()}/portal/{customer}"}

    def _change(self, id: str, params: Thing) -> Thing:
        fields: Thing = {}
        if "cancel_at_period_end" in params:
            fields["cancel_at_period_end"] = params["cancel_at_period_end"] == "true"
        if wanted := params.get("items"):
            price = self._world.get(wanted[0]["price"])
            (item,) = self._world.get(id)["items"]["data"]
            item["price"] = price
        return self._world.update(id, **fields)

    def _events(self, params: Thing) -> Thing:
        wanted = [event for event in reversed(self._world.events) if _is_wanted(event, params)]
        if params.get("delivery_success") == "false":
            wanted = [event for event in wanted if not event["is_delivered"]]
        shown = [{name: value for name, value in event.items() if name != "is_delivered"} for event in wanted]
        return _page(shown, params, "/v1/events")

    def _list(self, kind: str, params: Thing, path: str) -> Thing:
        wanted = [thing for thing in self._world.of_kind(kind) if _is_wanted(thing, params)]
        if kind == "subscription" and params.get("status") != "all":
            wanted = [thing for thing in wanted if thing["status"] != "canceled"]
        return _page(wanted, params, f"/v1/{path}")

    def _expanded(self, thing: Thing, names: list[str]) -> Thing:
        """Line items are left out unless they are asked for, and an invoice is an id."""
        if thing["object"] == "list":
            inner = [name.removeprefix("data.") for name in names]
            return {**thing, "data": [self._expanded(one, inner) for one in thing["data"]]}
        shown = dict(thing)
        if shown["object"] == "checkout.session" and "line_items" not in names:
            shown.pop("line_items")
        if shown["object"] == "subscription" and "latest_invoice" in names and shown["latest_invoice"]:
            shown["latest_invoice"] = self._world.get(shown["latest_invoice"])
        return shown


def read_form(text: str) -> Thing:
    """Stripe's form: `line_items[0][price]=price_1` is {"line_items": [{"price": "price_1"}]}."""
    read: Thing = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        *way, last = _PLACE.findall(name)
        place = read
        for step in way:
            place = place.setdefault(step, {})
        place[last] = value
    found = _with_lists(read)
    assert isinstance(found, dict)
    return found


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _with_lists(one) for name, one in value.items()}
    return list(inner.values()) if inner and all(name.isdigit() for name in inner) else inner


def _is_wanted(thing: Thing, params: Thing) -> bool:
    since = int(params.get("created", {}).get("gte", 0))
    by = {name: params[name] for name in ("payment_intent", "customer", "subscription") if name in params}
    return bool(thing["created"] >= since) and all(thing.get(name) == value for name, value in by.items())


def _page(things: list[Thing], params: Thing, url: str) -> Thing:
    """A page of a list that has the newest first."""
    limit = int(params.get("limit", 10))
    if (after := params.get("starting_after")) is not None:
        place = next((number for number, thing in enumerate(things) if thing["id"] == after), len(things))
        things = things[place + 1 :]
    return objects.listed(things[:limit], url, has_more=len(things) > limit)


def as_json(body: Thing) -> bytes:
    return json.dumps(body).encode()
