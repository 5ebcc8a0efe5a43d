"""Whether the app can be imported at all, before anything is installed or measured for it.

Importing runs the app's own code, so it happens in a fresh group, of which nothing is left.
"""

from __future__ import annotations

from dataclasses import replace

from wsgiload.environments.interpreter import (
    AppInterpreter,
    bundled_app_interpreter,
    check_app,
    find_app_interpreter,
)
from wsgiload.environments.versions import find_version
from wsgiload.errors import AppImportError
from wsgiload.experiment.plan import Experiment
from wsgiload.serving.lifecycle import Place, fresh_group


def app_interpreter(experiment: Experiment) -> AppInterpreter:
    """The interpreter that the experiment names, or the one of its app."""
    if experiment.python_version is not None:
        return find_version(experiment.python_version)
    if not experiment.bundled:
        return find_app_interpreter(experiment.app_dir, experiment.python)
    return bundled_app_interpreter(experiment.python)


def app_failure_of(
    experiment: Experiment, interpreter: AppInterpreter, place: Place
) -> AppImportError | None:
    """A name that does not exist is the caller's to correct; an app that breaks fails every
    cell."""
    if experiment.bundled:
        return None
    # What CPU time and memory it needs is seen where it is measured, and is the server's.
    unmeasured = replace(place, limits=replace(place.limits, cpus=None, memory_bytes=None))
    with fresh_group("import", unmeasured) as group:
        try:
            check_app(experiment.app, interpreter, experiment.app_dir, spawn=group.spawn)
        except AppImportError as error:
            return error
    return None
