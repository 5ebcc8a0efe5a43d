"""Imports an app and writes the result as JSON. The app's interpreter runs it as a program, so it
only imports the standard library.

Like a server, it imports its own modules before it adds the app's folder to the path, so the app
cannot shadow them. The app may print, fork, start threads or change the directory;
only this process writes the result, and it exits without waiting for anything.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

TEXT_CHARS = 2_000
# Only callables with these names are called as factories: ``main`` might serve forever.
FACTORY_NAME = re.compile(r"^(create|make|build|get|new)|factory|(^|_)(app|application|wsgi)$")
USUAL = ("app", "application", "wsgi", "wsgi_app", "server", "create_app", "make_app")
MAX_NAMES = 8
# The number of positional arguments of an app.
ARGUMENTS = {"wsgi": 2, "asgi": 3}

Report = dict[str, object]


def place(error: BaseException, folder: str) -> str | None:
    """``file:line`` in the app's code where the error occurred."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    app_frames = [frame for frame in frames if frame.filename.startswith(folder + os.sep)]
    for frame in (app_frames or frames)[-1:]:
        return f"{frame.filename}:{frame.lineno}"
    return None


def unset_variable(error: BaseException) -> str | None:
    """The environment variable whose absence caused the error; None if the error is different."""
    if not isinstance(error, KeyError) or not error.args:
        return None
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    is_variable = frame.f_code is type(os.environ).__getitem__.__code__
    return str(error.args[0]) if is_variable else None


def absent_file(error: BaseException) -> str | None:
    """The relative path of the missing file that caused the error; None if the error is
    different."""
    name = getattr(error, "filename", None) if isinstance(error, FileNotFoundError) else None
    return name if isinstance(name, str) and not Path(name).is_absolute() else None


def failure(error: BaseException, step: str, folder: str) -> Report:
    """The report of an exception, even if its methods fail."""
    try:
        text = str(error.msg) if isinstance(error, SyntaxError) else str(error)
    except BaseException:  # any method of an app's exception may fail
        text = "(its text cannot be read)"
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return {
        "step": step,
        "kind": type(error).__name__,
        "text": text[:TEXT_CHARS],
        "missing": missing,
        "variable": unset_variable(error),
        "absent": absent_file(error),
        "place": place(error, folder),
    }


def is_asgi(value: object) -> bool:
    """Whether a callable has the form of an ASGI app: a coroutine of scope, receive and send."""
    if inspect.isclass(value) or not callable(value):
        return False
    call = value if inspect.isroutine(value) else type(value).__call__
    if inspect.iscoroutinefunction(call):
        return True
    return [*parameters(value)][:3] == ["scope", "receive", "send"]


def parameters(value: object) -> dict[str, inspect.Parameter]:
    """The parameters by name; empty if unknown."""
    try:
        return dict(inspect.signature(value).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return {}


def accepts(value: object, count: int) -> bool:
    """Whether it accepts this many positional arguments; True if unknown."""
    try:
        inspect.signature(value).bind(*range(count))  # type: ignore[arg-type]
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def is_app(value: object, interface: str) -> bool:
    """Whether a callable accepts the arguments of this interface. False if all its parameters have
    defaults."""
    if not callable(value) or not accepts(value, ARGUMENTS[interface]):
        return False
    if is_asgi(value):
        return interface == "asgi"
    kinds = parameters(value).values()
    has_options_only = bool(kinds) and all(
        parameter.default is not parameter.empty for parameter in kinds
    )
    return not has_options_only


def call_factory(value: Callable[[], object]) -> object:
    """The result of a factory; None if it fails."""
    try:
        return value()
    except BaseException:
        return None


def is_factory_name(name: str, value: object) -> bool:
    """Whether the value may be called as a factory."""
    return inspect.isclass(value) or FACTORY_NAME.search(name.rpartition(".")[2]) is not None


def app_suffix(name: str, value: object, interface: str) -> str | None:
    """The suffix with which a name yields an app: empty or ``()``; None if neither does."""
    if not callable(value):
        return None
    if is_app(value, interface):
        return ""
    if is_asgi(value) or not accepts(value, 0) or not is_factory_name(name, value):
        return None
    return "()" if is_app(call_factory(value), interface) else None


def suggestions(module: object, missing: str, interface: str) -> tuple[list[str], list[str]]:
    """The names that yield an app, the most likely first, and the callables defined in the
    module."""
    callables = [
        name
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and is_defined_in(name, value, module)
    ]
    close = difflib.get_close_matches(missing, callables, n=3)
    likely = [*close, *USUAL, *(name for name in callables if FACTORY_NAME.search(name))]
    matches = []
    for name in dict.fromkeys(likely):
        suffix = app_suffix(name, getattr(module, name), interface) if name in callables else None
        if suffix is not None:
            matches.append(name + suffix)
    return matches, callables[:MAX_NAMES]


def is_defined_in(name: str, value: object, module: object) -> bool:
    """Whether the module defines or computes the value: imported functions and classes keep their
    own name, unlike an app that a factory returns."""
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return True
    is_local = getattr(value, "__module__", None) == getattr(module, "__name__", None)
    return is_local or getattr(value, "__name__", name) != name


def attempt(module_name: str, expression: str, folder: str, interface: str) -> Report:
    """Import the module, evaluate the expression, and classify the result."""
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:  # SystemExit included
        report = failure(error, "import", folder)
        missing = report["missing"]
        if isinstance(missing, str) and (module_name + ".").startswith(missing + "."):
            report["step"] = "missing"
        return report

    tree = ast.parse(expression, mode="eval").body
    target = tree.func if isinstance(tree, ast.Call) else tree
    value: object = module
    for name in ast.unparse(target).split("."):
        if not hasattr(value, name):
            matches: list[str] = []
            names: list[str] = []
            if module_name.partition(".")[0] not in sys.stdlib_module_names:
                matches, names = suggestions(module, ast.unparse(target), interface)
            file = getattr(module, "__file__", None)
            return {"step": "attribute", "names": names, "matches": matches, "file": file}
        value = getattr(value, name)
    if isinstance(tree, ast.Call):
        try:
            value = value(  # type: ignore[operator]
                *(ast.literal_eval(argument) for argument in tree.args),
                **{
                    str(argument.arg): ast.literal_eval(argument.value)
                    for argument in tree.keywords
                },
            )
        except BaseException as error:
            return failure(error, "call", folder)
    return classify(expression, value, interface)


def other_interface(value: object, interface: str) -> str | None:
    """The interface of an app for the other interface; None for anything else."""
    if interface == "wsgi":
        return "asgi" if is_asgi(value) else None
    is_other = not accepts(value, ARGUMENTS[interface]) and is_app(value, "wsgi")
    return "wsgi" if is_other else None


def classify(name: str, value: object, interface: str) -> Report:
    """The report on a value: an app, a factory, or why it cannot be served."""
    kind = type(value).__name__
    if not callable(value):
        return {"step": "callable", "kind": kind}
    other = other_interface(value, interface)
    if other is not None:
        return {"step": other, "kind": kind}
    if is_app(value, interface):
        return {"step": "done", "kind": kind}
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        text = "(...)"
    needs_none = accepts(value, 0)
    result = call_factory(value) if needs_none and is_factory_name(name, value) else None
    other = other_interface(result, interface) if callable(result) else None
    if other is not None:
        return {"step": other, "kind": type(result).__name__, "text": "()"}
    if callable(result):
        return {"step": "factory", "kind": kind, "text": text[:200]}
    step = "done" if accepts(value, ARGUMENTS[interface]) else "arguments"
    suffix = ("()",) if needs_none else ()
    return {"step": step, "kind": kind, "text": text[:200], "matches": suffix}


def main() -> None:
    """Write the report into the result file."""
    module_name, expression, interface, result, folder, *path = sys.argv[1:]
    sys.argv = [module_name]
    our_pid = os.getpid()
    sys.path[:0] = path
    try:
        report = attempt(module_name, expression, folder, interface)
    except BaseException as error:  # any method of an app's object may fail
        report = failure(error, "call", folder)
    if os.getpid() == our_pid:  # processes that the app forked get here, too
        unfinished = Path(f"{result}.{os.urandom(8).hex()}")
        with unfinished.open("x") as stream:  # follows no link
            stream.write(json.dumps(report))
        unfinished.rename(result)
    os._exit(0)  # do not wait for the app's threads


if __name__ == "__main__":
    main()
