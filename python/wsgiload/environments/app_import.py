"""Checks in a separate process that an app can be imported and has the measured interface.

The check ends within its time limit, whatever the app does, and failures have one-line messages. A
fix that names an app has been tested; the candidates come from the files of the project.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Literal, Protocol

import msgspec

from wsgiload.account import Account
from wsgiload.catalogue.contract import Interface
from wsgiload.documents.base import convert
from wsgiload.environments import app_name
from wsgiload.environments import import_messages as messages
from wsgiload.environments.app_name import (
    AppName,
    ImportedFrom,
    from_here,
    is_path,
    modules_of_path,
    not_an_app,
    parse_app,
    settings_modules,
)
from wsgiload.environments.interpreter import AppInterpreter, clean_variables, find_app_interpreter
from wsgiload.environments.project import environment_in
from wsgiload.errors import WsgiloadError
from wsgiload.limits.launch import launch
from wsgiload.scratch import scratch_folder

PROGRAM = Path(__file__).with_name("import_program.py")
TIMEOUT_S = 30.0
SUGGESTION_TIMEOUT_S = 10.0
LOG_TAIL_BYTES = 4_000
RESULT_BYTES = 100_000
DRAIN_S = 0.5
SETTINGS_VARIABLE = "DJANGO_SETTINGS_MODULE"
MAX_SETTINGS = 3


class Spawn(Protocol):
    """Starts a process whose output goes to ``log``, such as ``spawn`` of a group."""

    def __call__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]
    ) -> subprocess.Popen[bytes]: ...


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of importing an app (``import_program``)."""

    step: Literal[
        "done",
        "missing",
        "import",
        "attribute",
        "call",
        "callable",
        "wsgi",
        "asgi",
        "factory",
        "arguments",
    ]
    kind: str | None = None
    text: str = ""
    missing: str | None = None
    variable: str | None = None
    absent: str | None = None
    place: str | None = None
    file: str | None = None
    names: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportContext:
    """How an app is imported: interpreter, variables, time limit."""

    interpreter: AppInterpreter
    variables: Mapping[str, str]
    spawn: Spawn = launch
    timeout_s: float = TIMEOUT_S
    pythonpath: tuple[Path, ...] = ()
    interface: Interface = "wsgi"
    account: Account | None = None


def check_app(app: str, folder: Path, context: ImportContext) -> None:
    """Import ``app`` from ``folder``.

    Raises UsageError if the name does not exist or is not an app for this interface, and
    AppImportError if the app fails during the import.
    """
    folder = folder.resolve()
    if is_path(app):
        raise _path_error(app, folder, context)
    if app and ":" not in app:
        raise _module_error(app, folder, context)
    name = parse_app(app)

    report = import_app(ImportedFrom(folder, name), context)
    if report.step == "done":
        return
    raise _failure(report, name, folder, context)


def import_app(app: ImportedFrom, context: ImportContext) -> Imported:
    """Import the app in a separate process. Raises AppImportError if the process times out or exits
    without a result."""
    variables = clean_variables(context.variables, app.folder)
    del variables["PYTHONPATH"]  # the program sets the path after loading its modules
    with scratch_folder(owner=context.account) as scratch, _tail() as (log, tail):
        result = scratch / "result.json"
        argv = [str(context.interpreter.executable), "-P", str(PROGRAM)]
        argv += [app.name.module, app.name.expression, context.interface]
        argv += [str(result), str(app.folder)]
        argv += map(str, (app.folder, *app.pythonpath, *context.pythonpath))
        process = context.spawn(argv, env=variables, cwd=app.folder, log=log)
        log.close()
        try:
            process.wait(context.timeout_s)
        except subprocess.TimeoutExpired:
            raise messages.import_timed_out(app.name, context.timeout_s) from None
        finally:
            process.kill()  # no effect if it has ended
            process.wait()
        report = _read(result)

    if report is None:
        raise messages.interpreter_exited(app, process.returncode, context.interpreter, tail.text())
    return report


class _Tail:
    """Keeps only the end of a process's output from a pipe."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._bytes = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while piece := os.read(self._stream.fileno(), 65_536):
                self._bytes += piece
                del self._bytes[:-LOG_TAIL_BYTES]

    def text(self) -> str:
        """The output so far; does not wait for child processes that keep the pipe open."""
        self._thread.join(DRAIN_S)
        return bytes(self._bytes).decode(errors="replace")


@contextmanager
def _tail() -> Iterator[tuple[IO[bytes], _Tail]]:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as log:
        yield log, _Tail(os.fdopen(reading, "rb", buffering=0))


def _read(result: Path) -> Imported | None:
    try:
        # The app's user may own the folder: follow no link, and wait for no pipe.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(result, flags), "rb") as stream:
            # An app's error message may contain a lone surrogate, which only the standard library
            # decodes.
            return convert(json.loads(stream.read(RESULT_BYTES)), Imported)
    except (OSError, ValueError):  # msgspec's errors are ValueErrors as well
        return None


def _failure(
    report: Imported, name: AppName, folder: Path, context: ImportContext
) -> WsgiloadError:
    """The error, with a tested fix if there is one."""
    if report.kind == "ImproperlyConfigured" and SETTINGS_VARIABLE in report.text:
        settings = _settings_for(ImportedFrom(folder, name), context)
        if settings is not None:
            return messages.without_settings(name, f"{SETTINGS_VARIABLE}={settings}")

    candidate = _first_importable(_alternatives(report, name, folder, context), context)
    suggestion = None if candidate is None else _words(candidate, context)
    if report.step == "missing":
        return messages.module_missing(name, folder, context.interpreter, suggestion)
    about = messages.About(name, folder, context.interpreter, context.interface)
    return messages.error_of(report, about, suggestion)


def _alternatives(
    report: Imported, name: AppName, folder: Path, context: ImportContext
) -> list[ImportedFrom]:
    """Apps that may have been meant, the most likely first."""
    if report.step == "missing":
        return for_missing_module(name, folder, context.variables, context.interface)
    if report.step == "attribute" and not report.matches:
        return in_django(folder, context.interface)
    if report.step == "wsgi":
        return asgi_of_django(name, folder)
    if report.step == "import" and report.missing:
        top = report.missing.partition(".")[0]
        return with_source_folder(name, top, folder, context.variables)
    if report.step == "import" and report.absent and report.place:
        return above_file(name, Path(report.place), report.absent)
    return []


def _first_importable(
    candidates: Sequence[ImportedFrom], context: ImportContext
) -> ImportedFrom | None:
    """The first candidate that imports; its name is corrected if the module has another
    callable."""
    until = time.monotonic() + min(SUGGESTION_TIMEOUT_S, context.timeout_s)
    for candidate in candidates:
        remaining_s = until - time.monotonic()
        if remaining_s <= 0:
            break
        try:
            report = import_app(
                candidate, replace(_context_for(candidate, context), timeout_s=remaining_s)
            )
        except WsgiloadError:
            continue
        if report.step == "done":
            return candidate
        if report.step == "factory":
            return replace(candidate, name=messages.as_call(candidate.name))
        if report.step == "attribute" and report.matches:
            return replace(candidate, name=AppName(candidate.name.module, report.matches[0]))
    return None


def _context_for(candidate: ImportedFrom, context: ImportContext) -> ImportContext:
    """The context with the environment in the candidate's folder, unless the user chose an
    interpreter."""
    is_requested = context.interpreter.origin in ("--python", "VIRTUAL_ENV")
    if is_requested or environment_in(candidate.folder) is None:
        return context
    interpreter = find_app_interpreter(candidate.folder, account=context.account)
    return replace(context, interpreter=interpreter)


def _settings_for(app: ImportedFrom, context: ImportContext) -> str | None:
    """The first Django settings module with which the app imports; if none works, the most likely
    one."""
    candidates = settings_modules(app.folder)[:MAX_SETTINGS]
    for settings in candidates:
        variables = {**context.variables, SETTINGS_VARIABLE: settings}
        if _first_importable([app], replace(context, variables=variables)) is not None:
            return settings
    return candidates[0] if candidates else None


def _path_error(app: str, folder: Path, context: ImportContext) -> WsgiloadError:
    """The error for a path, with the correct form of the name."""
    try:
        candidates = modules_of_path(app, folder)
    except (OSError, ValueError):
        candidates = []
    if not candidates:
        path = app.partition(":")[0]
        return not_an_app(app, f"{path} does not exist in {folder}; name a module, not a file")
    candidate = _first_importable(candidates, context)
    if candidate is None:
        # If the import fails, its error is more useful than the correct form of the name.
        check_app(candidates[0].name.text, candidates[0].folder, context)
        return not_an_app(app, f"name a module, not a file: {_words(candidates[0], context)}")
    return not_an_app(app, f"write it as {_words(candidate, context)}")


def _module_error(app: str, folder: Path, context: ImportContext) -> WsgiloadError:
    """The error for a module without a callable, with the correct form of the name."""
    likely = parse_app(f"{app}:app")
    candidate = _first_importable([ImportedFrom(folder, likely)], context)
    if candidate is None:
        check_app(likely.text, folder, context)
    return not_an_app(
        app, f"write it as {likely.text if candidate is None else _words(candidate, context)}"
    )


def _words(app: ImportedFrom, context: ImportContext) -> str:
    """``--chdir``, ``--pythonpath`` and ``APP`` as the user would type them."""
    words = [] if app.folder == Path.cwd() else ["--chdir", from_here(app.folder)]
    for folder in (*context.pythonpath, *app.pythonpath):
        words += ["--pythonpath", from_here(folder)]
    words.append(app.name.text)
    text = shlex.join(words)
    return f"`{text}`" if len(words) > 1 else text


# Source folders belong to the enclosing project; project folders are usually projects themselves.
SOURCE_FOLDERS = ("src", "lib")
PROJECT_FOLDERS = ("app", "backend", "server")


def for_missing_module(
    name: AppName, folder: Path, variables: Mapping[str, str], interface: Interface
) -> list[ImportedFrom]:
    """Candidates for a module that is missing in ``folder``: similar names and other locations."""
    top, dot, rest = name.module.partition(".")
    local_modules = [path.stem for path in folder.glob("*.py")]
    local_modules += [path.parent.name for path in folder.glob("*/__init__.py")]
    candidates = [
        ImportedFrom(folder, AppName(module + dot + rest, name.expression))
        for module in difflib.get_close_matches(top, local_modules, n=2)
    ]

    # The form of Django's WSGI_APPLICATION: shop.wsgi.application.
    above, _, last = name.module.rpartition(".")
    if above and last.isidentifier():
        candidates.append(ImportedFrom(folder, AppName(above, last)))

    candidates += with_source_folder(name, top, folder, variables)
    candidates += [
        ImportedFrom(folder / place, name)
        for place in PROJECT_FOLDERS
        if _contains(folder / place, top)
    ]
    return candidates + in_django(folder, interface)


def with_source_folder(
    name: AppName, module: str, folder: Path, variables: Mapping[str, str]
) -> list[ImportedFrom]:
    """The app with an additional folder that contains ``module``: a source folder, or a folder of
    the inherited ``PYTHONPATH``, which servers do not get."""
    inherited = [Path(path) for path in variables.get("PYTHONPATH", "").split(os.pathsep) if path]
    places = [
        *(folder / path for path in SOURCE_FOLDERS),
        *(Path.cwd() / path for path in inherited),
    ]
    return [ImportedFrom(folder, name, (place,)) for place in places if _contains(place, module)]


def above_file(name: AppName, file: Path, absent: str) -> list[ImportedFrom]:
    """The app, imported from an enclosing folder that contains ``absent``, the relative path that
    it failed to open."""
    places = [place for place in file.parents if (place / absent).exists()]
    return [ImportedFrom(place, name) for place in places]


def in_django(folder: Path, interface: Interface) -> list[ImportedFrom]:
    """The apps of Django projects in a folder and its direct subfolders."""
    return [
        ImportedFrom(project, AppName(module, "application"))
        for project in app_name.projects(folder)
        for module in app_name.app_modules(project, interface)
    ]


def asgi_of_django(name: AppName, folder: Path) -> list[ImportedFrom]:
    """The ASGI app of a Django project, given its WSGI app (names as in ``startproject``)."""
    package, _, module = name.module.rpartition(".")
    is_django = bool(package) and module == "wsgi"
    return [ImportedFrom(folder, AppName(f"{package}.asgi", name.expression))] if is_django else []


def _contains(place: Path, module: str) -> bool:
    return (place / module).is_dir() or (place / f"{module}.py").is_file()
