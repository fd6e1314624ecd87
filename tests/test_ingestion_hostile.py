"""BS8: files made to break what reads them end with a reason, in time, in memory, and leave nothing behind."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval.errors import UnreadableFile
from retrieval.ingestion.confinement import MEMORY_BYTES
from retrieval.ingestion.reading import TOO_SLOW, Reading, read_confined
from tests.documents import changed_zip, pdf_file, pdf_of_stream, prose, word_file, zip_file
from tests.processes import REPOSITORY

LONGEST_SECONDS = 30
XML = b'<?xml version="1.0"?>'
LAUGHS = XML + b'<!DOCTYPE z [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><z>&b;</z>'
FETCH = XML + b'<!DOCTYPE z [<!ENTITY a SYSTEM "file:///etc/passwd">]><z>&a;</z>'


def zip_bomb(gigabytes: float = 4.0) -> bytes:
    """Members that share one packed stretch of zeros; 42 kB say they are so many gigabytes."""
    size = 30_000_000
    count = int(gigabytes * 1e9 / size)
    packed = zlib.compress(bytes(size), 9)[2:-4]
    crc = zlib.crc32(bytes(size))
    name = b"word/document.xml"
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 0, crc, len(packed), size, len(name), 0) + name
    body = local + packed
    directory = b"".join(
        struct.pack(
            "<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, crc, len(packed), size, len(name), 0, 0, 0, 0, 0, 0
        )
        + name
        for _ in range(count)
    )
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + end


def of_many_members(count: int) -> bytes:
    out = io.BytesIO(word_file())
    with zipfile.ZipFile(out, "a") as archive:
        for number in range(count):
            archive.writestr(f"word/media/{number}", b"")
    return out.getvalue()


def nested_zip(depth: int = 6) -> bytes:
    data = zip_file({"zeros": bytes(10_000_000)})
    for _ in range(depth):
        data = zip_file({f"{number}.zip": data for number in range(8)})
    return data


def flate_bomb(size: int = 100_000_000) -> bytes:
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(10_000_000)) for _ in range(size // 10_000_000)) + packer.flush()
    return pdf_of_stream(packed, more=b"/Filter /FlateDecode")


def pages_in_a_circle() -> bytes:
    return pdf_file([prose(20)]).replace(b"/Count 1", b"/Count 9", 1).replace(b"/Kids [ 4 0 R", b"/Kids [ 2 0 R", 1)


def many_operators() -> bytes:
    return pdf_of_stream(b"BT /F1 1 Tf " + b"(a) Tj T* " * 3_000_000 + b" ET")


def word_of_huge_text() -> bytes:
    document = XML + b"<z>" + b"<p>a</p>" * 8_000_000 + b"</z>"
    return changed_zip(word_file(), {"word/document.xml": document})


HOSTILE: dict[str, Callable[[], bytes]] = {
    "zip-bomb.docx": zip_bomb,
    "nested.zip": nested_zip,
    "many-members.docx": lambda: of_many_members(6_000),
    "laughs.docx": lambda: changed_zip(word_file(), {"word/document.xml": LAUGHS}),
    "entity.docx": lambda: changed_zip(word_file(), {"word/styles.xml": FETCH}),
    "entity-in-relations.docx": lambda: changed_zip(word_file(), {"_rels/.rels": FETCH}),
    "huge.docx": word_of_huge_text,
    "deep.docx": lambda: changed_zip(word_file(), {"word/document.xml": XML + b"<a>" * 100_000 + b"</a>" * 100_000}),
    "flate-bomb.pdf": flate_bomb,
    "circle.pdf": pages_in_a_circle,
    "deep-array.pdf": lambda: pdf_of_stream(b"[" * 50_000),
    "junk.pdf": lambda: b"%PDF-1.7\n" + b"1 0 obj <<" * 100_000,
    "too-much.txt": lambda: b"word " * 5_000_000,
    "columns.csv": lambda: b"a," * 300_000 + b"\n" + b"1," * 300_000,
    "controls.txt": lambda: bytes(1_000_000),
}
FINE: dict[str, Callable[[], bytes]] = {
    "tags.html": lambda: b"<!doctype html>" + b"<div>" * 100_000 + prose(50).encode() + b"</div>" * 100_000,
    "tables.html": lambda: b"<!doctype html>" + b"<table><tr><td>" * 30_000 + prose(50).encode(),
    "open.html": lambda: b"<!doctype html>" + prose(50).encode() + b"<a b='" * 1_000,
    "one-line.csv": lambda: b"name," + b"x" * 3_000_000 + b",end",
    "quote.csv": lambda: b'a,b\n1,"' + b"word, " * 100_000,
    "ten-megabytes.md": lambda: (f"# Part\n\n{prose(300)}\n\n".encode() * 5_000)[:10_000_000],
    "marks.md": lambda: (b"[" * 50 + b"*" * 50 + b"`" * 50 + b"\n") * 20_000,
    "headings.md": lambda: b"# a\n" * 20_000,
    "deep.json": lambda: b"[" * 1_000_000,
    "lines.txt": lambda: b"\n \n" * 500_000 + b"end",
    "spaces.txt": lambda: b"a" + b" " * 2_000_000 + b"b",
    "dots.txt": lambda: b"." * 500_000,
}


def read(data: bytes, name: str) -> Reading:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        return read_confined(file, name)


def timed(data: bytes, name: str) -> tuple[Reading | str, float]:
    began = time.monotonic()
    try:
        found: Reading | str = read(data, name)
    except UnreadableFile as error:
        found = str(error)
    return found, time.monotonic() - began


@pytest.mark.thorough
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_ends_with_a_reason_in_time(name: str) -> None:
    found, seconds = timed(HOSTILE[name](), name)
    assert isinstance(found, str), "it was read"
    assert found.endswith(".")
    assert seconds < LONGEST_SECONDS


@pytest.mark.parametrize("name", FINE)
def test_an_odd_file_is_read_in_time(name: str) -> None:
    found, seconds = timed(FINE[name](), name)
    assert isinstance(found, Reading), found
    assert found.spans
    assert seconds < LONGEST_SECONDS


@pytest.mark.thorough
def test_the_largest_files_end_in_time() -> None:
    for name, data in (
        ("one-line.csv", b"a," * 50_000_000),
        ("many-members.docx", of_many_members(60_000)),
        ("operators.pdf", many_operators()),
        ("flate-bomb.pdf", flate_bomb(4_000_000_000)),
        ("open.html", b"<!doctype html>" + b"<a b='" * 1_000_000),
        ("tags.html", b"<!doctype html>" + b"<div>" * 10_000_000),
    ):
        _, seconds = timed(data[:100_000_000], name)
        assert seconds < LONGEST_SECONDS


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["flate-bomb.pdf", "huge.docx", "ten-megabytes.md"])
def test_no_child_has_more_memory_than_it_may(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes((HOSTILE | FINE)[name]())
    code = (
        "import resource, sys; from retrieval.ingestion.reading import UnreadableFile, read_confined\n"
        "try: read_confined(open(sys.argv[1], 'rb'), sys.argv[1])\n"
        "except UnreadableFile: pass\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"
    )
    most = subprocess.run([sys.executable, "-c", code, file], cwd=REPOSITORY, capture_output=True, check=True).stdout
    assert int(most) <= MEMORY_BYTES


def test_a_child_that_takes_too_long_is_killed_and_says_so() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(FINE["ten-megabytes.md"]())
        with pytest.raises(UnreadableFile, match=TOO_SLOW[:40]):
            read_confined(file, "slow.md", seconds=0.05)


def test_the_child_reaches_no_network_starts_no_process_and_writes_no_file(tmp_path: Path) -> None:
    code = (
        "import sys; from retrieval.ingestion.confinement import Forbidden, confine; confine()\n"
        "import socket, subprocess, os\n"
        "for act in (lambda: socket.create_connection(('127.0.0.1', 80)), lambda: subprocess.run(['true']), os.fork,\n"
        "            lambda: os.system('true'), lambda: os.kill(1, 0)):\n"
        "    try: act()\n"
        "    except Forbidden: continue\n"
        "    sys.exit(1)\n"
        "file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)\n"
        "try: os.write(file, b'x')\n"
        "except OSError: sys.exit(0)\n"
        "sys.exit(2)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "written"], cwd=REPOSITORY, check=False)
    assert done.returncode == 0
