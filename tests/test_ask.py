"""`manage.py ask`: the same run in a terminal, with an exit code that says how it ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid

import pytest

from chat.models import Run
from tests.credit_people import with_packs
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import fails, says
from tests.harness.frames import from_json, logged
from tests.harness.knowledge import add_embedded, make_base
from tests.harness.soundness import charged, nothing_breaks
from tests.people import make_person
from tests.processes import REPOSITORY
from tests.serving import command_environment, run_command, vendor_environment, wait_until

SUM = "What is 17.5 % of 2,480?"


def test_an_answer_is_on_standard_output_and_all_about_it_on_standard_error() -> None:
    person = make_person()
    with nothing_breaks():
        done = run_command("ask", SUM, "--user", person.email)
    assert done.returncode == 0, done.stderr
    assert "434" in done.stdout
    assert "calculator" not in done.stdout.splitlines()[0]
    assert "Calculate 17.5 % of 2,480" in done.stderr
    assert "7 credits · 43 left" in done.stderr
    assert charged(Run.objects.get(person=person)) == 7


def test_with_json_every_event_is_a_line_and_the_same_as_in_the_log() -> None:
    person = make_person()
    done = run_command("ask", SUM, "--user", person.email, "--json")
    frames = [from_json(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert frames == logged(Run.objects.get(person=person).run_id)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["assistant", "grounded", "quick", "builder", "research"])
def test_every_mode_answers_the_same_question(mode: str) -> None:
    person = make_person()
    add_embedded(make_base(person), "Everybody has thirty days of leave a year.", title="Handbook")
    done = run_command("ask", "How many days of leave a year?", "--mode", mode, "--user", person.email)
    assert done.returncode == 0, done.stderr
    assert "thirty days of leave a year. [1]" in done.stdout
    assert "[1] Handbook (documents)" in done.stderr
    assert ("Confidence 75 %" in done.stderr) == (mode == "grounded")
    assert charged(Run.objects.get(person=person)) == (5 if mode == "research" else 7)


@pytest.mark.thorough
def test_a_conversation_is_continued_by_its_owner_only() -> None:
    alice, charlie = make_person(), make_person("charlie")
    first = run_command("ask", "Count to 3.", "--user", alice.email, "--json")
    where = from_json(first.stdout.splitlines()[0]).data["conversation_id"]
    hers = run_command("ask", "Count to 4.", "--user", alice.email, "--conversation", where, "--json")
    assert from_json(hers.stdout.splitlines()[0]).data["query_id"] == "q2"
    his = run_command("ask", "Count to 5.", "--user", charlie.email, "--conversation", where)
    nowhere = run_command("ask", "Count to 5.", "--user", charlie.email, "--conversation", str(uuid.uuid4()))
    assert (his.returncode, his.stderr) == (nowhere.returncode, nowhere.stderr)
    assert his.returncode == 2
    assert not Run.objects.filter(person=charlie).exists()


def test_too_few_credits_are_exit_code_3() -> None:
    poor = with_packs(4)
    done = run_command("ask", SUM, "--user", poor.email)
    assert done.returncode == 3
    assert "Nothing was charged" in done.stderr
    assert not Run.objects.filter(person=poor).exists()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [
        ("--user", "nobody@example.org"),
        ("--mode", "nonsense"),
        ("--nonsense",),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_bad_usage_is_exit_code_2_and_one_sentence(arguments: tuple[str, ...]) -> None:
    person = make_person()
    done = run_command("ask", SUM, *(() if "--user" in arguments else ("--user", person.email)), *arguments)
    assert done.returncode == 2
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr
    assert not Run.objects.filter(person=person).exists()


@pytest.mark.thorough
def test_a_model_that_fails_is_exit_code_1(anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(fails(400), forever=True)
    person = make_person()
    done = run_command("ask", "Hello?", "--user", person.email, **vendor_environment(anthropic_fake.url))
    assert done.returncode == 1
    assert "Nothing was charged" in done.stderr
    assert charged(Run.objects.get(person=person)) == 0


@pytest.mark.thorough
def test_ctrl_c_stops_the_run_which_then_ends_with_its_receipt(anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("word " * 500, each_ms=20), forever=True)
    person = make_person()
    with nothing_breaks():
        process = subprocess.Popen(
            [sys.executable, "manage.py", "ask", "Tell me.", "--user", person.email, "--json"],
            cwd=REPOSITORY,
            env=command_environment(**vendor_environment(anthropic_fake.url)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: any(_has_words(run) for run in Run.objects.filter(person=person)), what="the first words")
        process.send_signal(signal.SIGINT)
        written, _ = process.communicate(timeout=20)
        end = json.loads(written.splitlines()[-1])
        assert process.returncode == 130
        assert end["data"]["stopped"]
        run = Run.objects.get(person=person)
        assert run.state == "stopped"
        assert charged(run) == 5


def _has_words(run: Run) -> bool:
    return run.events.filter(type="content_chunk").exists()
