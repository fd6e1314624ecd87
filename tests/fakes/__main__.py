"""The fakes of outside services, to be started by hand so that `up` can be pointed at them.

python -m tests.fakes                        lists them
python -m tests.fakes context7 --port 8907   starts one, which prints its address and serves until Ctrl-C
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

from tests.fakes.openai_manners import MANNERS

FOLDER = Path(__file__).resolve().parent
ENDING = "_server"
COMPATIBLE = "openai"  # one server for every vendor that speaks OpenAI's protocol; it makes their vectors as well


def fakes() -> dict[str, str]:
    """Every fake that can be started, by its name, with what it says it is."""
    found = {}
    for file in sorted(FOLDER.glob(f"*{ENDING}.py")):
        written = file.read_text()
        if "__main__" in written:
            said = ast.get_docstring(ast.parse(written)) or ""
            found[file.stem.removesuffix(ENDING)] = said.partition("\n")[0].partition(": `")[0]
    return found | {name: f"Chat completions as {name} speaks them." for name in MANNERS}


def main(arguments: list[str]) -> int:
    known = fakes()
    match arguments:
        case [name, *rest] if name in known:
            module = f"tests.fakes.{COMPATIBLE if name in MANNERS else name}{ENDING}"
            sys.argv = [module, *(("--vendor", name) if name in MANNERS else ()), *rest]
            runpy.run_module(module, run_name="__main__")
            return 0
        case [] | ["-h" | "--help"]:
            print(__doc__)
    listed = "\n".join(f"  {name:<14} {said}" for name, said in known.items())
    wrong = f"There is no fake called {arguments[0]}.\n" if arguments and not arguments[0].startswith("-") else ""
    print(f"{wrong}There are:\n{listed}")
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
