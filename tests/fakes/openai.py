"""The fakes of the vendors behind chat completions as a test holds them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fakes.anthropic import ROOT, AnthropicFake
from tests.fakes.openai_manners import MANNERS


class CompatibleFake(AnthropicFake):
    """A running fake with the manners of one vendor. `setting` is its address as the vendor's setting wants it."""

    def __init__(self, vendor: str, setting: str) -> None:
        manners = MANNERS[vendor]
        self.vendor = vendor
        self.setting = setting
        self.path = f"{manners.base}/chat/completions"
        super().__init__(setting.removesuffix(manners.base))


@contextmanager
def running_compatible(vendor: str, *, each_ms: float = 0) -> Iterator[CompatibleFake]:
    """A fake in a process of its own, for as long as the block lasts."""
    command = [sys.executable, "-m", "tests.fakes", vendor, "--port", "0", "--each-ms", str(each_ms)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), f"the fake of {vendor} did not start"
        yield CompatibleFake(vendor, address)
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()
