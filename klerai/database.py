"""The seam between async code and sync database work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 8


async def in_database(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do `work` in one of the event loop's few threads, each of which keeps its connection.

    Cancelling the caller does not undo it: the thread goes on and commits, so `work` has to be safe to repeat.
    """
    return await asyncio.to_thread(_with_good_connection, partial(work, *args, **kwargs))


def limit_threads() -> None:
    """Give the running loop as many threads as it may keep connections, however many cores the machine has."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="database"))


def _with_good_connection(work: Callable[[], T]) -> T:
    """A thread keeps its connection, since fetching one costs more than a query; one that failed is not used again."""
    for connection in connections.all(initialized_only=True):
        if connection.errors_occurred:
            connection.close()
    return work()
