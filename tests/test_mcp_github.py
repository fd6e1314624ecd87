"""GitHub out of the box: by Docker or at its address, read-only, with a person's own token for that person alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chat.mcp.configuration import GitHubSettings
from chat.models import GitHubToken, Item
from chat.tools.retrieve_full_context import TOOL as REOPEN
from klerai.accounts.models import Person
from tests.credit_people import with_packs
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.calling import told
from tests.harness.doors import Visitor, by_key, by_session
from tests.harness.mcp import http_server, journal, serving_with
from tests.harness.tools import by_name, says_at_once, tool
from tests.people import make_charlie, make_person
from tests.processes import REPOSITORY
from tests.serving import wait_until

OPERATORS, ALICES, CHARLIES = "ghp_of_the_operator_0001", "github_pat_of_alice_00002", "github_pat_of_charlie_003"
README = Call("github__get_file_contents", {"owner": "octocat", "repo": "hello", "path": "README.md"})
ISSUE = Call("github__issue_read", {"method": "get", "owner": "octocat", "repo": "hello", "issue_number": 7})
LOST = Call("github__issue_read", {"method": "get", "owner": "octocat", "repo": "hello", "issue_number": 404})
DOCS = Call("reads_docs", {})
BUILT_IN = by_name(REOPEN, tool("reads_docs", says_at_once("A page."), category="documentation"))


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("github") / "journal"


@pytest.fixture(scope="module")
def workshop(database: object, anthropic_server: AnthropicFake, notes: Path) -> Iterator[str]:
    """A server whose operator gave no token, with GitHub at an address."""
    with (
        http_server("github_mcp_server", "--journal", str(notes)) as address,
        serving_with(anthropic_server, github=GitHubSettings(url=address), tools=BUILT_IN) as url,
    ):
        yield url


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` that has the official image and runs our server for it; its journal."""
    notes, program = tmp_path / "journal", tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "image inspect" ] && exit 0\n'
        f'echo "$@" > {tmp_path}/asked\ncd {REPOSITORY}\n'
        f"exec {sys.executable} -m tests.fakes.github_mcp_server --journal {notes}\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return notes


def with_token(workshop: str, token: str, person: Person | None = None) -> Visitor:
    """Somebody who saved a token on the settings page."""
    alice = by_session(workshop, person or make_person())
    saved = alice.http.post("/settings/github/", data={"token": f" {token}\n"})
    assert saved.status_code == 302, saved.text
    return alice


@pytest.fixture(scope="module")
def buyer(workshop: str) -> Iterator[Visitor]:
    """Somebody with a token and credits for many questions."""
    with with_token(workshop, ALICES, with_packs(200)) as alice:
        yield alice


@pytest.mark.parametrize(
    ("wanted", "credits"),
    [
        ((), 5),
        ((DOCS,), 15),
        ((DOCS, DOCS), 15),
        ((DOCS, README, ISSUE), 21),
        ((README, ISSUE), 11),
        ((LOST,), 5),
        ((DOCS, LOST, README), 18),
    ],
)
def test_a_question_costs_what_its_documentation_and_github_calls_cost(
    buyer: Visitor, anthropic_fake: AnthropicFake, wanted: tuple[Call, ...], credits: int
) -> None:
    anthropic_fake.script(*([calls(*wanted)] if wanted else []), says("Done."))
    assert buyer.answer("Look it up.")["receipt"]["credits"] == credits


def test_a_file_is_a_source_to_cite_and_its_card_leads_to_github(workshop: str, anthropic_fake: AnthropicFake) -> None:
    with with_token(workshop, ALICES) as alice:
        anthropic_fake.script(calls(README, ISSUE), says("Install it with pip [1]."))
        answer = alice.answer("How is it installed?")
        page = alice.get(f"/chat/{answer['conversation_id']}/").text
    (citation,) = answer["citations"]
    url = "https://github.com/octocat/hello/blob/main/README.md"
    assert (citation["origin"], citation["url"], citation["section"]) == ("github", url, "README.md")
    assert citation["title"] == "octocat/hello"
    assert "pip install hello" in citation["quote"]
    assert f'href="{url}"' in page
    assert 'href="https://github.com/octocat/hello/issues/7"' in page
    assert "GitHub: Get file or directory contents: octocat/hello, README.md" in page
    assert "#7 It says goodbye, open" in page
    assert "Used GitHub · 2 tools" in page
    assert "11 credits · 2 GitHub calls" in page
    assert "GitHub: get file contents" in page
    kept = Item.objects.filter(conversation_id=answer["conversation_id"], kind="tool").order_by("position")
    assert [item.ref for item in kept] == ["q1-t1", "q1-t2"]
    assert "# Hello" in kept[0].content


def test_an_error_of_github_is_told_in_its_own_words(workshop: str, anthropic_fake: AnthropicFake) -> None:
    with with_token(workshop, ALICES) as alice:
        seen = told(workshop, anthropic_fake, LOST, person=alice.person)
    assert seen.texts[0].startswith("failed to get issue: GET https://api.github.com/")


def test_each_person_s_own_token_serves_that_person_and_nobody_else(
    workshop: str, anthropic_fake: AnthropicFake, notes: Path
) -> None:
    notes.write_text("")
    charlie, stranger = make_charlie(), make_person()
    with with_token(workshop, ALICES) as alice, with_token(workshop, CHARLIES, charlie) as other:
        told(workshop, anthropic_fake, README, person=alice.person)
        assert {line["token"] for line in journal(notes)} == {ALICES}
        anthropic_fake.reset()
        told(workshop, anthropic_fake, ISSUE, person=other.person)
        assert [line["tool"] for line in journal(notes, "call") if line["token"] == CHARLIES] == ["issue_read"]
    anthropic_fake.reset()
    seen = told(workshop, anthropic_fake, README, person=stranger)
    assert seen.texts[0].startswith("Refused: there is no tool named 'github__get_file_contents'.")
    assert len(journal(notes, "call")) == 2
    with by_key(workshop, stranger) as nobody, by_key(workshop, charlie) as owner:
        assert not any("github" in each["name"] for each in nobody.get("/api/tools").json()["results"])
        listed = {each["name"]: each for each in owner.get("/api/tools").json()["results"]}
    assert (listed["github__issue_read"]["category"], listed["github__issue_read"]["price"]) == ("github", 3)


def test_a_token_that_is_removed_closes_its_session_and_is_gone(
    workshop: str, anthropic_fake: AnthropicFake, notes: Path
) -> None:
    token = "github_pat_soon_removed_4"
    with with_token(workshop, token) as alice:
        told(workshop, anthropic_fake, README, person=alice.person)
        stored = GitHubToken.objects.get(person=alice.person)
        assert token not in stored.cipher
        page = alice.get("/settings/").text
        assert token not in page
        assert f"<code>{token[-4:]}</code>" in page
        assert alice.http.post("/settings/github/remove/").status_code == 302
        wait_until(lambda: token in [line["token"] for line in journal(notes, "end")], what="the session to close")
        assert not GitHubToken.objects.filter(person=alice.person).exists()
        assert alice.http.post("/settings/github/remove/").status_code == 404
        anthropic_fake.reset()
        assert told(workshop, anthropic_fake, README, person=alice.person).items[-1] == ("blocked", 0)


@pytest.mark.thorough
def test_a_token_that_was_removed_elsewhere_is_not_used_again(
    workshop: str, anthropic_fake: AnthropicFake, notes: Path
) -> None:
    token = "github_pat_removed_there_5"
    with with_token(workshop, token) as alice:
        told(workshop, anthropic_fake, README, person=alice.person)
        GitHubToken.objects.filter(person=alice.person).delete()
        anthropic_fake.reset()
        assert told(workshop, anthropic_fake, README, person=alice.person).items[-1] == ("blocked", 0)
        wait_until(lambda: token in [line["token"] for line in journal(notes, "end")], what="the session to close")


@pytest.mark.thorough
def test_a_token_that_was_removed_in_another_process_closes_the_session_here(
    docker: Path, database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake
) -> None:
    with (
        serving_with(anthropic_server, github=GitHubSettings(), look_seconds=0.2) as url,
        with_token(url, ALICES) as alice,
        with_token(url, CHARLIES, make_charlie()) as charlie,
    ):
        told(url, anthropic_fake, README, person=alice.person)
        anthropic_fake.reset()
        told(url, anthropic_fake, README, person=charlie.person)
        GitHubToken.objects.filter(person=alice.person).delete()
        wait_until(lambda: journal(docker, "end"), what="the session to close")
        assert [line["token"] for line in journal(docker, "end")] == [ALICES]


def test_what_is_no_token_is_refused_in_words(workshop: str) -> None:
    with by_session(workshop) as alice:
        refused = alice.http.post("/settings/github/", data={"token": "my password"})
        assert refused.status_code == 422
        assert "This is not a GitHub token." in refused.text
        assert not GitHubToken.objects.filter(person=alice.person).exists()


@pytest.mark.thorough
def test_a_token_that_github_refuses_is_said_on_the_setup_page_and_holds_up_nobody(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    with with_token(workshop, "github_pat_refused_00006") as alice:
        seen = told(workshop, anthropic_fake, README, person=alice.person)
        assert seen.items[-1] == ("blocked", 0)
        assert "It refused the key it was given (HTTP 401)." in alice.get("/setup/").text


def test_docker_runs_the_official_image_read_only_with_the_operator_s_token(
    docker: Path, database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake
) -> None:
    with serving_with(anthropic_server, github=GitHubSettings(OPERATORS)) as url:
        seen = told(url, anthropic_fake, README, Call("github__issue_write", {"method": "create"}))
        assert seen.items == [("base", 5), ("github", 3), ("blocked", 0)]
        offered = [each["name"] for each in anthropic_fake.requests()[0]["body"]["tools"]]
    asked = (docker.parent / "asked").read_text()
    assert asked.startswith("run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ")
    assert asked.strip().endswith(" ghcr.io/github/github-mcp-server")
    assert OPERATORS not in asked
    (start,) = journal(docker, "start")
    assert (start["token"], start["read_only"]) == (OPERATORS, "1")
    assert "github__get_me" in offered
    assert "github__issue_write" not in offered
    assert len(journal(docker, "end")) == 1


@pytest.mark.thorough
def test_writing_tools_are_offered_only_where_the_operator_allows_them(
    docker: Path, database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake
) -> None:
    with serving_with(anthropic_server, github=GitHubSettings(OPERATORS, may_write=True)) as url:
        told(url, anthropic_fake, README)
        offered = [each["name"] for each in anthropic_fake.requests()[0]["body"]["tools"]]
    assert {"github__issue_write", "github__push_files"} <= set(offered)
    assert journal(docker, "start")[0]["read_only"] == ""


@pytest.mark.thorough
def test_a_person_s_own_token_takes_the_place_of_the_operator_s(
    docker: Path, database: object, anthropic_server: AnthropicFake, anthropic_fake: AnthropicFake
) -> None:
    with serving_with(anthropic_server, github=GitHubSettings(OPERATORS)) as url, with_token(url, ALICES) as alice:
        told(url, anthropic_fake, README, person=alice.person)
        anthropic_fake.reset()
        told(url, anthropic_fake, README, person=make_charlie())
    assert [line["token"] for line in journal(docker, "call")] == [ALICES, OPERATORS]
