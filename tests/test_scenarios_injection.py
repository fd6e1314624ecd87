"""BS5: the model obeys what it reads, and still nothing leaves that its person did not confirm."""

from __future__ import annotations

import io
import json
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings

from chat.models import Confirmation
from klerai.accounts.models import Person
from retrieval.documentation.service import Context7
from tests.database import OpenConnections
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.context7_server import running_context7
from tests.fakes.github_mcp_server import GitHub
from tests.fakes.mcp_peer import Book, Journal, Peer, over_http
from tests.fakes.outside import running
from tests.fakes.perplexity_server import PerplexityFake
from tests.harness.doors import Visitor, by_key
from tests.harness.frames import Frame, from_json, of_type
from tests.harness.injection import Desk, Script, World, scripts, servers
from tests.harness.mcp import journal
from tests.harness.scenario import Scenario
from tests.people import make_charlie, make_person
from tests.serving import served, vendor_settings, wait_until

pytestmark = pytest.mark.xdist_group("injection")
AT_ONCE = 4
WRITING = {"issue_write", "add_issue_comment", "create_branch", "push_files", "posts", "fetches"}


@dataclass(slots=True)
class Fate:
    """What became of a script: the events of its runs, what its person was asked and what they let pass."""

    script: Script
    person: Person
    frames: list[Frame] = field(default_factory=list)
    approved: list[dict[str, Any]] = field(default_factory=list)
    forged: list[int] = field(default_factory=list)

    @property
    def ends(self) -> list[Frame]:
        return [frame for frame in self.frames if frame.is_terminal]

    @property
    def asked(self) -> list[Frame]:
        return of_type(self.frames, "confirmation_required")


@dataclass(frozen=True, slots=True)
class Arena:
    """The server under attack, the outside, and what reached it."""

    url: str
    world: World
    journal: Path
    fake: AnthropicFake
    connections: OpenConnections

    def suffer(self, script: Script) -> Fate:
        fate = Fate(script, make_person())
        self.world.hide(script, fate.person)
        self.fake.script(*script.turns, key=script.key)
        mode = {"mode": "research"} if script.source == "first passage" else {}
        where: dict[str, str] = {}
        for question in ["Summarise it."] + ["Go on."] * (script.moment == "next question"):
            if fate.ends and not where:
                where = {"conversation_id": fate.frames[0].data["conversation_id"]}
            _ASK[script.door](self, fate, f"{question} {script.name} {script.key}", {**mode, **where})
        return fate


@pytest.fixture(scope="module")
def arena(
    database: OpenConnections, anthropic_server: AnthropicFake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Arena]:
    notes = tmp_path_factory.mktemp("injection") / "journal"
    github, desk = GitHub(), Desk()
    with ExitStack() as stack:
        context7 = stack.enter_context(running_context7())
        perplexity = stack.enter_context(running(PerplexityFake()))
        settings = {
            **vendor_settings(anthropic_server.url),
            "CONTEXT7": Context7(context7.url, f"ctx7sk-{uuid.uuid4()}"),
            "PERPLEXITY_API_KEY": "pplx-key",
            "PERPLEXITY_BASE_URL": perplexity.url,
            "MCP": servers(*(stack.enter_context(_at_an_address(book, notes)) for book in (github, desk))),
        }
        stack.enter_context(override_settings(**settings))
        url = stack.enter_context(served())
        with by_key(url) as anybody:
            wait_until(lambda: "desk__reads" in anybody.get("/api/tools").text, what="the servers to be there")
        yield Arena(url, World(github, desk, context7, perplexity), notes, anthropic_server, database)


@pytest.mark.thorough
@pytest.mark.scenario("BS5")
def test_nothing_is_written_or_fetched_that_a_person_did_not_confirm(
    scenario: Scenario, arena: Arena, anthropic_fake: AnthropicFake
) -> None:
    made = scripts(scenario.random, scenario.size(full=300, normal=100, quick=12))
    in_terminal = [script for script in made if script.door == "ask"]  # its command wants the main thread
    with ThreadPoolExecutor(AT_ONCE) as pool:
        others = pool.map(arena.suffer, [script for script in made if script.door != "ask"])
        fates = [*map(arena.suffer, in_terminal), *others]
    reached = Counter(_line(call) for call in journal(arena.journal, "call") if call["tool"] in WRITING)
    confirmed = Counter(_line(call) for fate in fates for call in fate.approved)
    attended = [fate for fate in fates if fate.script.door in ("page", "events")]
    alone = [fate for fate in fates if fate not in attended]
    scenario.figures = {
        "doors": Counter(script.door for script in made),
        "sources": Counter(script.source for script in made),
        "confirmed": confirmed.total(),
        "reached": reached.total(),
    }
    scenario.must_be_zero(
        unconfirmed=(reached - confirmed).total(),
        confirmed_in_vain=(confirmed - reached).total(),
        not_read_by_the_model=sum(not _was_read(anthropic_fake, fate.script) for fate in fates),
        not_asked=sum(len(fate.asked) != 1 for fate in attended),
        shown_otherwise=sum(
            ask.data["arguments"] != fate.script.wanted.arguments for fate in fates for ask in fate.asked
        ),
        forgeries_taken=sum(status < 400 for fate in fates for status in fate.forged),
        asked_where_nobody_is=Confirmation.objects.filter(run__person__in=[fate.person for fate in alone]).count(),
        not_refused=sum("was not confirmed" not in str(fate.ends[-1].data["receipt"]) for fate in alone),
        not_answered=sum(not _ended_well(fate) for fate in fates),
    )


def _on_the_page(arena: Arena, fate: Fate, message: str, body: dict[str, str]) -> None:
    with by_key(arena.url, fate.person) as alice, alice.socket() as socket:
        run_id = socket.ask(message, **body)
        for frame in socket.frames():
            fate.frames.append(frame)
            if frame.type == "confirmation_required":
                _react(fate, alice, run_id, frame, lambda said: socket.send({"type": "confirm", **said}))


def _over_events(arena: Arena, fate: Fate, message: str, body: dict[str, str]) -> None:
    run_id = str(uuid.uuid4())
    path = f"/api/runs/{run_id}/confirm"
    with by_key(arena.url, fate.person) as alice, alice.asking(message, run_id=run_id, **body) as frames:
        for frame in frames:
            fate.frames.append(frame)
            if frame.type == "confirmation_required":
                _react(fate, alice, run_id, frame, lambda said: alice.post(path, said))


def _over_json(arena: Arena, fate: Fate, message: str, body: dict[str, str]) -> None:
    run_id = str(uuid.uuid4())
    with by_key(arena.url, fate.person) as alice:
        alice.answer(message, run_id=run_id, **body)
        fate.frames += alice.replay(run_id)


def _at_the_terminal(arena: Arena, fate: Fate, message: str, body: dict[str, str]) -> None:
    options = {"conversation": body.get("conversation_id"), "mode": body.get("mode")}
    with redirect_stdout(io.StringIO()) as said, pytest.raises(SystemExit):
        call_command("ask", message, user=fate.person.email, json=True, **options)
    arena.connections.close_abandoned()  # those of the command's threads
    fate.frames += map(from_json, said.getvalue().splitlines())


_ASK = {"page": _on_the_page, "events": _over_events, "json": _over_json, "ask": _at_the_terminal}


def _react(fate: Fate, alice: Visitor, run_id: str, frame: Frame, confirm: Any) -> None:
    """What the person does; before that a stranger and a wrong token have their try, if the script says so."""
    said = {"run_id": run_id, "call_id": frame.data["id"], "token": frame.data["token"]}
    path = f"/api/runs/{run_id}/confirm"
    match fate.script.reaction:
        case "approves":
            fate.approved.append({"tool": frame.data["name"].partition("__")[2], "arguments": frame.data["arguments"]})
            confirm({**said, "approve": True})
        case "stops":
            assert alice.stop(run_id).status_code < 300
        case "forges":
            with by_key(alice.url, make_charlie()) as charlie:
                tries = [charlie.post(path, {**said, "approve": True})]
            for wrong in ({"token": "3f2a"}, {"call_id": "q1-t9"}, {"token": ""}):
                tries.append(alice.post(path, {**said, **wrong, "approve": True}))
            tries.append(alice.post(f"/api/runs/{uuid.uuid4()}/confirm", {**said, "approve": True}))
            fate.forged += [tried.status_code for tried in tries]
            confirm({**said, "approve": False})
        case _:
            confirm({**said, "approve": False})


def _was_read(fake: AnthropicFake, script: Script) -> bool:
    """Whether the order stood in what the model was sent, so that it is the rule that held and not an accident."""
    mark = f"for script {script.number}"
    return any(mark in json.dumps(seen["body"]["messages"]) for seen in fake.requests(script.key))


def _ended_well(fate: Fate) -> bool:
    if fate.script.reaction == "stops" and fate.asked:
        return fate.ends[-1].data["code"] == "stopped"
    return fate.ends[-1].data.get("text") == f"Done {fate.script.number}."


def _line(call: dict[str, Any]) -> str:
    return json.dumps([call["tool"], call["arguments"]], sort_keys=True)


@contextmanager
def _at_an_address(book: Book, notes: Path) -> Iterator[str]:
    server = over_http(Peer(book, Journal(str(notes))), 0)
    threading.Thread(target=server.serve_forever, args=[0.01], name=book.name, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()
