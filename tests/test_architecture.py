"""The shape of the code: layers, faces, one file for each SDK, one noun a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("klerai", "chat", "billing", "retrieval")
MOST_LINES = 300

# From the top down. A module may import from lower layers and, unless its layer keeps siblings apart, its own.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("klerai.urls", "klerai.asgi", "klerai.serving", "klerai.settings", "klerai.management", "klerai.setup_page"),
    ("klerai.legal_pages", "klerai.api_docs"),
    ("klerai.recipients",),
    ("chat.routing", "chat.urls_pages"),
    ("chat.consumers", "chat.views", "chat.management", "chat.admin", "chat.tasks", "chat.terminal"),
    (
        "chat.asking",
        "chat.answer_links",
        "chat.live_html",
        "chat.shapes",
        "chat.stopping",
        "chat.invariants",
        "chat.compaction",
        "chat.export",
        "chat.departure",
        "chat.ledger_check",
        "chat.movements",
        "chat.spending",
    ),
    ("chat.wiring",),
    ("chat.runner", "chat.follow_up", "chat.sweeper", "chat.mcp"),
    ("chat.intake", "chat.endings", "chat.orchestrator", "chat.confirming", "chat.deadlines"),
    (
        "chat.loop",
        "chat.hearing",
        "chat.closing",
        "chat.duties",
        "chat.first_retrieval",
        "chat.metering",
        "chat.shortage",
        "chat.eventlog",
        "chat.eventrows",
        "chat.cards",
    ),
    ("chat.strategies", "chat.tools", "chat.memory", "chat.rendering", "chat.templatetags"),
    (
        "chat.models",
        "chat.queries",
        "chat.quotes",
        "chat.transcript",
        "chat.vault",
        "chat.wakeups",
        "chat.redis_wakeups",
        "chat.markdown_blocks",
        "chat.passages",
        "chat.web_passages",
    ),
    (
        "chat.messages",
        "chat.marks",
        "chat.moments",
        "chat.sources",
        "chat.events",
        "chat.profiles",
        "chat.errors",
        "chat.limits",
        "chat.questions",
        "chat.partial_json",
        "chat.structured",
    ),
    ("billing", "retrieval"),
    ("klerai.accounts", "klerai.admin_site"),
    (
        "klerai.api",
        "klerai.pagination",
        "klerai.json_schema",
        "klerai.mail_queue",
        "klerai.models",
        "klerai.health",
        "klerai.error_pages",
    ),
    (
        "klerai.env",
        "klerai.http",
        "klerai.postgres",
        "klerai.database",
        "klerai.failpoints",
        "klerai.mail",
        "klerai.logs",
        "klerai.encryption",
    ),
)
APART = {"billing", "retrieval", "chat.strategies", "chat.tools", "chat.memory", "chat.rendering", "chat.mcp"}
FACES = {
    "billing": {
        *("credits", "pricing", "plans", "audit", "errors", "shop", "closing", "records"),
        *("stripe_settings", "webhook", "local_pages", "packs", "usage", "checkup", "money"),
    },
    "retrieval": {
        *("search", "docs", "documentation", "embedders", "knowledge", "passages", "ingestion", "errors"),
        *("bases", "contents", "extracts", "emphasis", "web_results", "belongings", "quotas"),
    },
}
PURE = (
    "chat.messages",
    "chat.marks",
    "chat.moments",
    "chat.sources",
    "chat.events",
    "chat.profiles",
    "chat.errors",
    "chat.limits",
    "chat.questions",
    "chat.partial_json",
    "chat.structured",
)
FOUNDATIONS = ("klerai.env", "klerai.http", "klerai.postgres")
SDKS = {
    "anthropic": {"chat.strategies.anthropic"},
    "openai": {"chat.strategies.openai_compatible"},
    "stripe": {"billing.stripe_gateway"},
    "mcp": {"chat.mcp.session"},
    "mcp_types": {"chat.mcp.session"},
    "voyageai": {"retrieval.embedders.voyage"},
}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


# What can open a connection, and who uses it. Beside the door and the SDKs these are those who listen, and those who
# name the errors of an SDK.
NETWORKS = {
    "httpcore2": {"klerai.http"},
    "aiohttp": {"retrieval.embedders.voyage"},
    "socket": {"klerai.http", "klerai.instance", "klerai.serving"},
    **{name: set() for name in ("httpx", "httpcore", "requests", "urllib3", "urllib.request", "http.client")},
    **{name: set() for name in ("websockets", "websocket", "smtplib", "ftplib", "telnetlib", "pycurl")},
}
CONNECTS = {
    *("AsyncClient", "Client", "AsyncHTTPTransport", "HTTPTransport", "request", "stream"),
    *("get", "options", "head", "post", "put", "patch", "delete"),
}


@cache
def sources() -> dict[str, Path]:
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return {module_name(file): file for file in files if "migrations" not in file.parts}


@cache
def imports_of(module: str) -> frozenset[str]:
    """Every module a module imports, wherever in it the import stands."""
    return frozenset(_imports(ast.parse(sources()[module].read_text())))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in sources() else node.module


def is_under(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def layer_of(module: str) -> tuple[int, str] | None:
    found = [(depth, name) for depth, names in enumerate(LAYERS) for name in names if is_under(module, name)]
    return max(found, key=lambda entry: len(entry[1]), default=None)


def test_no_layer_imports_a_higher_one() -> None:
    wrong = []
    for module in sources():
        here = layer_of(module)
        for target in imports_of(module):
            there = layer_of(target)
            if here is not None and there is not None and there[0] < here[0]:
                wrong.append(f"{module} imports {target}")
    assert not wrong


def test_siblings_that_stand_apart_do_not_import_each_other() -> None:
    wrong = []
    for module in sources():
        here = layer_of(module)
        for target in imports_of(module):
            there = layer_of(target)
            if here and there and here[0] == there[0] and here[1] != there[1] and {here[1], there[1]} & APART:
                wrong.append(f"{module} imports {target}")
    assert not wrong


def test_every_module_of_the_chat_has_a_layer() -> None:
    plain = {"chat", "chat.apps"}
    assert [module for module in sources() if is_under(module, "chat") and not layer_of(module)] == sorted(
        plain & set(sources())
    )


@pytest.mark.parametrize("package", sorted(FACES))
def test_others_see_a_package_by_its_faces_only(package: str) -> None:
    wrong = [
        f"{module} imports {target}"
        for module in sources()
        if not is_under(module, package)
        for target in imports_of(module)
        if is_under(target, package) and target.split(".")[1:2] and target.split(".")[1] not in FACES[package]
    ]
    assert not wrong


def test_billing_and_retrieval_never_look_up_to_the_chat() -> None:
    wrong = [
        f"{module} imports {target}"
        for module in sources()
        if module.split(".")[0] in FACES
        for target in imports_of(module)
        if is_under(target, "chat")
    ]
    assert not wrong


def test_the_foundations_import_nothing_of_ours() -> None:
    wrong = [
        f"{module} imports {target}"
        for module in sources()
        for foundation in FOUNDATIONS
        if is_under(module, foundation)
        for target in imports_of(module)
        if target.split(".")[0] in PACKAGES and not is_under(target, foundation)
    ]
    assert not wrong


@pytest.mark.parametrize("module", PURE)
def test_the_vocabulary_of_the_chat_knows_no_framework(module: str) -> None:
    outside = {target for target in imports_of(module) if target.split(".")[0] in {"django", "channels", "klerai"}}
    assert not outside


@pytest.mark.parametrize("sdk", sorted(SDKS))
def test_an_sdk_is_imported_in_one_file(sdk: str) -> None:
    users = {module for module in sources() if any(is_under(target, sdk) for target in imports_of(module))}
    assert users == SDKS[sdk]


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_only_the_door_outwards_and_the_files_of_sdks_open_connections(network: str) -> None:
    users = {module for module in sources() if any(is_under(target, network) for target in imports_of(module))}
    assert users == NETWORKS[network]


def test_clients_are_made_by_the_door_outwards() -> None:
    """Others may take one from it and name httpx2's types and errors."""
    makers = set()
    for module, file in sources().items():
        if not any(is_under(target, "httpx2") for target in imports_of(module)):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="httpx2"), attr=name)) if name in CONNECTS:
                    makers.add(module)
                case ast.ImportFrom(module="httpx2"):
                    makers.add(module)
    assert makers == {"klerai.http"}


def test_nobody_opens_a_bare_connection() -> None:
    bare = {"open_connection", "create_connection", "open_unix_connection", "create_datagram_endpoint"}
    users = {
        module
        for module, file in sources().items()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute | ast.Name)
        and (node.attr if isinstance(node, ast.Attribute) else node.id) in bare
    }
    assert not users


def test_a_module_has_one_noun_and_fits_in_300_lines() -> None:
    long = {name: len(file.read_text().splitlines()) for name, file in sources().items()}
    assert {name: lines for name, lines in long.items() if lines > MOST_LINES} == {}


def test_a_function_fits_a_screen() -> None:
    long = []
    for module, file in sources().items():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > 50:
                    long.append(f"{module}.{node.name} has {lines} lines")
    assert not long


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}
    assert [module for module in sources() if module.rpartition(".")[2] in drawers] == []


def test_only_the_gate_reads_conversations_and_runs_in_the_doors() -> None:
    doors = ("chat.views", "chat.consumers", "chat.shapes")
    wrong = [
        module
        for module, file in sources().items()
        if any(is_under(module, door) for door in doors)
        and any(
            f"{model}.objects.{verb}" in file.read_text()
            for model in ("Conversation", "Run", "Item")
            for verb in ("get", "filter", "all")
        )
    ]
    assert not wrong
