"""How to start this program again: every printed command works in the shell it was printed in."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def program() -> list[str]:
    """The words that start this program again in any folder: its name if the shell finds it, its
    path, or its module."""
    path = Path(sys.argv[0])
    if path.name != "wsgiload" or not path.is_file():  # started by a script that imports wsgiload
        return [sys.executable, "-m", "wsgiload"]
    found = shutil.which(path.name)
    is_found = found is not None and Path(found).absolute() == path.absolute()
    return [path.name if is_found else str(path.absolute())]


def command_line(*words: object) -> str:
    """A command of this program, to be pasted into a shell."""
    return shlex.join([*program(), *map(str, words)])
