"""Which interpreter each setting of an experiment runs on, and the environments for it: each server
installed once for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wsgiload.catalogue.names import ServerVariant
from wsgiload.environments.interpreter import AppInterpreter
from wsgiload.environments.provision import Environment, provision_all
from wsgiload.environments.versions import find_version, require_suited
from wsgiload.errors import UsageError, WsgiloadError

Environments = Mapping[str, Environment | WsgiloadError]
# By what a setting says of Python: None is the interpreter of the experiment.
Interpreters = Mapping[str | None, AppInterpreter]


def named_interpreters(found: Mapping[str, ServerVariant]) -> dict[str, AppInterpreter]:
    """The interpreters that settings name by their versions. Raises UsageError for a version that
    is not installed, or that one of its servers does not run on."""
    named: dict[str, AppInterpreter] = {}
    for one in found.values():
        if one.python is not None:
            if one.python not in named:
                named[one.python] = _found_anew(one.python, named)
            require_suited(one.server, named[one.python])
    return named


def _found_anew(version: str, named: Mapping[str, AppInterpreter]) -> AppInterpreter:
    """The interpreter, which is none of those found before: it would be compared with itself as if
    with another."""
    found = find_version(version)
    for other, interpreter in named.items():
        if interpreter.base_executable == found.base_executable:
            raise UsageError(
                f"--grid python={other},{version}: both are Python {found.version}",
                "name each once",
            )
    return found


def provide(
    found: Mapping[str, ServerVariant], interpreters: Interpreters, log: Callable[[str], None]
) -> dict[str, Environment | WsgiloadError]:
    """The environment of each setting, by its id, or why there is none."""
    made: dict[tuple[str | None, str], Environment | WsgiloadError] = {}
    for python, interpreter in interpreters.items():
        servers = [one.server for one in found.values() if one.python == python]
        if servers:
            provisioned = provision_all(servers, interpreter, log=log)
            made |= {(python, name): environment for name, environment in provisioned.items()}
    return {setting: made[one.python, one.server.name] for setting, one in found.items()}
