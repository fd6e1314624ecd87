"""`manage.py ask`: one run in the terminal, through the same orchestrator, charged to a person."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
import sys
from contextlib import aclosing
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chat.asking import ask, follow
from chat.confirming import Answer, confirm
from chat.errors import Refusal
from chat.eventlog import frame
from chat.events import ConfirmationRequired, Logged, MessageComplete
from chat.models import Run
from chat.shapes import refusal_frame
from chat.stopping import request_stop
from chat.terminal import Terminal
from chat.wiring import Runtime
from klerai.accounts.demo import DEMO_EMAIL
from klerai.accounts.models import Person
from klerai.database import in_database

ANSWERED, ENDED_IN_ERROR, BAD_USAGE, NO_CREDITS, INTERRUPTED = 0, 1, 2, 3, 130


class Command(BaseCommand):
    help = "Ask a question in the terminal. Exit 0 answered, 1 error, 2 bad usage, 3 insufficient credits, 130 stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("question")
        parser.add_argument("--mode")
        parser.add_argument("--user", metavar="EMAIL", default=DEMO_EMAIL)
        parser.add_argument("--conversation", metavar="ID")
        parser.add_argument("--json", action="store_true", help="one event a line")
        parser.add_argument("--context-type", metavar="T")
        parser.add_argument("--context", metavar="JSON", type=_json)

    def handle(self, *args: Any, **options: Any) -> None:
        person = Person.objects.filter(email=options["user"].lower(), is_active=True).first()
        if person is None:
            raise CommandError(f"There is no account {options['user']}. Nothing was charged.", returncode=BAD_USAGE)
        body = {
            "message": options["question"],
            "mode": options["mode"],
            "conversation_id": options["conversation"],
            "context_type": options["context_type"],
            "context": options["context"],
        }
        asked = {name: value for name, value in body.items() if value is not None}
        logging.getLogger("chat").setLevel(logging.WARNING)  # the terminal shows the run itself
        sys.exit(asyncio.run(_ask(person, asked, as_json=options["json"])))


async def _ask(person: Person, body: dict[str, Any], *, as_json: bool) -> int:
    runtime = await Runtime.start()
    try:
        try:
            run = await ask(runtime, person, body, is_attended=not as_json and sys.stdin.isatty())
        except Refusal as refusal:
            return _refused(refusal, as_json=as_json)
        with _ctrl_c_stops(runtime, person, run):
            terminal = await _show(runtime, person, run, as_json=as_json)
        return _exit_code(terminal)
    finally:
        await runtime.stop(seconds=5)


async def _show(runtime: Runtime, person: Person, run: Run, *, as_json: bool) -> Logged:
    screen = Terminal()
    async with aclosing(follow(runtime, run)) as events:
        async for event in events:
            if as_json:
                print(frame(run.run_id, event).decode(), flush=True)
            else:
                screen.show(event)
                if event.type == ConfirmationRequired.type:
                    await _confirm(person, run, event, screen)
            if event.is_terminal:
                return event
    raise CommandError("The run ended elsewhere. Nothing was charged.", returncode=ENDED_IN_ERROR)


async def _confirm(person: Person, run: Run, event: Logged, screen: Terminal) -> None:
    """Ask at the terminal; anything but a clear yes is a no."""
    said = await asyncio.to_thread(screen.ask, event.data["name"], event.data["arguments"])
    with contextlib.suppress(Refusal):  # decided elsewhere in the meantime
        answer = Answer(event.data["id"], event.data["token"], said)
        await in_database(confirm, person, run.run_id, answer)


@contextlib.contextmanager
def _ctrl_c_stops(runtime: Runtime, person: Person, run: Run) -> Any:
    """Ctrl-C asks the run to stop; it then ends in its own way, with its receipt."""
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[Any]] = []

    def stop() -> None:
        stopping.append(asyncio.create_task(in_database(request_stop, person, run.run_id)))
        runtime.runner.stop(run.pk)

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _refused(refusal: Refusal, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(refusal_frame(refusal, run_id=None)))
    else:
        print(refusal.message, file=sys.stderr)
    return NO_CREDITS if refusal.code == "insufficient_credits" else BAD_USAGE


def _exit_code(terminal: Logged) -> int:
    if terminal.type == MessageComplete.type:
        return INTERRUPTED if terminal.data.get("stopped") else ANSWERED
    match terminal.data["code"]:
        case "insufficient_credits":
            return NO_CREDITS
        case "stopped":
            return INTERRUPTED
    return ENDED_IN_ERROR


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be JSON") from None
