"""Checks that the app can be imported before anything is installed or measured.

Importing runs the app's code, so it happens in a new cgroup, which is removed afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wsgiload.account import Account, account_of
from wsgiload.catalogue.names import ServerVariant
from wsgiload.environments.app_import import ImportContext, check_app
from wsgiload.environments.import_messages import left_control_group, out_of_memory
from wsgiload.environments.interpreter import (
    AppInterpreter,
    bundled_app_interpreter,
    describe_interpreter,
    find_app_interpreter,
)
from wsgiload.environments.project import FOLDERS, UV_VARIABLE, requested_version
from wsgiload.environments.user_environment import Interpreters, named_interpreters, needs_app
from wsgiload.environments.versions import find_version, is_version
from wsgiload.errors import AppImportError, UsageError
from wsgiload.experiment.plan import Experiment
from wsgiload.serving.groups import Place, fresh_group, list_processes
from wsgiload.units import NS_PER_S

MIN_MEMORY_BYTES = 1 << 30


def app_interpreter(experiment: Experiment) -> AppInterpreter:
    """The interpreter that the experiment names, or the one of its app."""
    account = account_of(experiment.limits.user)
    if experiment.python_version is not None:
        return find_version(experiment.python_version, account)
    if not experiment.bundled:
        found = find_app_interpreter(experiment.app_dir, experiment.python, account)
        return _of_version_file(experiment.app_dir, found, account)
    return bundled_app_interpreter(experiment.python, account)


def _of_version_file(
    folder: Path, found: AppInterpreter, account: Account | None
) -> AppInterpreter:
    """Without an environment, the installed interpreter that the project's file names."""
    version = requested_version(folder)
    if found.origin != "wsgiload" or version is None or is_version(found.version, version):
        return found
    try:
        named = find_version(version, account)
        return describe_interpreter(named.executable, ".python-version", account)
    except UsageError:  # the note says so
        return found


def _version_note(version: str | None, interpreter: AppInterpreter) -> str | None:
    if version is None:
        return None
    if interpreter.origin == ".python-version":
        return f"using Python {interpreter.version}, as .python-version says (see --python)"
    if is_version(interpreter.version, version):
        return None
    return (
        f".python-version says {version}, which is not installed or not supported; using Python "
        f"{interpreter.version} (see --python)"
    )


def interpreters_of(experiment: Experiment, variants: Mapping[str, ServerVariant]) -> Interpreters:
    """The interpreters of all configurations; that of the app only if a catalogue server
    imports it."""
    of_app = {None: app_interpreter(experiment)} if needs_app(variants) else {}
    return of_app | named_interpreters(variants, account_of(experiment.limits.user))


def environment_note(experiment: Experiment, interpreters: Interpreters) -> str | None:
    """A note about the environment that was detected for the app; None if it is in the app's folder
    or was named by the user."""
    interpreter = interpreters.get(None)
    if experiment.bundled or interpreter is None:
        return None
    if interpreter.origin in ("wsgiload", ".python-version"):
        return _version_note(requested_version(experiment.app_dir), interpreter)
    if interpreter.origin not in (*FOLDERS, UV_VARIABLE):
        return None
    environment = interpreter.executable.parent.parent
    is_in_app_folder = environment.parent == experiment.app_dir
    return (
        None
        if is_in_app_folder
        else f"using the environment {environment} for the app (see --python)"
    )


def app_failure_of(
    experiment: Experiment, interpreters: Interpreters, place: Place
) -> AppImportError | None:
    """Why the app cannot be imported; None if it can. Raises UsageError for a name that does not
    exist. The returned error applies to every cell of the catalogue's servers."""
    interpreter = interpreters.get(None)
    if experiment.bundled or experiment.app is None or interpreter is None:
        return None
    # The CPU time and memory that the app needs are measured later with the server; here the limit
    # only protects the host.
    memory_bytes = max(place.limits.memory_bytes or 0, MIN_MEMORY_BYTES)
    limits = replace(place.limits, cpus=None, memory_bytes=memory_bytes)
    with fresh_group("import", replace(place, limits=limits)) as group:
        timeout_s = experiment.ready_timeout_ns / NS_PER_S
        variables = {**os.environ, **experiment.variables}
        context = ImportContext(
            interpreter,
            variables,
            group.spawn,
            timeout_s,
            experiment.pythonpath,
            experiment.interface,
            place.limits.account,
        )
        try:
            check_app(experiment.app, experiment.app_dir, context)
        except AppImportError as error:
            if group.oom_kills():
                return out_of_memory(experiment.app, memory_bytes)
            return error
    if group.escaped:
        return left_control_group(experiment.app, list_processes(group.escaped))
    return None
