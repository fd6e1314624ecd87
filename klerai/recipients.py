"""Who outside this server is sent what, as it is set up now: read from the settings, so that it stays true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from chat.mcp.rows import added_servers
from chat.strategies.vendors import BY_STRATEGY, OFFLINE
from klerai.mail import Smtp

_EMBEDDERS = {"voyage": "Voyage AI", "gemini": "Google (Gemini)", "ollama": "Ollama"}


@dataclass(frozen=True, slots=True)
class Recipient:
    """`what` is the end of a sentence that begins with the name and “is sent”."""

    name: str
    what: str


def recipients() -> list[Recipient]:
    """Those who answer first, then those who are asked by tools, then those who deliver and are paid through."""
    return [*_models(), *_embedder(), *_asked_by_tools(), *_connected(), *_sign_in(), *_mail(), *_payments()]


def as_markdown(found: list[Recipient]) -> str:
    return "\n".join(f"- **{each.name}** is sent {each.what}" for each in found)


def _models() -> Iterator[Recipient]:
    words = "your question, with the part of the conversation and the passages that belong to it"
    if settings.STRATEGY != OFFLINE:
        name = BY_STRATEGY[settings.STRATEGY].title
        yield Recipient(_with_host(name, settings.MODEL_ACCESS[settings.STRATEGY].base_url), f"{words}, and answers.")
    for strategy, access in settings.MODEL_ACCESS.items():
        if access.is_set and strategy != settings.STRATEGY:
            when = "when its mode is chosen or the first model fails"
            yield Recipient(_with_host(BY_STRATEGY[strategy].title, access.base_url), f"the same {when}.")


def _embedder() -> Iterator[Recipient]:
    if settings.EMBEDDER in _EMBEDDERS:
        where = settings.OLLAMA_BASE_URL if settings.EMBEDDER == "ollama" else ""
        name = _with_host(_EMBEDDERS[settings.EMBEDDER], where)
        yield Recipient(name, "the texts of your documents and of your searches, to turn them into vectors.")


def _asked_by_tools() -> Iterator[Recipient]:
    yield Recipient("Context7", "the name of a product and a topic, when documentation is read.")
    yield Recipient("Open-Meteo", "the name of a place, when the weather is asked for.")
    if settings.PERPLEXITY_API_KEY:
        words = "a query and a summary of what is known already, when the web is asked."
        yield Recipient("Perplexity", f"{words} It is not told who asks.")


def _connected() -> Iterator[Recipient]:
    """Programs of this machine are asked too, and what they ask others is theirs."""
    words = "what a tool of it is called with, when a question uses one"
    yield Recipient("GitHub", f"{words} and a token is set up, by you or for everybody.")
    servers = [*settings.MCP.servers, *added_servers(may_write_github=False)]
    yield from (Recipient(f"The server “{server.name}”", f"{words}.") for server in servers)


def _mail() -> Iterator[Recipient]:
    if isinstance(settings.DELIVERY, Smtp):
        yield Recipient(f"The mail server {settings.DELIVERY.host}", "your address and the mails to you.")


def _sign_in() -> Iterator[Recipient]:
    for login in settings.SOCIAL_LOGINS:
        words = "that you sign in here, when you do it through it, and tells your name and e-mail."
        yield Recipient(_with_host(login.name, login.server_url), words)


def _payments() -> Iterator[Recipient]:
    if settings.STRIPE.seller == "stripe":
        yield Recipient("Stripe", "your e-mail and what you buy, and takes your card. Card numbers never reach us.")


def _with_host(name: str, base_url: str) -> str:
    """Where the operator chose the address, it says more than the name."""
    host = urlsplit(base_url).hostname if base_url else None
    return f"{name} ({host})" if host else name
