"""How servers are set up and looked after: the operator's file, the admin's rows, and the setup page."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from chat.mcp.configuration import McpSettings, mcp_settings
from chat.mcp.specs import Address, Process, ServerSpec
from chat.models import McpServer
from klerai.encryption import decrypt
from klerai.env import BadSetting, Environment
from tests.fakes.anthropic import AnthropicFake
from tests.harness.doors import by_session
from tests.harness.mcp import our_server, serving_with
from tests.people import make_person, sign_in
from tests.running import manage
from tests.serving import wait_until

SECRET = "Bearer nobody-may-read-this-0007"


def read(file: Path, servers: object, **settings: str) -> McpSettings:
    file.write_text(json.dumps({"mcpServers": servers}))
    return mcp_settings(Environment({"KLERAI_MCP_SERVERS": str(file), **settings}))


def test_the_file_is_read_in_the_form_people_know(tmp_path: Path) -> None:
    servers = {
        "files": {"command": "npx", "args": ["-y", "server", "/srv"], "env": {"A": "b"}},
        "wiki": {"type": "http", "url": "https://wiki.example.com/mcp", "headers": {"Authorization": SECRET}},
        "off": {"command": "never", "disabled": True},
    }
    read_servers = read(tmp_path / "servers.json", servers).servers
    assert read_servers == (
        ServerSpec("files", Process("npx", ("-y", "server", "/srv"), {"A": "b"})),
        ServerSpec("wiki", Address("https://wiki.example.com/mcp", {"Authorization": SECRET})),
    )
    assert SECRET not in repr(read_servers)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("github", {"command": "anything"}),
        ("code", {"command": "docker", "args": ["run", "-i", "ghcr.io/github/github-mcp-server"]}),
        ("code", {"command": "docker", "args": ["run", "ghcr.io/github/github-mcp-server:v1.2"]}),
        ("code", {"command": "/usr/bin/github-mcp-server", "args": ["stdio"]}),
        ("code", {"url": "https://api.githubcopilot.com/mcp/x/repos"}),
    ],
)
def test_github_is_known_by_its_name_its_image_or_its_address_and_reads_only(
    tmp_path: Path, name: str, given: dict[str, object]
) -> None:
    (spec,) = read(tmp_path / "servers.json", {name: given}).servers
    assert (spec.category, spec.may_write) == ("github", False)
    (spec,) = read(tmp_path / "servers.json", {name: given}, KLERAI_GITHUB_WRITES="true").servers
    assert (spec.category, spec.may_write) == ("github", True)


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        ([], 'which must hold {"mcpServers": {name: …}}'),
        ({"a": 5}, "the server 'a' must be an object with a command or a url"),
        ({"a": {}}, "must have either a command or a url"),
        ({"a": {"command": "x", "url": "http://y"}}, "must have either a command or a url"),
        ({"a": {"command": ["x"]}}, "must have a command that is a text"),
        ({"a": {"command": "x", "args": "y"}}, "must have args that are a list of texts"),
        ({"a": {"command": "x", "env": {"A": 5}}}, "must have env that are names with texts"),
        ({"a": {"command": "x", "arguments": []}}, "has the unknown key 'arguments'"),
        ({"a": {"url": "ftp://x"}}, "must have a url that starts with http:// or https://"),
        ({"a": {"url": "https://me:secret@x"}}, "without a password in it"),
        ({"a": {"url": "https://x", "type": "sse"}}, "is reached over streamable HTTP"),
        ({"a b": {"command": "x"}}, "must have a name of at most 32 letters"),
        ({"a__b": {"command": "x"}}, "must have a name of at most 32 letters"),
    ],
)
def test_a_wrong_file_stops_the_start_with_a_sentence(tmp_path: Path, servers: object, words: str) -> None:
    with pytest.raises(BadSetting) as stopped:
        read(tmp_path / "servers.json", servers)
    assert str(stopped.value).startswith("KLERAI_MCP_SERVERS ")
    assert words in str(stopped.value)
    assert "secret" not in str(stopped.value)


def test_a_file_that_is_not_there_or_not_json_stops_every_command(tmp_path: Path) -> None:
    missing = manage("check", SECRET_KEY="x", KLERAI_MCP_SERVERS=str(tmp_path / "none.json"))
    assert missing.returncode != 0
    assert missing.stderr.startswith("KLERAI_MCP_SERVERS points to ")
    (tmp_path / "broken.json").write_text('{"mcpServers": {\n  "a": }')
    with pytest.raises(BadSetting, match=r"which is not JSON, line 2\."):
        mcp_settings(Environment({"KLERAI_MCP_SERVERS": str(tmp_path / "broken.json")}))


@pytest.fixture(scope="module")
def workshop(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    specs = (ServerSpec("odd", our_server("odd_mcp_server")), ServerSpec("absent", Process("no-such-command")))
    with serving_with(anthropic_server, *specs) as url:
        yield url


def test_the_setup_page_says_how_each_server_is_and_staff_may_test_it(workshop: str) -> None:
    with (
        override_settings(LOCAL_MODE=True),
        by_session(workshop) as alice,
        by_session(workshop, make_person("admin", is_admin=True)) as staff,
    ):
        wait_until(lambda: "17 tools" in alice.get("/setup/").text, what="the server to be started unasked")
        assert "/setup/servers/" not in alice.get("/setup/").text
        assert alice.http.post("/setup/servers/odd/test/").status_code == 404
        assert staff.get("/setup/servers/odd/test/").status_code == 405
        assert staff.http.post("/setup/servers/nothing/test/").status_code == 404
        assert 'action="/setup/servers/odd/test/"' in staff.get("/setup/").text
        tested = staff.http.post("/setup/servers/odd/test/", follow_redirects=True).text
        assert "odd answers, with 17 tools." in tested
        failed = staff.http.post("/setup/servers/absent/test/", follow_redirects=True).text
        assert "absent does not answer. The command “no-such-command” cannot be run on this machine." in failed
        page = alice.get("/setup/").text
        assert f"17 tools, from the program {Path(sys.executable).name}." in page
        assert (
            "Not used, from the program no-such-command: The command “no-such-command” cannot be run on this machine."
            in page
        )


def test_staff_without_their_second_factor_may_not_test_a_server(workshop: str) -> None:
    with by_session(workshop, make_person("admin", is_admin=True)) as staff:
        assert "/setup/servers/" not in staff.get("/setup/").text
        assert staff.http.post("/setup/servers/odd/test/").status_code == 404


def test_staff_add_servers_with_headers_that_are_kept_in_cipher_and_never_shown() -> None:
    with override_settings(LOCAL_MODE=True):
        staff = sign_in(make_person("admin", is_admin=True))
        form = {"name": "wiki", "url": "http://wiki:8080/mcp", "headers": f"Authorization: {SECRET}"}
        added = staff.post("/admin/chat/mcpserver/add/", form)
        assert added.status_code == 302, added.content.decode()
        row = McpServer.objects.get(name="wiki")
        page = f"/admin/chat/mcpserver/{row.pk}/change/"
        assert SECRET not in row.headers_cipher
        assert json.loads(decrypt(row.headers_cipher)) == {"Authorization": SECRET}
        assert SECRET not in staff.get(page).content.decode() + staff.get("/admin/chat/mcpserver/").content.decode()
        assert staff.post(page, {**form, "headers": ""}).status_code == 302
        kept = McpServer.objects.get(name="wiki")
        assert kept.headers_cipher == row.headers_cipher
        assert not kept.is_enabled
        assert staff.post(page, {**form, "headers": "", "drops_headers": "on"}).status_code == 302
        assert McpServer.objects.get(name="wiki").headers_cipher == ""
        row.delete()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "a__b", "Use at most 32 letters"),
        ("url", "npx -y server", "Write an address that starts with http:// or https://"),
        ("url", "https://me:secret@x/mcp", "without a password"),
        ("headers", "Authorization Bearer x", "Write each header on a line of its own"),
    ],
)
def test_a_server_that_cannot_be_is_refused_in_words(field: str, value: str, words: str) -> None:
    with override_settings(LOCAL_MODE=True):
        staff = sign_in(make_person("admin", is_admin=True))
        form = {"name": "wiki", "url": "https://x/mcp", "headers": "", field: value}
        assert words in staff.post("/admin/chat/mcpserver/add/", form).content.decode()
    assert not McpServer.objects.filter(name__in=["wiki", "a__b"]).exists()
