"""The scripts that start servers without a suitable command line. They do not import wsgiload, so a
copy works elsewhere."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from wsgiload.catalogue.names import DEFAULT_FOLDER
from wsgiload.errors import UsageError


def script_text(name: str) -> str:
    """The text of this script. Raises UsageError if it does not exist."""
    known = {path.name: path for path in _folder().iterdir() if path.is_file()}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1) or sorted(known)
        raise UsageError(f"there is no script {name!r}", f"choose one of {', '.join(near)}")
    return known[name].read_text(encoding="utf-8")


def scripts_in(command: Sequence[str]) -> tuple[str, ...]:
    """The names of the scripts in a command line, and of the scripts that these start."""
    folder = _folder()
    paths = [Path(word.removeprefix("file:")) for word in command]
    named = [path for path in paths if path.parent == folder and path.is_file()]
    text = "".join(path.read_text(encoding="utf-8") for path in named)
    started = [path for path in sorted(folder.glob("run_*.py")) if f'"{path.name}"' in text]
    return tuple(dict.fromkeys(path.name for path in (*named, *started)))


def _folder() -> Path:
    # Resolved, like the paths of the catalogue.
    return DEFAULT_FOLDER.resolve() / "runners"
