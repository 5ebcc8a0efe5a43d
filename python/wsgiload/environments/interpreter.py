"""Finds the interpreter an app runs on, describes it, and checks that the app can be imported by
it.

It never installs anything and never imports the app into our own process. What is known about an
interpreter is what the interpreter itself says: names and symlinks lie (pyenv's shims, virtual
environments).
"""

from __future__ import annotations

import difflib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import IO, Literal, Protocol

import msgspec

from wsgiload.errors import AppImportError, UsageError
from wsgiload.limits.launch import launch

Origin = Literal["--python", "--python-version", "VIRTUAL_ENV", ".venv", "wsgiload", "found"]

MINIMUM = (3, 11)
DESCRIBE_TIMEOUT_S = 30.0
IMPORT_TIMEOUT_S = 60.0
# Inherited variables that would decide which modules are found; the environment under test decides
# alone.
PYTHON_VARIABLES = (
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "__PYVENV_LAUNCHER__",
)

# Runs in the described interpreter, which may be older than ours: no modern syntax.
DESCRIBE = """
import json, platform, site, sys, sysconfig
folders = list(site.getsitepackages())
if sys.prefix == sys.base_prefix and site.getusersitepackages() not in folders:
    folders.insert(0, site.getusersitepackages())
names = {}
if sys.version_info >= (3, 8):
    from importlib import metadata
    for found in metadata.distributions(path=folders + sys.path):
        name = found.metadata["Name"]
        if name:
            names.setdefault(name, found.version)
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

# Writes what happened as JSON into the file named last; the app may print whatever it likes.
IMPORT_APP = """
import importlib, json, os, sys, traceback
module_name, attribute, folder, result = sys.argv[1:5]

def place(error):
    if isinstance(error, SyntaxError) and error.filename:
        return "%s:%s" % (error.filename, error.lineno)
    frames = traceback.extract_tb(error.__traceback__)[1:]
    frames = [frame for frame in frames if "importlib" not in frame.filename]
    own = [frame for frame in frames if frame.filename.startswith(folder + os.sep)]
    for frame in (own or frames)[-1:]:
        return "%s:%s" % (frame.filename, frame.lineno)
    return None

def attempt():
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        itself = missing is not None and (module_name + ".").startswith(missing + ".")
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        step = "missing" if itself else "import"
        return {"step": step, "kind": type(error).__name__, "text": str(text),
                "missing": missing, "place": place(error)}
    if not hasattr(module, attribute):
        names = [name for name, value in vars(module).items()
                 if callable(value) and not name.startswith("__")]
        return {"step": "attribute", "names": names, "file": getattr(module, "__file__", None)}
    value = getattr(module, attribute)
    return {"step": "done" if callable(value) else "callable", "kind": type(value).__name__}

report = attempt()
with open(result, "w") as stream:
    json.dump(report, stream)
sys.stdout.flush()
os._exit(0)  # threads that the app started must not hold the check
"""


@dataclass(frozen=True, slots=True)
class AppInterpreter:
    """An interpreter as it describes itself; ``base_executable`` is the one behind a virtual
    environment."""

    executable: Path
    version: str
    minor: tuple[int, int]
    implementation: str
    base_executable: Path
    site_packages: tuple[Path, ...]
    origin: Origin
    distributions: Mapping[str, str]


class _Described(msgspec.Struct, frozen=True, kw_only=True):
    """What an interpreter says of itself (DESCRIBE)."""

    executable: str
    base: str
    version: str
    minor: tuple[int, int]
    implementation: str
    site: tuple[str, ...]
    distributions: dict[str, str]


class _Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What came of importing an app (IMPORT_APP)."""

    step: Literal["done", "missing", "import", "attribute", "callable"]
    kind: str | None = None
    text: str = ""
    missing: str | None = None
    place: str | None = None
    names: tuple[str, ...] = ()


class Spawn(Protocol):
    """Starts a process, its output in ``log``: ``spawn`` of a group, for example."""

    def __call__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]
    ) -> subprocess.Popen[bytes]: ...


def find_app_interpreter(chdir: Path, python: str | None = None) -> AppInterpreter:
    """The interpreter for the app in ``chdir``: ``--python``, an active or a local ``.venv``, or
    our own.

    An active environment that is our own says nothing about the app: a local ``.venv`` goes before
    it.
    """
    local = chdir / ".venv"
    active = os.environ.get("VIRTUAL_ENV")
    if python is not None:
        return describe_interpreter(_locate(python, chdir), "--python")
    if active and Path(active).resolve() != Path(sys.prefix).resolve():
        return describe_interpreter(
            _python_of(Path(active), "run `deactivate`, or name one with --python"), "VIRTUAL_ENV"
        )
    if local.is_dir():
        return describe_interpreter(
            _python_of(local, "make it again, or name one with --python"), ".venv"
        )
    return describe_interpreter(Path(sys.executable), "wsgiload")


def bundled_app_interpreter(python: str | None = None) -> AppInterpreter:
    """For the bundled apps: the interpreter below our own, or below the one named, with no packages
    in sight."""
    if python is not None:
        return without_packages(find_app_interpreter(Path.cwd(), python))
    return without_packages(describe_interpreter(Path(sys.executable), "wsgiload"))


@functools.cache
def describe_interpreter(executable: Path, origin: Origin) -> AppInterpreter:
    """Ask the interpreter what it is; one that wsgiload cannot serve is a UsageError with the
    fix."""
    interpreter = _describe(executable, origin)
    if interpreter.implementation != "CPython" or interpreter.minor < MINIMUM:
        raise UsageError(
            f"{executable} ({origin}) is {interpreter.implementation} {interpreter.version}",
            "wsgiload measures apps on CPython 3.11 or newer: name such an interpreter with "
            "--python",
        )
    return interpreter


@functools.cache
def describe_any(executable: Path, origin: Origin) -> AppInterpreter:
    """An interpreter for a bundled app, whatever it is; none of its packages are in sight."""
    return without_packages(_describe(executable, origin))


def without_packages(interpreter: AppInterpreter) -> AppInterpreter:
    """The interpreter below a virtual environment, for an app that needs nothing of it."""
    executable = interpreter.base_executable
    return replace(
        interpreter, executable=executable, site_packages=(), distributions=MappingProxyType({})
    )


def _describe(executable: Path, origin: Origin) -> AppInterpreter:
    facts = _ask(executable)
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
    )


def normalise(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def clean_variables(inherited: Mapping[str, str], app_dir: Path) -> dict[str, str]:
    """The inherited variables without those that choose modules; ``app_dir`` alone is on
    ``PYTHONPATH``."""
    kept = {name: value for name, value in inherited.items() if name not in PYTHON_VARIABLES}
    # Importing the app would otherwise write bytecode into the user's own folders.
    return {**kept, "PYTHONPATH": str(app_dir), "PYTHONDONTWRITEBYTECODE": "1"}


def check_app(
    app: str,
    interpreter: AppInterpreter,
    chdir: Path,
    environment: Mapping[str, str] | None = None,
    spawn: Spawn = launch,
) -> None:
    """Import ``module:callable`` by the app's interpreter, in a process of its own, ``chdir`` on
    its path.

    A wrong name is a UsageError; an app that exists and fails while it is imported is an
    AppImportError. ``environment`` replaces the variables of this process; ``spawn`` decides where
    the process runs.
    """
    module, attribute = _split(app)
    folder = chdir.resolve()
    variables = clean_variables(os.environ if environment is None else environment, folder)
    report = _import_app((module, attribute), interpreter, folder, variables, spawn)
    match report.step:
        case "done":
            return
        case "missing":
            raise _module_missing(module, interpreter, folder)
        case "attribute":
            raise _attribute_missing(module, attribute, report.names)
        case "callable":
            raise UsageError(
                f"{app} is not callable: it is of type {report.kind}",
                "name the module's WSGI callable",
            )
        case _:
            raise _import_failed(module, report, interpreter, folder)


def _locate(python: str, chdir: Path) -> Path:
    """The value of ``--python``: a path (from ``chdir`` or here), an environment's folder, or a
    command."""
    for candidate in (Path(python).expanduser(), chdir / Path(python).expanduser()):
        if candidate.is_dir():
            return _python_of(candidate.absolute(), "give its bin/python")
        if os.sep in python and candidate.is_file():
            return candidate.absolute()
    found = None if os.sep in python else shutil.which(python)
    if found is None:
        raise UsageError(
            f"--python {python}: no such interpreter", "give the path of a python executable"
        )
    return Path(found)


def _python_of(environment: Path, fix: str) -> Path:
    executable = environment / "bin" / "python"
    if not executable.exists():
        raise UsageError(f"{environment} has no bin/python", fix)
    return executable.absolute()


def _ask(executable: Path) -> _Described:
    fix = "give the path of a CPython 3.11 or newer with --python"
    if "shims" in executable.parts:
        fix = (
            f"{executable} is a shim of a version manager; give the interpreter itself with "
            "--python"
        )
    try:
        done = subprocess.run(
            [executable, "-I", "-c", DESCRIBE],
            capture_output=True,
            text=True,
            timeout=DESCRIBE_TIMEOUT_S,
            check=False,
        )
        if done.returncode == 0:
            return msgspec.json.decode(done.stdout, type=_Described)
        complaint = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError, UnicodeError) as error:
        complaint = str(error)
    raise UsageError(f"{executable} does not work as a Python 3 interpreter: {complaint}", fix)


def _split(app: str) -> tuple[str, str]:
    name, _, attribute = app.partition(":")
    if all(part.isidentifier() for part in [*name.split("."), attribute]) and not name.endswith(
        ".py"
    ):
        return name, attribute
    guess = name.removesuffix(".py").strip("./").replace("/", ".") or "myapp"
    callable_name = attribute if attribute.isidentifier() else "app"
    raise UsageError(f"APP {app!r} is not module:callable", f"write it as {guess}:{callable_name}")


def _import_app(
    target: tuple[str, str],
    interpreter: AppInterpreter,
    folder: Path,
    variables: dict[str, str],
    spawn: Spawn,
) -> _Imported:
    with (
        tempfile.TemporaryDirectory(prefix="wsgiload-") as scratch,
        tempfile.TemporaryFile() as log,
    ):
        result = Path(scratch) / "result.json"
        argv = [str(interpreter.executable), "-c", IMPORT_APP, *target, str(folder), str(result)]
        process = spawn(argv, env=variables, cwd=folder, log=log)
        try:
            process.wait(IMPORT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise AppImportError(
                f"importing {target[0]} did not end within {IMPORT_TIMEOUT_S:.0f} s",
                "move what blocks (a server's run loop, a connection) out of the module's top "
                "level",
                step="import",
            ) from None
        finally:
            process.kill()  # nothing, where it has ended
            process.wait()
        if not result.exists():
            log.seek(0)
            raise AppImportError(
                f"importing {target[0]} ended the interpreter with code {process.returncode}",
                f"run `{interpreter.executable} -c 'import {target[0]}'` in {folder} to see why",
                step="import",
                log_tail=log.read().decode(errors="replace")[-4000:],
            )
        # An exception's text may hold half a surrogate pair, which only the standard library reads.
        return msgspec.convert(json.loads(result.read_bytes()), type=_Imported)


def _module_missing(module: str, interpreter: AppInterpreter, folder: Path) -> UsageError:
    here = [path.stem for path in folder.glob("*.py")] + [
        path.parent.name for path in folder.glob("*/__init__.py")
    ]
    close = difflib.get_close_matches(module.partition(".")[0], here, n=1)
    cause = (
        f"no module {module!r} in {folder} nor in {interpreter.executable} ({interpreter.origin})"
    )
    if close:
        return UsageError(cause, f"did you mean {close[0]!r}?")
    return UsageError(cause, "change --chdir or --python, or install it there")


def _attribute_missing(module: str, attribute: str, names: Sequence[str]) -> UsageError:
    close = difflib.get_close_matches(attribute, names, n=1)
    usual = [name for name in ("app", "application", "wsgi") if name in names]
    guess = (close or usual)[:1]
    fix = (
        f"did you mean {module}:{guess[0]}?"
        if guess
        else f"callables in it: {', '.join(names[:8]) or 'none'}"
    )
    return UsageError(f"module {module!r} has no {attribute!r}", fix)


def _import_failed(
    module: str, report: _Imported, interpreter: AppInterpreter, folder: Path
) -> AppImportError:
    text = " ".join(report.text.split())
    where = f" at {report.place}" if report.place else ""
    cause = f"{module} fails while it is imported: {report.kind}: {text}{where}"

    if report.missing:
        fix = (
            f"install what provides {report.missing!r} for {interpreter.executable}, or "
            "change --python"
        )
    elif report.kind in ("SyntaxError", "IndentationError", "TabError"):
        fix = (
            f"correct that line, or name a newer interpreter than {interpreter.version} "
            "with --python"
        )
    else:
        fix = (
            f"`{interpreter.executable} -c 'import {module}'` in {folder} shows the whole traceback"
        )
    return AppImportError(cause, fix, step="import")
