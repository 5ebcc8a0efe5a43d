"""The environment of each configuration. A server is installed once per interpreter; a user's
server runs in the user's own environment, unchanged.

Installs nothing there. The versions are read from the environment that contains the program.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from wsgiload.account import Account
from wsgiload.catalogue.names import ServerVariant
from wsgiload.catalogue.user_server import UserServer, split_words, words_of
from wsgiload.environments.interpreter import AppInterpreter
from wsgiload.environments.project import FOLDERS
from wsgiload.environments.provision import Environment, provision_all
from wsgiload.environments.versions import find_version, require_supported
from wsgiload.errors import ProvisionError, UsageError, WsgiloadError

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})

_PYTHON = re.compile(r"python[\d.]*t?")
# The formats of venv, virtualenv and uv.
_PYTHON_VERSION = re.compile(r"^version(?:_info)?\s*=\s*([\d.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class UserEnvironment(Environment):
    """The user's environment; ``user_server`` runs in it."""

    user_server: UserServer

    def environ(self, app_dir: Path, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """The inherited variables, extended by the path of a bundled app."""
        variables = dict(os.environ if inherited is None else inherited)
        if app_dir != self.user_server.folder:
            earlier = variables.get("PYTHONPATH")
            variables["PYTHONPATH"] = os.pathsep.join([str(app_dir), *filter(None, [earlier])])
        # Importing the app would otherwise write bytecode into the user's own folders.
        variables.setdefault("PYTHONDONTWRITEBYTECODE", "1")
        # The last output of a crashing server must be in its log.
        variables.setdefault("PYTHONUNBUFFERED", "1")
        return variables


def user_environment(
    user_server: UserServer, variables: Mapping[str, str] = NO_VARIABLES
) -> UserEnvironment | WsgiloadError:
    """The environment that contains the server's program, or the error; ``variables`` override
    those of this process."""
    try:
        program = find_user_program(user_server, variables)
    except UsageError as error:
        return ProvisionError(error.cause, error.fix, step="provision")
    # Resolve a link into an environment, such as pipx's, but not an environment's own interpreter,
    # which is a link that points out of it.
    is_inside = (program.parent.parent / "pyvenv.cfg").is_file()
    folder = program.parent if is_inside else program.resolve().parent
    return UserEnvironment(
        server=user_server.name,
        python=folder / "python",
        bin=folder,
        version=_version(words_of(user_server), folder.parent),
        python_version=_python_version(folder.parent),
        user_server=user_server,
    )


def find_user_program(user_server: UserServer, variables: Mapping[str, str] = NO_VARIABLES) -> Path:
    """The program of the command, found as a shell in its folder would find it. Raises
    UsageError."""
    name = words_of(user_server)[0]
    if os.sep not in name:
        return _on_path(name, user_server, variables, user_server.option)
    path = user_server.working_folder / name
    if path.is_file() and os.access(path, os.X_OK):
        return path
    raise UsageError(
        f"{user_server.option}: no program {name} in {user_server.working_folder}",
        "correct its path, or set the directory with "
        f"{'cwd' if user_server.is_table else '--chdir'}",
    )


def require_user_programs(
    user_server: UserServer, variables: Mapping[str, str] = NO_VARIABLES
) -> None:
    """Raise UsageError if programs of the server or of its setup and teardown commands are missing.
    An earlier command may create a program that is given by its path."""
    find_user_program(user_server, variables)
    for where, command in user_server.hooks:
        name = split_words(command, where)[0]
        if os.sep not in name:
            _on_path(name, user_server, variables, where)


def _on_path(name: str, user_server: UserServer, variables: Mapping[str, str], where: str) -> Path:
    path = shutil.which(name, path=variables.get("PATH"))
    if path is None:
        raise UsageError(
            f"{where}: no program {name!r} on your PATH", _where_else(name, user_server)
        )
    return Path(path).absolute()


def _where_else(name: str, user_server: UserServer) -> str:
    for folder in FOLDERS:
        local = Path(folder) / "bin" / name
        if (user_server.working_folder / local).is_file():
            return f"write {local}, or activate {folder} first"
    if "=" in name and user_server.is_table:
        return "set variables in its env"
    if "=" in name:
        return f"set variables with env, as in {user_server.option}='env {user_server.command}'"
    return "activate the environment that contains it, or use its full path"


def _version(words: list[str], prefix: Path) -> str | None:
    """The version of the distribution that provides the program, or the module after ``-m``."""
    program = Path(words[0]).name
    if _PYTHON.fullmatch(program):
        module = words[words.index("-m") + 1 :][:1] if "-m" in words else []
        if not module:
            return None
        program = module[0].partition(".")[0]

    folders = [str(folder) for folder in prefix.glob("lib/python3*/site-packages")]
    for distribution in metadata.distributions(path=folders):
        scripts = distribution.entry_points.select(group="console_scripts", name=program)
        if scripts or (distribution.name or "").lower() == program.lower():
            return distribution.version
    return None


def _python_version(prefix: Path) -> str | None:
    try:
        match = _PYTHON_VERSION.search((prefix / "pyvenv.cfg").read_text())
    except (OSError, UnicodeError):
        return None
    return match[1].rstrip(".") if match is not None else None


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
