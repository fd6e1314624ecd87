"""How much may be sent: files one by one up to a limit, refused while they arrive, and only from those signed in."""

from __future__ import annotations

import json
import re
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application

from klerai.accounts.models import Person
from klerai.accounts.scopes import may_write
from klerai.asgi import UPLOADS
from klerai.body_limit import BodyLimit
from klerai.database import in_database
from klerai.uploads import Uploads
from retrieval.models import Document
from tests.harness.visits import key_headers
from tests.people import make_alice
from tests.serving import server_process

PATH = "/api/knowledge-bases/default_kb/documents"
BOUNDARY = "between-the-parts"
SMALL = Uploads(path=UPLOADS.path, file_limit=300_000, request_limit=800_000, is_let_in=may_write)
MB = 1_000_000


def part(size: int, name: str = "a.txt") -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + b"x" * size + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()


def door(headers: dict[str, str], *, declared: int | None = None, uploads: Uploads = SMALL) -> ApplicationCommunicator:
    sent = {"host": "testserver", "content-type": f"multipart/form-data; boundary={BOUNDARY}", **headers}
    if declared is not None:
        sent["content-length"] = str(declared)
    scope = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
    }
    return ApplicationCommunicator(BodyLimit(get_asgi_application(), uploads=uploads), scope)


async def answer(at: ApplicationCommunicator, *chunks: bytes, is_whole: bool = True) -> tuple[int, dict[str, Any]]:
    """Status and body of what comes back after these chunks; without `is_whole` more would follow."""
    for place, chunk in enumerate(chunks):
        more = not is_whole or place < len(chunks) - 1
        await at.send_input({"type": "http.request", "body": chunk, "more_body": more})
    status = int((await at.receive_output(timeout=20))["status"])
    body = json.loads((await at.receive_output(timeout=20))["body"])
    if not is_whole:
        await at.send_input({"type": "http.disconnect"})
    await at.wait(timeout=20)
    return status, body


def pieces(data: bytes, size: int = 64_000) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


async def person_and_key() -> tuple[Person, dict[str, str]]:
    alice = await in_database(make_alice)
    return alice, await in_database(key_headers, alice)


async def stored_by(person: Person) -> int:
    return await Document.objects.filter(knowledge_base__owner=person).acount()


async def test_several_files_may_be_more_together_than_one_alone() -> None:
    alice, key = await person_and_key()
    body = part(300_000) + part(290_000, "b.txt") + END
    status, taken = await answer(door(key), *pieces(body))
    assert (status, len(taken["documents"])) == (202, 2)
    assert await stored_by(alice) == 2


@pytest.mark.parametrize("size", [1, 7, 64_000])
async def test_a_file_over_the_limit_is_refused_while_it_arrives(size: int) -> None:
    """However the boundary between two files is cut by the network."""
    alice, key = await person_and_key()
    first, second = part(1_000), part(310_000, "b.txt")[: -len(END)]
    chunks = [*pieces(first, size), *pieces(second[:200], size), *pieces(second[200:])]
    status, refused = await answer(door(key), *chunks, is_whole=False)
    assert (status, refused["error"]["code"]) == (413, "message_too_long")
    assert "nothing was stored" in refused["error"]["message"]
    assert await stored_by(alice) == 0


async def test_what_is_declared_to_be_too_much_is_refused_before_it_is_sent() -> None:
    _, key = await person_and_key()
    status, refused = await answer(door(key, declared=250 * MB + 1, uploads=UPLOADS), b"", is_whole=False)
    assert (status, refused["error"]["message"]) == (
        413,
        "The request is larger than 250 MB. Send fewer files at once; nothing was stored.",
    )


async def test_who_is_not_signed_in_may_send_no_more_than_anywhere_else() -> None:
    status, refused = await answer(door({}), *pieces(part(290_000)), is_whole=False)
    assert (status, refused["error"]["message"][:37]) == (413, "The request is larger than 256 kB. No")
    status, refused = await answer(door({"authorization": "Bearer kl_nonsense"}), part(1_000) + END)
    assert (status, refused["error"]["code"]) == (401, "unauthenticated")


async def test_other_addresses_take_no_files() -> None:
    _, key = await person_and_key()
    elsewhere = Uploads(re.compile("/elsewhere"), SMALL.file_limit, SMALL.request_limit, may_write)
    status, _ = await answer(door(key, uploads=elsewhere), *pieces(part(290_000)), is_whole=False)
    assert status == 413


@pytest.mark.thorough
def test_two_hundred_megabytes_are_refused_after_the_hundred_that_one_file_may_have(tmp_path: Path) -> None:
    """The answer comes while the client still sends, and who sends all of it can read the answer too."""
    alice = make_alice()
    headers = {**key_headers(alice), "Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    head = part(0)[:-2]
    with server_process(tmp_path) as server:
        sent, first_line = sent_until_answered(server.url, headers, head, megabytes=200)
        body = (head, *[b"x" * MB] * 200)
        refused = httpx.post(server.url + PATH, content=iter(body), headers=headers, timeout=60, trust_env=False)
    assert first_line.startswith(b"HTTP/1.1 413")
    assert 100 * MB < sent < 120 * MB
    assert refused.json()["error"]["message"].startswith("A file is larger than 100 MB")
    assert not Document.objects.filter(knowledge_base__owner=alice).exists()


def sent_until_answered(url: str, headers: dict[str, str], head: bytes, *, megabytes: int) -> tuple[int, bytes]:
    """How many bytes went out before the answer began to come in, and its first bytes."""
    address = urlsplit(url)
    lines = [f"POST {PATH} HTTP/1.1", f"Host: {address.netloc}", f"Content-Length: {megabytes * MB + len(head)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    sent = 0
    with socket.create_connection((address.hostname, address.port), timeout=60) as line:
        line.sendall("\r\n".join([*lines, "", ""]).encode() + head)
        while sent < megabytes * MB and not select.select([line], [], [], 0)[0]:
            line.sendall(b"x" * 100_000)
            sent += 100_000
        return sent, line.recv(100)
