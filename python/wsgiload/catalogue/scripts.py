"""The scripts with which wsgiload starts servers that have no suitable command line. They import no
wsgiload, so that a copy starts the server elsewhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from wsgiload.catalogue.names import DEFAULT_FOLDER
from wsgiload.errors import UsageError


def script_text(name: str) -> str:
    """The script of this name. Raises UsageError where there is none."""
    known = {path.name: path for path in _folder().iterdir() if path.is_file()}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1) or sorted(known)
        raise UsageError(f"there is no script {name!r}", f"choose one of {', '.join(near)}")
    return known[name].read_text(encoding="utf-8")


def scripts_in(command: Sequence[str]) -> tuple[str, ...]:
    """The names of the scripts in a command line, and of those that these start in turn."""
    folder = _folder()
    paths = [Path(word.removeprefix("file:")) for word in command]
    named = [path for path in paths if path.parent == folder and path.is_file()]
    text = "".join(path.read_text(encoding="utf-8") for path in named)
    started = [path for path in sorted(folder.glob("run_*.py")) if f'"{path.name}"' in text]
    return tuple(dict.fromkeys(path.name for path in (*named, *started)))


def _folder() -> Path:
    # Resolved, as the catalogue resolves its own files.
    return DEFAULT_FOLDER.resolve() / "runners"
