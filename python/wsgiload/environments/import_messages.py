"""Messages about apps that cannot be served: the cause, and a fix that can be pasted."""

from __future__ import annotations

import shlex
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wsgiload.catalogue.contract import Interface
from wsgiload.environments.app_name import AppName, ImportedFrom, from_here, shadowed_modules
from wsgiload.environments.interpreter import AppInterpreter
from wsgiload.environments.project import manager_of
from wsgiload.errors import AppImportError, UsageError, WsgiloadError

if TYPE_CHECKING:
    from wsgiload.environments.app_import import Imported

ASGI_MODULE = "wsgi_adapter"
# The signature of an app for each interface.
APPS = {
    "wsgi": ("a WSGI app", "(environ, start_response)"),
    "asgi": ("an ASGI app", "(scope, receive, send)"),
}
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class About:
    """The app that was to be served, with its interface."""

    name: AppName
    folder: Path
    interpreter: AppInterpreter
    interface: Interface


def error_of(report: Imported, about: About, suggestion: str | None = None) -> WsgiloadError:
    """The error for an app that cannot be served; ``suggestion`` is a name that works."""
    name, folder, interpreter = about.name, about.folder, about.interpreter
    kind, arguments = APPS[about.interface]
    served = as_call(name) if report.text == "()" else name
    match report.step:
        case "attribute":
            return _attribute_missing(report, name, folder, suggestion)
        case "asgi":
            return _is_asgi(served, folder, interpreter)
        case "wsgi":
            meant = "" if suggestion is None else f"did you mean {suggestion}? If not, "
            return UsageError(f"{served.text} is a WSGI app", f"{meant}omit --interface asgi")
        case "factory":
            return UsageError(
                f"{name.text} is a factory: it takes {report.text} and returns the app",
                f"call it: {shlex.quote(as_call(name).text)}",
            )
        case "arguments":
            return UsageError(
                f"{name.text} is not {kind}: it takes {report.text}, not {arguments}",
                _call_hint(report, name),
            )
        case "callable":
            return UsageError(
                f"{name.text} is not callable: it is of type {report.kind}",
                f"name the module's {about.interface.upper()} callable",
            )
        case _:
            return _import_failed(report, name, folder, interpreter, suggestion)


def as_call(name: AppName, arguments: str = "") -> AppName:
    """The app that a factory of this name returns."""
    return AppName(name.module, f"{name.expression}({arguments})")


def import_timed_out(name: AppName, timeout_s: float) -> AppImportError:
    """The error for an import that does not end."""
    return AppImportError(
        f"importing {name.module} did not finish within {timeout_s:g} s",
        "raise --ready-timeout, or move blocking code (a server's run loop, a connection) "
        "out of the module's top level",
        step="import",
    )


def interpreter_exited(
    app: ImportedFrom, code: int, interpreter: AppInterpreter, log_tail: str
) -> AppImportError:
    """The error for an app that exited its interpreter."""
    how = f"with code {code}"
    if code < 0:
        how = f"by {signal.Signals(-code).name}" if -code in set(signal.Signals) else how
    return AppImportError(
        f"importing {app.name.module} terminated the interpreter {how}",
        f"run {_import_command(app.name, interpreter)} in {app.folder} to see why",
        step="import",
        log_tail=log_tail,
    )


def out_of_memory(app: str, limit_bytes: int) -> AppImportError:
    """The error for an import that exceeds the memory limit."""
    return AppImportError(
        f"importing {app.partition(':')[0]} exceeds the memory limit of "
        f"{limit_bytes / MIB:,.0f} MiB",
        "raise --memory",
        step="import",
    )


def left_control_group(app: str, processes: str) -> AppImportError:
    """The error for an import whose processes leave their control group."""
    return AppImportError(
        f"importing {app.partition(':')[0]} moves processes out of their control group, where they "
        f"are neither limited nor measured: {processes}; they were ended",
        "do not change control groups in the app",
        step="import",
    )


def module_missing(
    name: AppName, folder: Path, interpreter: AppInterpreter, suggestion: str | None
) -> UsageError:
    """The error for a module that does not exist; ``suggestion`` is a name that works."""
    cause = (
        f"no module {name.module!r} in {folder} nor in {interpreter.executable} "
        f"({interpreter.origin})"
    )
    if suggestion is not None:
        return UsageError(cause, f"did you mean {suggestion}?")
    return UsageError(cause, "change --chdir or --python, or install the module there")


def _call_hint(report: Imported, name: AppName) -> str:
    if report.matches:
        return f"if it is a factory, call it: {shlex.quote(as_call(name).text)}"
    call = as_call(name, repr("production")).text
    return f"if it is a factory, call it with literal arguments, such as {shlex.quote(call)}"


def without_settings(name: AppName, assignment: str) -> AppImportError:
    """The error for a Django app without configured settings."""
    return AppImportError(
        f"importing {name.module} fails: Django's settings are not configured",
        f"add --env {assignment}",
        step="import",
    )


def _attribute_missing(
    report: Imported, name: AppName, folder: Path, suggestion: str | None
) -> UsageError:
    top = name.module.partition(".")[0]
    if top in shadowed_modules(folder) and not str(report.file).startswith(str(folder)):
        return UsageError(
            f"module {top!r} in {folder} has the name of a standard-library module, which servers "
            "import instead",
            "rename it",
        )
    cause = f"module {name.module!r} has no {name.expression!r}"
    if report.matches:
        suggested = AppName(name.module, report.matches[0])
        return UsageError(cause, f"did you mean {shlex.quote(suggested.text)}?")
    if suggestion is not None:
        return UsageError(cause, f"did you mean {suggestion}?")
    return UsageError(cause, f"callables in it: {', '.join(report.names) or 'none'}")


def _is_asgi(name: AppName, folder: Path, interpreter: AppInterpreter) -> UsageError:
    """The error for an ASGI app: ASGI servers run it, and an adapter turns it into a WSGI app. The
    command depends on the installed packages."""
    cause = f"{name.text} is an ASGI app"
    native = "add --interface asgi to measure ASGI servers; for WSGI servers, wrap it with a2wsgi"
    file, adapted = folder / f"{ASGI_MODULE}.py", f"measure {ASGI_MODULE}:app"
    if file.exists():
        return UsageError(cause, f"{native}'s ASGIMiddleware in {file}, then {adapted}")

    write = f"printf '%s\\n' {shlex.join(_adapter(name))} > {shlex.quote(from_here(file))}"
    install = "" if "a2wsgi" in interpreter.distributions else _install("a2wsgi", interpreter)
    return UsageError(cause, f"{native}: `{install}{write}`, then {adapted}")


def _adapter(name: AppName) -> tuple[str, ...]:
    """The lines of a module that turns an ASGI app into a WSGI app."""
    top = name.expression.partition("(")[0].partition(".")[0]
    adapter, wrapped = (
        "from a2wsgi import ASGIMiddleware",
        f"app = ASGIMiddleware({name.expression})",
    )
    if name.is_module_identifier:
        return adapter, f"from {name.module} import {top}", "", wrapped
    import_line = f"{top} = importlib.import_module({name.module!r}).{top}"
    return "import importlib", "", adapter, "", import_line, wrapped


def _install(package: str, interpreter: AppInterpreter) -> str:
    """The command that adds a package to the app's environment, followed by ``&&``."""
    python = shlex.quote(str(interpreter.executable))
    if "pip" in interpreter.distributions:
        return f"{python} -m pip install {package} && "
    return f"uv pip install --python {python} {package} && "


def _import_failed(
    report: Imported,
    name: AppName,
    folder: Path,
    interpreter: AppInterpreter,
    suggestion: str | None,
) -> AppImportError:
    text = " ".join(report.text.split())
    where = f" at {report.place}" if report.place else ""
    fails = f"importing {name.module} fails"
    if report.step == "call":
        fails = f"{name.text} fails"
    cause = f"{fails}: {report.kind}: {text}{where}"

    if suggestion is not None:
        fix = f"did you mean {suggestion}?"
    elif report.variable:
        fix = f"add --env {report.variable}=VALUE"
    elif report.missing and interpreter.origin in ("wsgiload", ".python-version"):
        fix = _make_environment(report.missing, folder)
    elif report.missing:
        fix = (
            f"install the package with {report.missing!r} for {interpreter.executable}, or "
            "change --python"
        )
    elif report.kind in ("SyntaxError", "IndentationError", "TabError"):
        fix = f"correct that line, or use a newer interpreter than {interpreter.version} (--python)"
    elif report.kind == "SystemExit":
        fix = "move the code that exits below `if __name__ == '__main__':`"
    else:
        fix = f"run {_import_command(name, interpreter)} in {folder} to see the traceback"
    return AppImportError(cause, fix, step="import")


def _make_environment(missing: str, folder: Path) -> str:
    """How to make an environment for the app, based on the files of its project."""
    packages = shlex.quote(missing.partition(".")[0])
    if (folder / "requirements.txt").is_file():
        packages = "-r requirements.txt"
    elif (folder / "pyproject.toml").is_file():
        packages = "-e ."
    command = f"python3 -m venv .venv && .venv/bin/python -m pip install {packages}"
    manager = manager_of(folder)
    if manager is not None:
        command = manager.install
    elif (folder / "uv.lock").is_file():
        command = "uv sync"
    where = "" if folder == Path.cwd() else f" in {folder}"
    return f"create an environment for the app: `{command}`{where}"


def _import_command(name: AppName, interpreter: AppInterpreter) -> str:
    """The import as a command, even if the module's name is not an identifier."""
    statement = f"import {name.module}"
    if not name.is_module_identifier:
        statement = f"import importlib; importlib.import_module({name.module!r})"
    elif "(" in name.expression:
        statement += f"; {name.module}.{name.expression}"
    return f"`{shlex.quote(str(interpreter.executable))} -c {shlex.quote(statement)}`"
