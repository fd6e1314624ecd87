"""`python -m retrieval.ingestion.child NAME`: reads the file on stdin, within limits, and writes what is in it.

One line of JSON, then the text in UTF-8. The line is `{"error": sentence}`, or says where the passages are.
"""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

from retrieval.errors import UnreadableFile
from retrieval.ingestion.chunking import chunk
from retrieval.ingestion.confinement import confine
from retrieval.ingestion.kinds import read

NEEDS_MEMORY = "The file needs too much memory to be read. Split it."
DAMAGED = "The file is damaged or of a kind that cannot be read."
_WRITTEN_AT_ONCE = 1_000_000  # characters


def main() -> None:
    sys.set_int_max_str_digits(5_000)
    confine()
    try:
        _write_content(sys.stdin.buffer, sys.argv[1], sys.stdout.buffer)
    except UnreadableFile as error:
        _write_line(sys.stdout.buffer, {"error": str(error)})
    except MemoryError:
        _write_line(sys.stdout.buffer, {"error": NEEDS_MEMORY})
    except (Exception, RecursionError):  # whatever a parser makes of a hostile file, a person is told a sentence
        _write_line(sys.stdout.buffer, {"error": DAMAGED})


def _write_content(file: BinaryIO, name: str, out: BinaryIO) -> None:
    content = read(file, name)
    spans = [(span.start, span.end, span.section, span.page) for span in chunk(content)]
    text, media_type = content.text, content.media_type
    del content
    _write_line(out, {"media_type": media_type, "spans": spans})
    for start in range(0, len(text), _WRITTEN_AT_ONCE):
        out.write(text[start : start + _WRITTEN_AT_ONCE].encode())


def _write_line(out: BinaryIO, line: dict[str, Any]) -> None:
    out.write(json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main()
