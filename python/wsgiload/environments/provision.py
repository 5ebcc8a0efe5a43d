"""Builds and caches one locked environment per server, and makes the app's packages visible in it.

An environment is keyed by server, lock and base interpreter. It is built under a temporary name
while a file lock is held, and renamed when complete, so an interrupted build never looks complete
and concurrent runs do not collide. A complete environment needs no network. Nothing here changes
the user's environment or starts a server.

Layering: each environment contains a ``.pth`` file that adds the folders of ``WSGILOAD_APP_SITE``
after the environment's packages, including their ``.pth`` files (editable installs). The variable
is set for each launch, so one cached environment serves every app. If both sides have a
distribution, the server's version is used; ``Conflict`` names it.
"""

from __future__ import annotations

import contextlib
import contextvars
import fcntl
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from wsgiload.catalogue.contract import Server
from wsgiload.documents.base import decode_json
from wsgiload.environments.cache import (
    cache_folder,
    find_program,
    install_command,
    missing_packages,
)
from wsgiload.environments.interpreter import AppInterpreter, clean_variables, normalise
from wsgiload.environments.locks import (
    FACTS_FILE,
    damage_of,
    installed_distributions,
    known_lock,
    lock_of,
    site_packages_of,
    uv_program,
    uv_variables,
)
from wsgiload.environments.versions import interpreter_for
from wsgiload.errors import ProvisionError, UsageError, WsgiloadError
from wsgiload.foreign_files import replace_file
from wsgiload.foreign_text import legible_log
from wsgiload.host.memory_guard import unguarded

Log = Callable[[str], None]

APP_SITE_VARIABLE = "WSGILOAD_APP_SITE"
LAYOUT = 1  # part of every key; increment it when the contents of an environment change
LOG_TAIL_CHARS = 4000
BUILDS_AT_ONCE = 4  # builds mostly wait for the network

APP_SITE_MODULE = f'''"""Adds the app's packages behind this environment's own; from wsgiload."""

import os
import site

for _folder in os.environ.get("{APP_SITE_VARIABLE}", "").split(os.pathsep):
    if _folder:
        site.addsitedir(_folder)
'''
LAYERING = {
    "_wsgiload_app_site.py": APP_SITE_MODULE,
    # Last in the alphabet, so the environment's .pth files come first.
    "zzz-wsgiload-app-site.pth": "import _wsgiload_app_site\n",
}

MIN_FREE_BYTES = 1 << 20
_FULL_DISK = re.compile(r"No space left on device|Disk quota exceeded|os error 28\b")
# uv's words.
_NO_NETWORK = re.compile(
    r"error sending request|dns error|tcp connect error|network connectivity is disabled"
)
_ADDRESS = re.compile(r"https?://[^\s`'\")]+")
# Error messages of compilers and pip about missing system components, and the Debian package that
# provides them.
MISSING_PACKAGES = (
    (
        r"\b(gcc|cc)['\"]?: (No such file|not found|command not found)"
        r"|No such file or directory: '(gcc|cc)'",
        "gcc",
    ),
    (r"command '?\S*(gcc|cc)'? failed: No such file", "gcc"),
    (r"you need a C compiler", "gcc"),
    (r"Python\.h: No such file", "python3-dev"),
    (r"cannot find -lpython", "python3-dev"),
)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A distribution that both the server and the app have, in different versions; the server's is
    used."""

    name: str
    server_version: str
    app_version: str


@dataclass(frozen=True, slots=True)
class Environment(ABC):
    """The environment from which a server is launched; ``version`` is the server's, None if
    unknown."""

    server: str
    python: Path
    bin: Path
    version: str | None
    python_version: str | None  # None for a server that runs no Python
    conflicts: tuple[Conflict, ...] = field(default=(), kw_only=True)

    @abstractmethod
    def environ(self, app_dir: Path, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables for a launch; ``inherited`` are by default those of this process."""


@dataclass(frozen=True, slots=True)
class LockedEnvironment(Environment):
    """The environment of a catalogue server, built from its lock."""

    lock_sha256: str
    built: bool
    seconds: float
    layered_site_packages: tuple[Path, ...]
    ignored_variables: tuple[str, ...] = ()

    def environ(self, app_dir: Path, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables for a launch, without inherited ones that affect module lookup or
        configure the server."""
        kept = clean_variables(os.environ if inherited is None else inherited, app_dir)
        variables = {
            name: value
            for name, value in kept.items()
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.ignored_variables)
        }
        variables[APP_SITE_VARIABLE] = os.pathsep.join(map(str, self.layered_site_packages))
        variables["PYTHONUNBUFFERED"] = (
            "1"  # the last output of a crashing server must be in its log
        )
        return variables


def provision(server: Server, interpreter: AppInterpreter, *, log: Log) -> LockedEnvironment:
    """The environment of ``server``, cached or built now, with this interpreter. For a bundled app,
    a server that does not support it gets the newest supported interpreter."""
    interpreter = interpreter_for(server, interpreter)
    _require_packages(server)
    started_ns = time.monotonic_ns()
    server = replace(server, lock=lock_of(server, interpreter, log))
    lock_sha256 = _lock_sha256(server)
    folder = _environment_folder(server, interpreter, lock_sha256)
    (facts, _), built = _cached_distributions(server, interpreter, folder), False
    if facts is None:
        with _exclusive_lock(folder.with_name(folder.name + ".lock")):
            # Another run may have built it meanwhile.
            facts, damage = _cached_distributions(server, interpreter, folder)
            if facts is None:
                log(_build_message(server, interpreter, damage))
                facts, built = _build_verified(server, interpreter, folder), True
    return LockedEnvironment(
        server=server.name,
        python=folder / "bin" / "python",
        bin=folder / "bin",
        version=_server_version(server, interpreter, facts),
        python_version=_python_version(server, interpreter),
        lock_sha256=lock_sha256,
        built=built,
        seconds=(time.monotonic_ns() - started_ns) / 1e9,
        layered_site_packages=interpreter.site_packages,
        conflicts=find_conflicts(facts, interpreter.distributions),
        ignored_variables=server.ignored_variables,
    )


def provision_all(
    servers: Iterable[Server], interpreter: AppInterpreter, *, log: Log
) -> dict[str, LockedEnvironment | WsgiloadError]:
    """Provision all servers, by key, several at a time; a failure does not stop the others."""
    by_key = {server.key: server for server in servers}
    # Cache the result before threads start, because the lookup is not thread-safe.
    uv_program()

    def attempt(server: Server) -> LockedEnvironment | WsgiloadError:
        try:
            return provision(server, interpreter, log=log)
        except WsgiloadError as error:
            return error

    # Threads do not inherit the trust of --trust-folder.
    contexts = [contextvars.copy_context() for _ in by_key]
    with ThreadPoolExecutor(BUILDS_AT_ONCE) as pool:
        try:
            outcomes = pool.map(
                lambda context, server: context.run(attempt, server), contexts, by_key.values()
            )
            return dict(zip(by_key, outcomes, strict=True))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def installed_servers(servers: Sequence[Server], interpreter: AppInterpreter) -> frozenset[str]:
    """The names of the servers with an environment in the cache; builds nothing."""
    return frozenset(server.name for server in servers if _is_installed(server, interpreter))


def _is_installed(server: Server, preferred: AppInterpreter) -> bool:
    try:
        interpreter = interpreter_for(server, preferred)
        server = replace(server, lock=known_lock(server, interpreter))
        folder = _environment_folder(server, interpreter, _lock_sha256(server))
        # The link is dangling if the interpreter was moved or removed.
        return _read_facts(folder) is not None and (folder / "bin" / "python").exists()
    except (UsageError, ProvisionError):
        return False


def find_conflicts(server: Mapping[str, str], app: Mapping[str, str]) -> tuple[Conflict, ...]:
    """The distributions that both sides have in different versions, by name."""
    both = sorted(server.keys() & app.keys())
    return tuple(
        Conflict(name, server[name], app[name]) for name in both if server[name] != app[name]
    )


def _require_packages(server: Server) -> None:
    missing = missing_packages(server.needs)
    if missing:
        raise ProvisionError(
            f"{server.name} needs the system package{'s' if len(missing) > 1 else ''} "
            f"{', '.join(missing)}",
            f"as root run `{install_command(missing)}`",
            step="provision",
        )


def _server_version(server: Server, interpreter: AppInterpreter, facts: Mapping[str, str]) -> str:
    if server.version_command:
        return _printed_version(server.version_command)
    return (
        interpreter.version
        if server.distribution is None
        else facts[normalise(server.distribution)]
    )


def _printed_version(command: Sequence[str]) -> str:
    """The first version number in the output of a program."""
    program = find_program(command[0]) or command[0]
    try:
        completed = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProvisionError(
            f"cannot determine the version of {command[0]}: {error}", step="provision"
        ) from error
    match = re.search(r"\d+(\.\d+)+", completed.stdout + completed.stderr)
    return match[0] if match else "unknown"


def _python_version(server: Server, interpreter: AppInterpreter) -> str | None:
    if not server.serves_apps:
        return None
    return (
        interpreter.version if server.implementation == "CPython" else f"PyPy {interpreter.version}"
    )


def _lock_sha256(server: Server) -> str:
    try:
        return hashlib.sha256(server.lock_path.read_bytes()).hexdigest()
    except OSError as error:
        raise ProvisionError(
            f"{server.name} has no lock file: {server.lock_path}: {error.strerror}",
            "in a checkout run tools/lock-servers, otherwise reinstall wsgiload",
            step="provision",
        ) from error


def _environment_folder(server: Server, interpreter: AppInterpreter, lock_sha256: str) -> Path:
    """The folder of an environment; its hash also distinguishes builds of the same Python
    version."""
    key = json.dumps(
        [LAYOUT, server.name, lock_sha256, str(interpreter.base_executable), interpreter.version]
    )
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return cache_folder() / "environments" / f"{server.name}-py{interpreter.version}-{digest}"


class _Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The content of FACTS_FILE in a complete environment."""

    server: str
    python: str
    distributions: dict[str, str]


def _cached_distributions(
    server: Server, interpreter: AppInterpreter, folder: Path
) -> tuple[dict[str, str] | None, str | None]:
    """The distributions of a cached environment, or how it is damaged; both None if it does not
    exist."""
    if not folder.exists():
        return None, None
    facts = _read_facts(folder)
    if facts is None or (facts.server, facts.python) != (server.name, interpreter.version):
        return None, f"{folder / FACTS_FILE} is damaged"
    damage = damage_of(folder, interpreter.base_executable, facts.distributions, LAYERING)
    return (facts.distributions, None) if damage is None else (None, damage)


def _build_message(server: Server, interpreter: AppInterpreter, damage: str | None) -> str:
    """The message before a build."""
    if damage is None:
        return f"installing {server.key} for Python {interpreter.version}"
    return f"{damage}; installing {server.key} for Python {interpreter.version} again"


def _read_facts(folder: Path) -> _Facts | None:
    """The facts of a complete environment; None if it is incomplete."""
    try:
        return decode_json((folder / FACTS_FILE).read_bytes(), _Facts)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None


@contextlib.contextmanager
def _exclusive_lock(lock_file: Path) -> Iterator[None]:
    """Hold an exclusive lock, which the kernel releases if the process dies."""
    try:
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        stream = lock_file.open("w")
    except OSError as error:
        raise _not_writable(lock_file.parent, error) from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _not_writable(path: Path, error: OSError) -> ProvisionError:
    return ProvisionError(
        f"cannot write to the cache {path}: {error.strerror}",
        "set WSGILOAD_CACHE_DIR to a writable directory",
        step="provision",
    )


def _build_verified(server: Server, interpreter: AppInterpreter, folder: Path) -> dict[str, str]:
    """Build the environment, verify it, and return its distributions. uv does not detect damage in
    its cache, so if the result is damaged, it is built again without the cache."""
    try:
        for without_cache in (False, True):
            _build(server, interpreter, folder, without_cache=without_cache)
            facts, damage = _cached_distributions(server, interpreter, folder)
            if facts is not None:
                return facts
    except OSError as error:
        raise _not_writable(Path(error.filename or folder), error) from error
    raise ProvisionError(f"{damage}, although it was just installed", "check the disk with fsck")


def _discard(path: Path) -> None:
    """Remove a file, a link or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _build(
    server: Server, interpreter: AppInterpreter, folder: Path, *, without_cache: bool
) -> None:
    """Build next to the final name, then rename; the log is kept in any case."""
    unfinished = folder.with_name(folder.name + ".unfinished")
    temporary = folder.with_name(folder.name + ".temporary")
    log_file = cache_folder() / "logs" / f"{folder.name}.log"
    log_file.parent.mkdir(parents=True, exist_ok=True)
    for leftover in (unfinished, temporary, folder):  # we hold the lock, so no other run uses them
        _discard(leftover)
    temporary.mkdir()
    try:
        with legible_log(log_file), log_file.open("w") as log_stream:
            for arguments in _steps(server, interpreter, unfinished, without_cache=without_cache):
                _run(arguments, server, temporary, log_stream.fileno(), log_file)
        _install_layering(unfinished)
        distributions = installed_distributions(unfinished)
        facts = _Facts(server=server.name, python=interpreter.version, distributions=distributions)
        text = msgspec.json.format(msgspec.json.encode(facts), indent=1)
        replace_file(unfinished / FACTS_FILE, text + b"\n")
        unfinished.rename(folder)
    finally:
        for leftover in (unfinished, temporary):
            _discard(leftover)


def _steps(
    server: Server, interpreter: AppInterpreter, folder: Path, *, without_cache: bool
) -> Iterator[list[str]]:
    uv = uv_program()
    # Relocatable, because the folder is renamed: scripts look for their interpreter next to
    # themselves.
    base = str(interpreter.base_executable)
    yield [uv, "venv", "--relocatable", "--no-project", "--python", base, str(folder)]
    if server.requirements:
        # Compile bytecode now, so the first measured start does not differ from later ones.
        options = [
            "--require-hashes",
            "--compile-bytecode",
            # With links, damage to a file would also damage uv's cache.
            "--link-mode",
            "copy",
            "--python",
            str(folder / "bin" / "python"),
        ]
        if without_cache or server.needs_compiler:
            # uv's cache distinguishes builds only by Python's minor version, so a server that
            # embeds libpython could get the build for another interpreter (seen with uWSGI: 3.11.7
            # in a 3.11.2).
            options.append("--no-cache")
        yield [uv, "pip", "sync", *options, str(server.lock_path)]


def _run(
    arguments: list[str], server: Server, temporary: Path, log_descriptor: int, log_file: Path
) -> None:
    # uv does not remove its lock on setuptools; in our folder, it is removed with it.
    variables = uv_variables() | {"TMPDIR": str(temporary)}
    with unguarded():
        completed = subprocess.run(
            arguments,
            cwd=log_file.parent,  # uv reads the configuration of the project it is started in
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log_descriptor,
            stderr=log_descriptor,
            check=False,
        )
    if completed.returncode != 0:
        text = log_file.read_text(errors="replace")
        raise outside_cause(server, text, cache_folder()) or build_failure(server, text, log_file)


def outside_cause(server: Server, text: str, cache: Path) -> ProvisionError | None:
    """The error if the disk or the network made a build with the output ``text`` fail. On a full
    disk, the output may be missing."""
    cause = f"{server.name} could not be installed"
    if _FULL_DISK.search(text) or shutil.disk_usage(cache).free < MIN_FREE_BYTES:
        return ProvisionError(
            f"{cause}: no space left in the cache {cache}",
            "free disk space, or set WSGILOAD_CACHE_DIR to a folder on another disk",
            step="provision",
            log_tail=text[-LOG_TAIL_CHARS:],
        )
    if _NO_NETWORK.search(text):
        address = _ADDRESS.search(text)
        what = _package_at(address[0]) if address else "a package"
        return ProvisionError(
            f"{cause}: {what} cannot be downloaded: no network, or the package index is not "
            "reachable",
            "connect to the network, or set UV_INDEX_URL to an index that is reachable",
            step="provision",
            log_tail=text[-LOG_TAIL_CHARS:],
        )
    return None


def _package_at(address: str) -> str:
    """The package of an address of the index: ``…/simple/waitress/`` or the name of a file."""
    name = address.rstrip("/").rpartition("/")[2]
    return name.partition("-")[0]


def build_failure(server: Server, text: str, log_file: Path) -> ProvisionError:
    """The error for a failed build with the output ``text``; names the missing system package if
    known."""
    tail = text[-LOG_TAIL_CHARS:]
    missing = list(
        dict.fromkeys(package for pattern, package in MISSING_PACKAGES if re.search(pattern, text))
    )
    if missing:
        cause = (
            f"{server.name} could not be built: the system package {' and '.join(missing)} "
            "is missing"
        )
    else:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        cause = f"{server.name} could not be installed: {_error_summary(lines)}"
    fixes = []
    if server.needs_compiler or missing:
        packages = list(dict.fromkeys([*missing, *(needed.package for needed in server.needs)]))
        fixes.append(f"as root run `{install_command(packages)}`")
    fixes.append(f"see the full log: {log_file}")
    return ProvisionError(cause, "; ".join(fixes), step="provision", log_tail=tail)


def _error_summary(lines: list[str]) -> str:
    """The first line that uv marks as an error; otherwise the last line."""
    marked = [
        line for line in lines if line.startswith(("error:", "×", "Caused by:", "╰─▶", "├─▶"))
    ]
    return " ".join(marked[:2] or lines[-1:] or ["no output"]).lstrip("× ")


def _install_layering(folder: Path) -> None:
    for name, text in LAYERING.items():
        (site_packages_of(folder) / name).write_text(text)
