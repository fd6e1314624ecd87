"""The process servers are forked from: `python -m tests.harness.forking`.

It reads one wish a line, `{"log": path, "environment": {…}}`, and answers with the pid of the server and, when that has
ended, with its exit code.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any, NoReturn

import anthropic  # noqa: F401  what a server imports when it is first asked, imported once for all
import django
from django.core.management import call_command
from django.urls import get_resolver


def main() -> None:
    django.setup()
    import klerai.asgi  # only once the apps are there
    import klerai.serving  # noqa: F401

    assert get_resolver().url_patterns
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _serve(json.loads(line))
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _serve(wish: dict[str, Any]) -> NoReturn:
    os.environ.update(wish["environment"])
    log = os.open(wish["log"], os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(0)
    code = 1
    try:
        call_command("serve", host="127.0.0.1", port=0)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
