"""Finds and describes the interpreter of an app.

Installs nothing. All facts come from the interpreter itself, because names and symlinks can be
misleading (pyenv's shims, virtual environments).
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from wsgiload.account import Account, require_own_program
from wsgiload.documents.base import decode_json
from wsgiload.environments.project import ProjectOrigin, project_environment
from wsgiload.errors import UsageError

Origin = (
    ProjectOrigin
    | Literal[
        "--python",
        "--python-version",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        ".python-version",
        "wsgiload",
        "found",
    ]
)

MINIMUM = (3, 11)
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*[a-z]*")
DESCRIBE_TIMEOUT_S = 30.0
# Inherited variables that affect module lookup, which only the tested environment may determine.
PYTHON_VARIABLES = (
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "__PYVENV_LAUNCHER__",
)

# Runs in the described interpreter, which may be older than ours, so it avoids modern syntax.
DESCRIBE = """
import json, platform, site, sys, sysconfig
folders = list(site.getsitepackages())
if sys.prefix == sys.base_prefix and site.getusersitepackages() not in folders:
    folders.insert(0, site.getusersitepackages())
names = {}
if sys.version_info >= (3, 8):
    from importlib import metadata
    for one in metadata.distributions(path=folders + sys.path):
        name = one.metadata["Name"]
        if name:
            names.setdefault(name, one.version)
print(json.dumps({
    "executable": sys.executable,
    "base": getattr(sys, "_base_executable", None) or sys.executable,
    "version": platform.python_version()
    + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""),
    "minor": list(sys.version_info[:2]),
    "implementation": platform.python_implementation(),
    "site": folders,
    "distributions": names,
}))
"""


@dataclass(frozen=True, slots=True)
class AppInterpreter:
    """An interpreter's description of itself; ``base_executable`` is the interpreter behind a
    virtual environment."""

    executable: Path
    version: str
    minor: tuple[int, int]
    implementation: str
    base_executable: Path
    site_packages: tuple[Path, ...]
    origin: Origin
    distributions: Mapping[str, str]
    account: Account | None = None  # the user as whom it was asked and runs; None: ours


class _Description(msgspec.Struct, frozen=True, kw_only=True):
    """The output of DESCRIBE."""

    executable: str
    base: str
    version: Annotated[str, msgspec.Meta(pattern=r"^[\w.+]+$")]  # a part of folders' names
    minor: tuple[int, int]
    implementation: str
    site: tuple[str, ...]
    distributions: dict[str, str]


def find_app_interpreter(
    chdir: Path, python: str | None = None, account: Account | None = None
) -> AppInterpreter:
    """The interpreter for the app in ``chdir``: ``--python``, an active environment, the project's
    environment, an active conda environment, or ours. It is run as
    ``account``.

    An active environment that is ours says nothing about the app. Conda's base environment is often
    active in every shell, so a project's environment takes precedence over it.
    """
    active = os.environ.get("VIRTUAL_ENV")
    if python is not None:
        return describe_interpreter(_locate(python, chdir), "--python", account)
    if active and Path(active).resolve() != Path(sys.prefix).resolve():
        return describe_interpreter(
            _python_of(Path(active), "run `deactivate`, or choose another with --python"),
            "VIRTUAL_ENV",
            account,
        )
    project = project_environment(chdir, account)
    if project is not None:
        python_path = project.path
        if not project.path.is_file():
            python_path = _python_of(project.path, project.fix)
        return describe_interpreter(python_path, project.origin, account)
    conda = os.environ.get("CONDA_PREFIX")
    if conda and Path(conda).resolve() != Path(sys.prefix).resolve():
        fix = "run `conda deactivate`, or choose another with --python"
        return describe_interpreter(_python_of(Path(conda), fix), "CONDA_PREFIX", account)
    return describe_interpreter(Path(sys.executable), "wsgiload", account)


def bundled_app_interpreter(
    python: str | None = None, account: Account | None = None
) -> AppInterpreter:
    """The interpreter for the bundled apps, without packages: the base of ``python``, or of
    ours."""
    if python is not None:
        return without_packages(find_app_interpreter(Path.cwd(), python, account))
    return without_packages(describe_interpreter(Path(sys.executable), "wsgiload", account))


def describe_interpreter(
    executable: Path, origin: Origin, account: Account | None = None
) -> AppInterpreter:
    """The interpreter's description of itself. Raises UsageError, with a fix, if wsgiload does not
    support it, or if root would run it although it belongs to another user."""
    interpreter = describe_any(executable, origin, account)
    if interpreter.implementation != "CPython" or interpreter.minor < MINIMUM:
        raise UsageError(
            f"{executable} ({origin}) is {interpreter.implementation} {interpreter.version}",
            "wsgiload measures apps on CPython 3.11 or newer; choose such an interpreter with "
            "--python",
        )
    return interpreter


def describe_any(
    executable: Path, origin: Origin, account: Account | None = None
) -> AppInterpreter:
    """The same for an interpreter of any implementation and version."""
    if origin == "wsgiload":  # it runs this code already
        return _describe(executable, origin, account)
    if account is None:
        require_own_program(executable, "run it")
    interpreter = _describe(executable, origin, account)
    if account is not None:
        _require_own_base(interpreter, account)
    return interpreter


def _require_own_base(interpreter: AppInterpreter, account: Account) -> None:
    """Raise UsageError unless root may run the base interpreter, which installs the servers. Which
    one that is, was said by an interpreter that the user may have changed."""
    base = interpreter.base_executable
    if not _INTERPRETER.fullmatch(base.name):
        raise UsageError(
            f"{interpreter.executable} names {base} as its base interpreter",
            "choose another interpreter with --python",
        )
    fix = (
        f"an interpreter of root with --python, your own server with --command (as {account.name})"
    )
    require_own_program(base, "run it to install servers", fix)


def without_packages(interpreter: AppInterpreter) -> AppInterpreter:
    """The base interpreter of a virtual environment, for an app that needs no packages."""
    executable = interpreter.base_executable
    return replace(
        interpreter, executable=executable, site_packages=(), distributions=MappingProxyType({})
    )


@functools.cache
def _describe(executable: Path, origin: Origin, account: Account | None) -> AppInterpreter:
    facts = _run_describe(executable, account)
    versions = {normalise(name): version for name, version in facts.distributions.items()}
    return AppInterpreter(
        executable=Path(facts.executable),
        version=facts.version,
        minor=facts.minor,
        implementation=facts.implementation,
        base_executable=Path(facts.base).resolve(),
        site_packages=tuple(Path(folder) for folder in facts.site if Path(folder).is_dir()),
        origin=origin,
        distributions=MappingProxyType(versions),
        account=account,
    )


def normalise(name: str) -> str:
    """A distribution's name, normalized as in PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def clean_variables(inherited: Mapping[str, str], app_dir: Path) -> dict[str, str]:
    """The inherited variables without those that affect module lookup; ``PYTHONPATH`` contains
    only ``app_dir``."""
    kept = {name: value for name, value in inherited.items() if name not in PYTHON_VARIABLES}
    # Importing the app would otherwise write bytecode into the user's own folders.
    return {**kept, "PYTHONPATH": str(app_dir), "PYTHONDONTWRITEBYTECODE": "1"}


def _locate(python: str, chdir: Path) -> Path:
    """The value of ``--python``: a path (from ``chdir`` or here), an environment's folder, or a
    command."""
    for candidate in (Path(python).expanduser(), chdir / Path(python).expanduser()):
        if candidate.is_dir():
            return _python_of(candidate.absolute(), "use its bin/python")
        if os.sep in python and candidate.is_file():
            return candidate.absolute()
    program = None if os.sep in python else shutil.which(python)
    if program is None:
        raise UsageError(
            f"--python {python}: no such interpreter", "use the path of a python executable"
        )
    return Path(program)


def _python_of(environment: Path, fix: str) -> Path:
    executable = environment / "bin" / "python"
    if not executable.exists():
        raise UsageError(f"{environment} has no bin/python", fix)
    return executable.absolute()


def _as_user(account: Account | None) -> list[str]:
    return [] if account is None else account.prefix()


def _variables_as(account: Account | None) -> dict[str, str] | None:
    """The variables of a command that runs as this user; None: ours."""
    return None if account is None else account.variables(os.environ)


def _run_describe(executable: Path, account: Account | None) -> _Description:
    fix = "use the path of a CPython 3.11 or newer with --python"
    if "shims" in executable.parts:
        fix = (
            f"{executable} is a shim of a version manager; use the path of the interpreter itself "
            "with --python"
        )
    try:
        completed = subprocess.run(
            [*_as_user(account), executable, "-I", "-c", DESCRIBE],
            env=_variables_as(account),
            capture_output=True,
            text=True,
            timeout=DESCRIBE_TIMEOUT_S,
            check=False,
        )
        if completed.returncode == 0:
            return decode_json(completed.stdout, _Description)
        error_text = (
            completed.stderr.strip().splitlines() or [f"exit code {completed.returncode}"]
        )[-1]
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError, UnicodeError) as error:
        error_text = str(error)
    if account is not None:
        fix = f"choose one that {account.name} can run with --python, such as /usr/bin/python3"
    raise UsageError(f"{executable} does not work as a Python 3 interpreter: {error_text}", fix)
