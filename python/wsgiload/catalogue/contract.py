"""The contract of a server file in ``servers/``.

A server file is data plus two small functions; it defines one module-level ``SERVER =
Server(...)``. It describes only how to launch its server. It imports only this module and the
standard library, never another server file, and never the server itself: wsgiload's interpreter
reads the file, but the server is installed in a separate environment.

Order of calls for one launch of one variant:

1. ``Server.needs`` and ``Variant.needs``: the required system packages. If one is missing, the
   server is rejected with an error that names the command that installs it.
2. ``Server.requirements``, through the lock next to the file (``lock_path``): the environment is
   built, or taken from the cache.
3. ``Server.command(variant, context)``: the argument list. Called once per launch; must not use the
   disk (``scratch_dir`` exists, and only the started process writes there), the network or the
   clock.
4. ``Server.environ(variant, context)``: variables that override the environment's, after removing
   the inherited variables in ``Server.ignored_variables``.
5. The process starts with ``context.app_dir`` as its working directory and ``context.import_dir``
   first on ``PYTHONPATH``. Standard output and error go to a log, to which the server must not
   write while it serves requests in the tuned profile.
6. At the end, ``stop_signal`` goes to the first process; after ``stop_timeout_s``, all remaining
   processes are killed. One of ``clean_exit_codes`` counts as a clean stop.

Two profiles, distinguished only by the context. *tuned*: the same numbers of workers and threads,
the same backlog, keep-alive, no access log, no worker recycling. *stock*: the server's defaults;
the settings of the context are None, and ``option`` omits them. Apart from that, both set only what
the launch requires (where to listen, no file in the home directory).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from wsgiload.catalogue.user_server import UserServer

Profile = Literal["tuned", "stock"]
# How a server calls the app.
Interface = Literal["wsgi", "asgi"]
# How a body is delimited on the wire if the app sets no Content-Length.
Framing = Literal["chunked", "close", "content-length"]

# Added to the run's duration, so no idle connection is closed during a slow start, the warm-up or
# the drain.
IDLE_MARGIN_S = 120
# If the run's duration is unknown: longer than any practical run.
IDLE_UNKNOWN_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """The parameters of a launch. Guaranteed: all paths are absolute, and ``backlog`` ≤
    ``net.core.somaxconn``.

    ``workers`` and ``threads`` are derived from the limits of the run. A server with only one
    process, or only one thread, ignores what it cannot use; no server may use the host's core
    count. ``max_connections`` is the largest number of connections that the load may open at once.
    In the stock profile, all four are None unless the user set them. ``app`` is a dotted module and
    one attribute, importable from ``import_dir``: the app's folder, or one with a generated module.
    """

    python: Path
    bin: Path
    host: str
    port: int
    app: str
    app_dir: Path
    scratch_dir: Path
    workers: int | None = 1
    threads: int | None = 1
    backlog: int | None = 1024
    max_connections: int | None = 10_000
    run_s: float | None = None
    profile: Profile = "tuned"
    shim_dir: Path | None = None  # the folder of a generated module that imports the app
    # The version of the server; None: unknown.
    version: str | None = None

    @property
    def import_dir(self) -> Path:
        """The folder from which ``app`` is imported."""
        return self.shim_dir or self.app_dir

    @property
    def address(self) -> str:
        """``host:port``, the form that most servers accept."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_tuned(self) -> bool:
        """Whether the profile is ``tuned``."""
        return self.profile == "tuned"

    @property
    def idle_timeout_s(self) -> int | None:
        """The keep-alive timeout, longer than the run so no idle connection is closed during it;
        None in the stock profile."""
        if not self.is_tuned:
            return None
        return IDLE_UNKNOWN_S if self.run_s is None else math.ceil(self.run_s) + IDLE_MARGIN_S

    def is_at_least(self, *version: int) -> bool:
        """Whether the server has this version or a later one; True if unknown."""
        if self.version is None:
            return True
        parts = (re.match(r"\d*", part) for part in self.version.split("."))
        return tuple(int(match[0] or 0) for match in parts if match is not None) >= version

    def when_tuned(self, *words: object) -> list[str]:
        """These arguments in the tuned profile; none in the stock profile."""
        return [str(word) for word in words] if self.is_tuned else []


def option(name: str, value: object | None) -> list[str]:
    """The arguments ``name value``; none without a value, so the server's default applies."""
    return [] if value is None else [name, str(value)]


def runner(context: LaunchContext, source: Path, name: str) -> list[str]:
    """The command that starts the file ``name`` in ``runners/``, for a server without a suitable
    command line."""
    # -P: the runner's folder must not come first on sys.path.
    return [str(context.python), "-P", str(source.parent / "runners" / name)]


@dataclass(frozen=True, slots=True)
class Dependency:
    """A Debian package; it counts as installed if its ``program`` and C ``header`` exist."""

    package: str
    program: str | None = None
    header: str | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a server: a worker class, a socket mode, a front end.

    ``keepalive`` (two requests on one connection get responses) and ``framing`` are declarations,
    which a check must confirm; ``stock_keepalive`` and ``stock_framing`` are those of the stock
    profile, if they differ. ``helpers`` is the number of processes in addition to the workers:
    masters, routers, front ends. ``head_limit`` explains why a request head of 32 KiB is rejected
    in the tuned profile, ``delays_writes`` why Nagle's algorithm cannot be turned off, and
    ``no_trusted_proxies`` why ``X-Forwarded-Proto`` from this host does not set the scheme that the
    app sees; None declares the opposite. ``interface`` is the kind of
    app that it runs. ``takes_arguments`` is only set if it differs from the server's.

    ``notes`` justify every setting that is not the server's default, each with its source;
    ``stock_notes`` describe the effects of the defaults. ``reason`` explains why it can no longer
    be run: it is listed, but rejected with that reason.
    """

    name: str
    summary: str
    keepalive: bool
    uses_workers: bool
    uses_threads: bool
    notes: tuple[str, ...] = ()
    stock_keepalive: bool | None = None
    stock_notes: tuple[str, ...] = ()
    framing: Framing = "chunked"
    stock_framing: Framing | None = None
    unix_socket: bool = False
    helpers: int = 0
    needs: tuple[Dependency, ...] = ()
    extra: bool = False  # measured only on request: by name, or by ``all``
    # The warm-up of its trials: 0 for none, otherwise at least this. None: as requested.
    warmup_s: float | None = None
    # A known violation of the ASGI specification or PEP 3333, as the check reports it.
    deviation: str | None = None
    head_limit: str | None = None
    delays_writes: str | None = None
    no_trusted_proxies: str | None = None
    reason: str | None = None
    interface: Interface = "wsgi"
    takes_arguments: bool | None = None

    def keeps_connections(self, profile: Profile) -> bool:
        """Whether connections are kept alive in that profile."""
        return (
            self.keepalive
            if profile == "tuned" or self.stock_keepalive is None
            else self.stock_keepalive
        )

    def frames(self, profile: Profile) -> Framing:
        """The framing in that profile."""
        return (
            self.framing if profile == "tuned" or self.stock_framing is None else self.stock_framing
        )


def no_variables(variant: Variant, context: LaunchContext) -> dict[str, str]:
    """The default ``environ`` of a server: no variables."""
    return {}


@dataclass(frozen=True, slots=True)
class Server:
    """One catalogue server; ``source`` is the file itself (``Path(__file__)``).

    ``requirements`` are the direct ones, each pinned with ``==``; the lock next to the file pins
    the rest, and ``overrides`` replaces outdated requirements of an unmaintained project. The
    version of ``distribution`` is the server's version; None for the standard library, or if
    ``version_command`` prints the version. ``reason`` explains why a server can no longer be run:
    it is listed, but rejected with that reason. ``user_server`` is set for a user's command, which
    has no file, lock or locked environment; None in every server file. ``takes_arguments`` means
    that the command line is the server's own, so a user can add arguments to it (before the app if
    that is last); ``config_option`` names the option for its configuration file. ``pinned`` is the
    version that the user requested instead of the locked one, and ``lock`` is the lock resolved for
    it; both are None in every server file.
    """

    name: str
    summary: str
    homepage: str
    source: Path
    requirements: tuple[str, ...]
    distribution: str | None
    variants: tuple[Variant, ...]
    default_variant: str
    command: Callable[[Variant, LaunchContext], list[str]]
    environ: Callable[[Variant, LaunchContext], dict[str, str]] = no_variables
    overrides: tuple[str, ...] = ()
    version_command: tuple[str, ...] = ()
    ignored_variables: tuple[
        str, ...
    ] = ()  # shell patterns of inherited variables that would configure the server
    needs_compiler: bool = False
    needs: tuple[Dependency, ...] = ()
    implementation: Literal["CPython", "PyPy"] = "CPython"
    python_min: tuple[int, int] = (3, 11)
    python_max: tuple[int, int] | None = None
    serves_apps: bool = True  # False: a baseline that can only respond like the bundled app hello
    stop_signal: str = "SIGTERM"
    stop_timeout_s: float = 10.0
    clean_exit_codes: tuple[int, ...] = (0, -15)  # -15: killed by our SIGTERM, without a handler
    legacy: bool = False
    reason: str | None = None
    user_server: UserServer | None = None
    takes_arguments: bool = False
    config_option: str | None = None
    pinned: str | None = None
    lock: Path | None = None

    @property
    def key(self) -> str:
        """The name, with the version if the user requested one; the key of its environment."""
        return self.name if self.pinned is None else f"{self.name}=={self.pinned}"

    def serves(self, variant: Variant, interface: Interface | None) -> bool:
        """Whether a variant can be measured with this interface (None: any). True for a user's
        command, whose app is unknown, and for a baseline, which runs no app."""
        is_for_any = self.user_server is not None or not self.serves_apps
        return is_for_any or interface in (None, variant.interface)

    def usual_variant(self, interface: Interface) -> Variant | None:
        """The variant that the server's bare name selects for this interface; None if there is
        none."""
        first = [variant for variant in self.variants if variant.name == self.default_variant]
        matching = (
            variant for variant in (*first, *self.variants) if self.serves(variant, interface)
        )
        return next(matching, None)

    @property
    def lock_path(self) -> Path:
        """The lock of this server's environment, with hashes."""
        return self.lock or self.source.parent / "locks" / f"{self.name}.txt"

    @property
    def pythons(self) -> str:
        """The supported interpreters, as a version specifier."""
        low = ">={}.{}".format(*self.python_min)
        text = low if self.python_max is None else low + ",<={}.{}".format(*self.python_max)
        return text if self.implementation == "CPython" else f"{self.implementation} {text}"
