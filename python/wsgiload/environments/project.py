"""Finds the virtual environment of the app's project, by the name of its folder or by asking the
project's manager. Runs no interpreter."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wsgiload.account import Account, owners_trusted_by
from wsgiload.errors import UsageError

MANAGER_TIMEOUT_S = 60.0
UV_VARIABLE: Literal["UV_PROJECT_ENVIRONMENT"] = "UV_PROJECT_ENVIRONMENT"
ProjectOrigin = Literal[
    "UV_PROJECT_ENVIRONMENT", ".venv", "venv", "env", "Poetry", "Pipenv", "PDM", "Hatch"
]
# Other folders may also have the last two names.
FOLDERS: tuple[Literal[".venv", "venv", "env"], ...] = (".venv", "venv", "env")
_MARK = "pyvenv.cfg"
_VERSION_FILE = ".python-version"
_VERSION = re.compile(r"(?:cpython-)?(3\.\d+(?:\.\d+)?t?)")


@dataclass(frozen=True, slots=True)
class Manager:
    """A program that keeps environments of projects elsewhere."""

    name: Literal["Poetry", "Pipenv", "PDM", "Hatch"]
    # The file of a project that it manages, and a text in it.
    file: str
    text: str
    # Prints the environment or its interpreter.
    command: tuple[str, ...]
    install: str

    def manages(self, folder: Path) -> bool:
        """Whether the folder is a project of this manager."""
        with suppress(OSError, UnicodeError):
            return self.text in (folder / self.file).read_text(encoding="utf-8")
        return False


MANAGERS = (
    Manager(
        "Poetry",
        "poetry.lock",
        "",
        ("poetry", "env", "info", "--path", "--no-interaction"),
        "poetry install",
    ),
    Manager("Pipenv", "Pipfile", "", ("pipenv", "--venv"), "pipenv install"),
    Manager("PDM", "pdm.lock", "", ("pdm", "info", "--python"), "pdm install"),
    Manager(
        "Hatch", "pyproject.toml", "[tool.hatch.", ("hatch", "env", "find"), "hatch env create"
    ),
)


@dataclass(frozen=True, slots=True)
class ProjectEnvironment:
    """The environment of a project: its folder, or its interpreter."""

    path: Path
    origin: ProjectOrigin
    fix: str


def project_environment(folder: Path, account: Account | None = None) -> ProjectEnvironment | None:
    """The environment that uv's variable names, one in the folder, the one that the project's
    manager reports, or the nearest one in an enclosing folder."""
    return (
        _uv_environment(folder)
        or environment_in(folder)
        or _managed_environment(folder, account)
        or next(_in_enclosing_folders(folder, account), None)
    )


def environment_in(folder: Path) -> ProjectEnvironment | None:
    """The environment with a usual name in this folder."""
    for name in FOLDERS:
        path = folder / name
        with suppress(OSError):  # it may be unreadable
            if path.is_dir() and (name == ".venv" or (path / _MARK).is_file()):
                return ProjectEnvironment(
                    path, name, "recreate it, or choose another with --python"
                )
    return None


def _in_enclosing_folders(folder: Path, account: Account | None) -> Iterator[ProjectEnvironment]:
    """Those up to the home folder or the root of the file system. They are ignored unless the user
    who executes their interpreter or root owns them and their folders, because anyone can create
    one in ``/tmp``."""
    for place in _up_to_home(folder)[1:]:
        environment = environment_in(place)
        with suppress(OSError):
            if environment is not None and _is_trusted(environment.path, account):
                yield environment


def _up_to_home(folder: Path) -> list[Path]:
    places = [folder, *folder.parents]
    home = Path.home()
    return places[: places.index(home) + 1] if home in places else places


def _is_trusted(environment: Path, account: Account | None) -> bool:
    """Whether an environment and its folder belong to the user or root."""
    facts = (environment.stat(), environment.lstat(), environment.parent.stat())
    return {fact.st_uid for fact in facts} <= owners_trusted_by(account)


def _uv_environment(folder: Path) -> ProjectEnvironment | None:
    """The environment of uv's variable, which is relative to the project."""
    named = os.environ.get(UV_VARIABLE)
    places = _up_to_home(folder)
    # Of the members of a workspace, only its root has a lock.
    marked = [
        one for file in ("uv.lock", "pyproject.toml") for one in places if (one / file).is_file()
    ]
    if not named or not marked:
        return None
    project = marked[0]
    return ProjectEnvironment(
        project / named, UV_VARIABLE, f"run `uv sync`, or unset {UV_VARIABLE}"
    )


def manager_of(folder: Path) -> Manager | None:
    """The manager of the project in this folder."""
    return next((manager for manager in MANAGERS if manager.manages(folder)), None)


def _managed_environment(folder: Path, account: Account | None) -> ProjectEnvironment | None:
    """The environment that the project's manager reports."""
    manager = manager_of(folder)
    program = shutil.which(manager.command[0]) if manager else None
    # A manager may run code of the project.
    if manager is None or program is None or folder.stat().st_uid not in owners_trusted_by(account):
        return None
    try:
        completed = subprocess.run(
            [*(account.prefix() if account else ()), program, *manager.command[1:]],
            env=account.variables(os.environ) if account else None,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=MANAGER_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"`{' '.join(manager.command)}` did not end within {MANAGER_TIMEOUT_S:g} s",
            "name the app's interpreter with --python",
        ) from None
    except (OSError, UnicodeError):
        return None
    path = completed.stdout.strip()
    if completed.returncode != 0 or not path or not Path(path).exists():
        return None
    return ProjectEnvironment(Path(path), manager.name, f"run `{manager.install}`")


def requested_version(folder: Path) -> str | None:
    """The version in the nearest ``.python-version`` of pyenv or uv; None if it is not one of
    CPython."""
    for place in _up_to_home(folder):
        with suppress(OSError, UnicodeError):
            lines = (place / _VERSION_FILE).read_text(encoding="utf-8").splitlines()
            match = _VERSION.fullmatch(next(iter(lines), "").strip())
            return match[1] if match else None
    return None
