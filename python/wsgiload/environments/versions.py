"""Chooses the installed interpreter that runs a server.

All servers use the same build, because otherwise a comparison would compare interpreters. Only a
server that does not support it gets the newest one that it supports. Installs nothing.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from wsgiload.account import Account
from wsgiload.catalogue.contract import Server
from wsgiload.environments.interpreter import (
    AppInterpreter,
    bundled_app_interpreter,
    describe_any,
    without_packages,
)
from wsgiload.errors import UsageError

# The folders of version managers, whose shims on PATH are not the interpreters themselves.
MANAGED = (".pyenv/versions/*/bin", ".local/share/uv/python/*/bin")
USUAL_FOLDERS = ("/usr/local/bin", "/usr/bin")
VERSION = re.compile(r"\d+\.\d+(\.\d+)?t?")


def supports(server: Server, interpreter: AppInterpreter) -> bool:
    """Whether the server's file declares support for the interpreter."""
    too_new = server.python_max is not None and interpreter.minor > server.python_max
    return (
        interpreter.implementation == server.implementation
        and interpreter.minor >= server.python_min
        and not too_new
    )


def interpreter_for(server: Server, preferred: AppInterpreter) -> AppInterpreter:
    """``preferred`` if the server supports it; otherwise, for a bundled app, the newest supported
    one. Raises UsageError if there is none.

    A user's app stays on its interpreter, because its packages were built for it.
    """
    if supports(server, preferred):
        return preferred
    matching = [
        interpreter
        for interpreter in installed_interpreters(server.implementation, preferred.account)
        if supports(server, interpreter)
    ]
    if preferred.site_packages or not matching:
        raise _no_interpreter(server, preferred)
    return max(matching, key=lambda interpreter: _version(interpreter.version))


def require_supported(server: Server, interpreter: AppInterpreter) -> None:
    """Raise UsageError if the server does not support the interpreter that the user requested by
    version."""
    if not supports(server, interpreter):
        fix = "omit this server from --servers, or this version from --grid python="
        raise UsageError(_not_supported(server, interpreter), fix)


def find_version(text: str, account: Account | None = None) -> AppInterpreter:
    """The installed CPython for ``--python-version``: ``3.13``, ``3.13.1``, or ``3.14t`` for a
    free-threaded build. The newest if several match."""
    if not VERSION.fullmatch(text):
        raise UsageError(
            f"{text!r} is not a Python version",
            "write it like 3.13, or 3.14t for a free-threaded build",
        )
    known = installed_interpreters("CPython", account)
    matching = [interpreter for interpreter in known if is_version(interpreter.version, text)]
    if not matching:
        versions = sorted({interpreter.version for interpreter in known}, key=_version)
        raise UsageError(
            f"Python {text} is not installed",
            f"installed versions: {', '.join(versions) or 'none'}",
        )
    return max(matching, key=lambda interpreter: _version(interpreter.version))


@functools.cache
def installed_interpreters(
    implementation: str, account: Account | None = None
) -> tuple[AppInterpreter, ...]:
    """All working interpreters of this implementation on this machine, without packages."""
    name = r"pypy3" if implementation == "PyPy" else r"python3\.\d+t?"
    interpreters: dict[Path, AppInterpreter] = {}
    for path in _executables(name):
        try:
            interpreter = without_packages(describe_any(path, "found", account))
        except UsageError:
            continue
        if interpreter.implementation == implementation:
            interpreters.setdefault(interpreter.base_executable, interpreter)
    bundled = bundled_app_interpreter(account=account)
    if bundled.implementation == implementation:
        interpreters.setdefault(bundled.base_executable, bundled)
    return tuple(interpreters.values())


def _executables(name: str) -> Iterator[Path]:
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += [Path(folder) for folder in USUAL_FOLDERS]
    for managed in MANAGED:
        folders += sorted(Path.home().glob(managed))
    for folder in dict.fromkeys(folders):
        if "shims" not in folder.parts and folder.is_dir():
            matching = (path for path in folder.iterdir() if re.fullmatch(name, path.name))
            yield from sorted(path for path in matching if os.access(path, os.X_OK))


def is_version(version: str, requested: str) -> bool:
    """Whether a version is the requested one, of which the last parts may be missing."""
    same_build = version.endswith("t") == requested.endswith("t")
    return same_build and f"{version.rstrip('t')}.".startswith(f"{requested.rstrip('t')}.")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _no_interpreter(server: Server, preferred: AppInterpreter) -> UsageError:
    cause = _not_supported(server, preferred)
    if preferred.site_packages:
        return UsageError(
            cause, "omit this server from --servers, or choose another interpreter with --python"
        )
    return UsageError(cause, "install such an interpreter, or omit this server")


def _not_supported(server: Server, interpreter: AppInterpreter) -> str:
    return (
        f"{server.name} runs on {_supported(server)}, not on {interpreter.implementation} "
        f"{interpreter.version}"
    )


def _supported(server: Server) -> str:
    return server.pythons if server.implementation != "CPython" else f"Python {server.pythons}"
