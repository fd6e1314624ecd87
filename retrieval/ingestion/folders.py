"""Which files a path on the command line stands for, and what each is called there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Found:
    """A file, and its name within the folder that was asked for."""

    path: Path
    name: str


def files_under(path: Path) -> Iterator[Found]:
    """The file itself, or the files of a folder in the order of their names.

    Hidden ones are left out, and so are links that lead out of the folder.
    """
    if not path.is_dir():
        yield Found(path, path.name)
        return
    root = path.resolve()
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if not name.startswith(".") and file.is_file() and file.resolve().is_relative_to(root):
                yield Found(file, file.relative_to(root).as_posix())
