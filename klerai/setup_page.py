"""The set-up page: what works on this server now, and which variable would add what."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chat.mcp.connection import State
from chat.mcp.servers import Status
from chat.strategies.vendors import BY_STRATEGY, VENDORS, Vendor
from chat.views.frame import framed
from chat.views.servers import server_statuses
from chat.views.starters import is_offline
from klerai.health import OK, readiness
from klerai.mail import Console, Folder, Smtp


@dataclass(frozen=True, slots=True)
class Part:
    """One row: `state` is on, off or failed."""

    title: str
    state: str
    sentence: str
    variable: str = ""
    link: str = ""
    link_words: str = ""


@never_cache
@login_required
@require_safe
def setup(request: HttpRequest) -> HttpResponse:
    working = _parts()
    settable = _settable()
    missing = sum(part.state == "off" for part in settable)
    context = {
        "working": working,
        "servers": [_server(status) for status in server_statuses(request)],
        "may_test": admin.site.has_permission(request),
        "settable": settable,
        "missing": missing,
        "is_well": all(_is_on(p) for p in working),
    }
    return framed(request, "setup.html", context)


def _is_on(part: Part) -> bool:
    return part.state == "on"


def _parts() -> list[Part]:
    said = readiness()
    titles = {"database": "Database", "pgvector": "Vectors", "migrations": "Tables", "worker": "Worker"}
    fine = {
        "database": "PostgreSQL answers.",
        "pgvector": "The extension pgvector is there.",
        "migrations": "Every migration is applied.",
        "worker": "Mail and other jobs are being done.",
    }
    return [
        Part(titles[name], "on" if words == OK else "failed", fine[name] if words == OK else words)
        for name, words in said.items()
    ] + [_answers(), _search()]


def _answers() -> Part:
    if not is_offline():
        sentence = f"{BY_STRATEGY[settings.STRATEGY].title}, {settings.MODEL_ACCESS[settings.STRATEGY].model}."
        return Part("Answers", "on", sentence, link="/", link_words="Ask something")
    sentence = "Offline: without a model key, answers use the tools, and say that no model wrote them."
    return Part("Answers", "on", sentence, link="/", link_words="Ask something")


def _search() -> Part:
    """By the embedder of the settings; a knowledge base that was filled under another one keeps that."""
    words = {
        "voyage": f"By keyword and by meaning: Voyage AI, {settings.VOYAGE_MODEL}.",
        "gemini": "By keyword and by meaning: Gemini, gemini-embedding-001.",
        "ollama": "By keyword and by meaning: Ollama, nomic-embed-text.",
        "wordllama": "By keyword and by meaning: WordLlama, on this machine and without a key.",
        "none": "By keyword only, since KLERAI_EMBEDDER is none.",
    }
    return Part("Search", "on", words[settings.EMBEDDER], link="/search/", link_words="Search")


def _server(status: Status) -> Part:
    """An MCP server as this process knows it. One for everybody starts with the process."""
    tools = f"{status.tools} tool{'' if status.tools == 1 else 's'}"
    whose = ", with your own token" if status.is_own else ""
    match status.state:
        case State.READY:
            return Part(status.name, "on", f"{tools}, from {status.where}{whose}. {status.error}".rstrip())
        case State.STARTING:
            return Part(status.name, "off", f"Starting, from {status.where}{whose}.")
        case State.FAILED:
            return Part(status.name, "failed", f"Not used, from {status.where}{whose}: {status.error}")
    known = f"{tools} when it was used last" if status.tools else "not started yet"
    return Part(status.name, "off", f"Resting until a question needs it, from {status.where}{whose}: {known}.")


def _settable() -> list[Part]:
    return [
        *map(_model, VENDORS),
        Part(
            "Voyage AI",
            "on" if settings.VOYAGE_API_KEY else "off",
            "Better passages: its vectors find what is meant, and its reranker puts the best one first.",
            variable="VOYAGE_API_KEY",
        ),
        Part(
            "Vectors of Gemini",
            "on" if settings.GEMINI_API_KEY else "off",
            "Passages found by Google’s vectors, where there is no Voyage key.",
            variable="GEMINI_API_KEY",
        ),
        Part(
            "Vectors of Ollama",
            "on" if settings.EMBEDDER == "ollama" else "off",
            "Passages found by a model on your own machine, with KLERAI_EMBEDDER=ollama.",
            variable="KLERAI_EMBEDDER",
        ),
        *_outside(),
        _stripe(),
        _mail(),
        Part(
            "Redis",
            "on" if settings.REDIS_URL else "off",
            "Several processes wake each other at once. One process does not need it.",
            variable="REDIS_URL",
        ),
        Part(
            "Your own database",
            "on" if not settings.LOCAL_MODE else "off",
            "A PostgreSQL server with pgvector that you look after. Until then KlerAI runs its own.",
            variable="DATABASE_URL",
        ),
    ]


def _model(vendor: Vendor) -> Part:
    """A vendor whose model could answer; one of them does, and one that is set up may stand in."""
    variable = f"{vendor.prefix}_{'API_KEY' if vendor.needs_key else 'BASE_URL'}"
    if vendor.strategy == settings.STRATEGY:
        return Part(vendor.title, "on", vendor.benefit, variable=variable)
    if settings.MODEL_ACCESS[vendor.strategy].is_set:
        chosen = f"{vendor.benefit} It is set up; KLERAI_STRATEGY={vendor.strategy} lets it answer."
        return Part(vendor.title, "off", chosen, variable="KLERAI_STRATEGY")
    return Part(vendor.title, "off", vendor.benefit, variable=variable)


def _outside() -> list[Part]:
    return [
        Part(
            "Context7",
            "on" if settings.CONTEXT7.key else "off",
            "More documentation of products: without a key Context7 answers few questions.",
            variable="CONTEXT7_API_KEY",
        ),
        Part(
            "Perplexity",
            "on" if settings.PERPLEXITY_API_KEY else "off",
            "Answers from the web with their sources, where your documents do not suffice.",
            variable="PERPLEXITY_API_KEY",
        ),
        Part(
            "GitHub",
            "on" if settings.MCP.github.token else "off",
            "Code, issues and pull requests for everybody. Each person may also add a token of their own.",
            variable="GITHUB_PERSONAL_ACCESS_TOKEN",
        ),
        Part(
            "MCP servers",
            "on" if settings.MCP.servers else "off",
            "Tools of your own choice, from a file in the form other clients use.",
            variable="KLERAI_MCP_SERVERS",
        ),
    ]


def _stripe() -> Part:
    match settings.STRIPE.seller:
        case "stripe" if settings.STRIPE.is_live:
            return Part("Stripe", "on", "Plans and packs are sold.", variable="STRIPE_SECRET_KEY")
        case "stripe":
            words = "Plans and packs are sold for test cards only: the key is one of Stripe’s test mode."
            return Part("Stripe", "on", words, variable="STRIPE_SECRET_KEY")
    words = "Plans and packs for sale. It needs STRIPE_WEBHOOK_SECRET beside it."
    if settings.STRIPE.seller == "local":
        words += " Until then a test checkout rehearses it on this machine, without a card."
    return Part("Stripe", "off", words, variable="STRIPE_SECRET_KEY")


def _mail() -> Part:
    words = "Confirmation and reset mails reach people."
    match settings.DELIVERY:
        case Smtp():
            return Part("E-mail", "on", words, variable="EMAIL_URL")
        case Folder() if settings.LOCAL_MODE:
            until = f"{words} Until then they are kept on this machine."
            return Part("E-mail", "off", until, variable="EMAIL_URL", link="/local/mail/", link_words="Read them")
        case Folder() | Console():
            return Part(
                "E-mail", "on", "Mails are written where this server's operator reads them.", variable="EMAIL_URL"
            )
        case _:
            return Part("E-mail", "off", words, variable="EMAIL_URL")
