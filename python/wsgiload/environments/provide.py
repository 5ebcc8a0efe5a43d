"""Provides the interpreter and the environment of each configuration. A server is installed once
per interpreter; a user's server runs in the user's environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wsgiload.account import Account
from wsgiload.catalogue.names import ServerVariant
from wsgiload.environments.interpreter import AppInterpreter
from wsgiload.environments.provision import Environment, provision_all
from wsgiload.environments.user_environment import user_environment
from wsgiload.environments.versions import find_version, require_supported
from wsgiload.errors import UsageError, WsgiloadError

Environments = Mapping[str, Environment | WsgiloadError]
# By the Python version of a configuration; None is the experiment's interpreter.
Interpreters = Mapping[str | None, AppInterpreter]


def named_interpreters(
    variants: Mapping[str, ServerVariant], account: Account | None = None
) -> dict[str, AppInterpreter]:
    """The interpreters that configurations request by version. Raises UsageError if a version is
    not installed or a server does not support it."""
    named: dict[str, AppInterpreter] = {}
    for variant in variants.values():
        if variant.python is not None:
            if variant.python not in named:
                named[variant.python] = _distinct_interpreter(variant.python, named, account)
            require_supported(variant.server, named[variant.python])
    return named


def _distinct_interpreter(
    version: str, named: Mapping[str, AppInterpreter], account: Account | None
) -> AppInterpreter:
    """The interpreter of this version. Raises UsageError if an earlier version has the
    same interpreter, because comparing the two would be meaningless."""
    candidate = find_version(version, account)
    for other, interpreter in named.items():
        if interpreter.base_executable == candidate.base_executable:
            raise UsageError(
                f"--grid python={other},{version}: both are Python {candidate.version}",
                "list each version once",
            )
    return candidate


def provide(
    variants: Mapping[str, ServerVariant],
    interpreters: Interpreters,
    log: Callable[[str], None],
    app_failure: WsgiloadError | None = None,
) -> dict[str, Environment | WsgiloadError]:
    """The environment of each configuration, or the error, by configuration id. ``app_failure``,
    why the app cannot be imported, is the error of every catalogue server."""
    user_environments = {
        configuration: user_environment(variant.server.user_server, dict(variant.variables))
        for configuration, variant in variants.items()
        if variant.server.user_server is not None
    }
    catalogue_variants = {
        configuration: variant
        for configuration, variant in variants.items()
        if configuration not in user_environments
    }
    if app_failure is not None:
        return {**user_environments, **dict.fromkeys(catalogue_variants, app_failure)}

    environments: dict[tuple[str | None, str], Environment | WsgiloadError] = {}
    for python, interpreter in interpreters.items():
        servers = [
            variant.server for variant in catalogue_variants.values() if variant.python == python
        ]
        if servers:
            provisioned = provision_all(servers, interpreter, log=log)
            environments |= {(python, key): environment for key, environment in provisioned.items()}
    return {
        **user_environments,
        **{
            configuration: environments[variant.python, variant.server.key]
            for configuration, variant in catalogue_variants.items()
        },
    }


def needs_app(variants: Mapping[str, ServerVariant]) -> bool:
    """Whether a catalogue server imports the app; a user's command names its app itself."""
    return any(variant.server.user_server is None for variant in variants.values())
