"""The git revision of the measured code."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

TIMEOUT_S = 10.0
CHANGED = "+changes"


def revision_of(folder: Path) -> str | None:
    """The checked-out commit, marked if tracked files were changed; None if there is none."""
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return commit if changes == "" else f"{commit}{CHANGED}"


def _git(folder: Path, *words: str) -> str | None:
    # Variables such as GIT_DIR would select another repository; a status may refresh the index.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            env={**env, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
