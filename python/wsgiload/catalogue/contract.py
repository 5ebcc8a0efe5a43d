"""What a file in ``servers/`` must provide, and what it may rely on.

A server file is data plus two small functions; it defines one module-level ``SERVER =
Server(...)``. It describes how to launch its server, and nothing about measuring. It imports from
this module and from the standard library only, never from another server file, and never the server
itself: the file is read by *our* interpreter, the server lives in an environment of its own.

Order of calls, for one launch of one variant:

1. ``Server.needs`` and ``Variant.needs``: what the system must have; whatever is missing is refused
   with the command that installs it.
2. ``Server.requirements``, through the lock beside the file (``lock_path``): the environment is
   made, or taken from the cache.
3. ``Server.command(variant, context)``: the argument list. Called once per launch; must not touch
   the disk (``scratch_dir`` exists, and only the started process writes there), the network or the
   clock.
4. ``Server.environ(variant, context)``: variables laid over the environment's own, after the
   inherited variables named by ``Server.ignored_variables`` were taken away.
5. The process starts with ``context.app_dir`` as its working directory and ``context.import_dir``
   first on ``PYTHONPATH``.
   Standard output and error go to a log that, in the tuned profile, stays silent while requests are
   served.
6. At the end ``stop_signal`` goes to the first process; after ``stop_timeout_s`` whatever is left
   is killed. One of ``clean_exit_codes`` counts as a clean stop.

Two profiles, distinguished only by the context. *tuned*: the equal budget of the run, one backlog,
connections kept, no access log, no recycling. *stock*: the server's defaults; the settings of the
context are then None, and ``option`` leaves them out. Both set only what the launch requires (where
to listen, no file in the home directory).
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
# How a body without a Content-Length of the app is delimited on the wire.
Framing = Literal["chunked", "close", "content-length"]

# Added to the run so that no idle connection is closed during warm-up, drain, or a slow start.
IDLE_MARGIN_S = 120
# When the length of the run is not known: longer than any practical run.
IDLE_UNKNOWN_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What a launch needs to know. Guaranteed: all paths absolute, ``backlog`` ≤
    ``net.core.somaxconn``.

    ``workers`` and ``threads`` are the budget, derived from the limits of the run. A server that
    has only one process, or only one thread, ignores what it cannot use; none may look at the
    host's core count. ``max_connections`` is the most connections the load may hold open at once.
    In the stock profile all four are None, unless the user named them. ``app`` is a dotted module
    and one attribute, found in ``import_dir``: the app's folder, or one with a generated module.
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
    shim_dir: Path | None = None  # where a generated module gives the app a name
    # Of the server that is started; None where that is not known.
    version: str | None = None

    @property
    def import_dir(self) -> Path:
        """The folder from which ``app`` is imported."""
        return self.shim_dir or self.app_dir

    @property
    def address(self) -> str:
        """``host:port``, as most servers take it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_tuned(self) -> bool:
        """Whether the server is configured for the run or keeps its defaults."""
        return self.profile == "tuned"

    @property
    def idle_timeout_s(self) -> int | None:
        """How long an idle connection is kept: longer than the run, so that none is closed in it;
        None in stock."""
        if not self.is_tuned:
            return None
        return IDLE_UNKNOWN_S if self.run_s is None else math.ceil(self.run_s) + IDLE_MARGIN_S

    def is_at_least(self, *version: int) -> bool:
        """Whether the server is of this version or a later one, as one of unknown version is."""
        if self.version is None:
            return True
        parts = (re.match(r"\d*", part) for part in self.version.split("."))
        return tuple(int(match[0] or 0) for match in parts if match is not None) >= version

    def when_tuned(self, *words: object) -> list[str]:
        """These words in the tuned profile, none in the stock one."""
        return [str(word) for word in words] if self.is_tuned else []


def option(name: str, value: object | None) -> list[str]:
    """The words ``name value``; nothing if there is no value, so the server's default
    applies."""
    return [] if value is None else [name, str(value)]


def runner(context: LaunchContext, source: Path, name: str) -> list[str]:
    """How the file ``name`` in ``runners/`` is started, for a server without a suitable
    command line."""
    # -P: the runner's folder must not come first on sys.path.
    return [str(context.python), "-P", str(source.parent / "runners" / name)]


@dataclass(frozen=True, slots=True)
class Dependency:
    """A Debian package, and the program or C header that shows that it is installed."""

    package: str
    program: str | None = None
    header: str | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a server: a worker class, a socket mode, a front.

    ``keepalive`` (two requests on one connection get responses) and ``framing`` are claims, which a
    check must confirm; ``stock_keepalive`` and ``stock_framing`` where the stock profile differs.
    ``helpers`` is how many processes there are besides the workers: masters, routers, fronts.
    ``head_limit`` says why a request head of 32 KiB is rejected in the tuned profile, and
    ``no_trusted_proxies`` why ``X-Forwarded-Proto`` from this host does not set the scheme that the
    app sees; None claims that it does.
    ``interface`` is the kind of app that it runs. ``takes_arguments`` is said where it differs from
    that of the server.
    ``notes`` justify every setting that is not the server's default, each with its source;
    ``stock_notes`` say what its defaults do to it. ``reason`` says why it cannot be run any more:
    it is listed, and refused with that reason.
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
    cold: bool = False  # measured without any warm-up
    # A known violation of PEP 3333 that its validator finds, or of ASGI.
    deviation: str | None = None
    head_limit: str | None = None
    no_trusted_proxies: str | None = None
    reason: str | None = None
    interface: Interface = "wsgi"
    takes_arguments: bool | None = None

    def keeps_connections(self, profile: Profile) -> bool:
        """The claim of that profile."""
        return (
            self.keepalive
            if profile == "tuned" or self.stock_keepalive is None
            else self.stock_keepalive
        )

    def frames(self, profile: Profile) -> Framing:
        """The claim of that profile."""
        return (
            self.framing if profile == "tuned" or self.stock_framing is None else self.stock_framing
        )


def no_variables(variant: Variant, context: LaunchContext) -> dict[str, str]:
    """The usual ``environ`` of a server: nothing to add."""
    return {}


@dataclass(frozen=True, slots=True)
class Server:
    """One server of the catalogue; ``source`` is the file itself (``Path(__file__)``).

    ``requirements`` are the direct ones, each pinned with ``==``; the lock beside the file pins the
    rest, and ``overrides`` replaces outdated requirements of an unmaintained project.
    ``distribution`` is the one whose version is called the server's version; None for the standard
    library, or where ``version_command`` prints it. ``reason`` says why a server cannot be run any
    more: it is listed, and refused with that reason. ``user_server`` is the user's command, which
    has no file, no lock and no environment of ours; None in every file.
    ``takes_arguments`` says that its command line is the server's own, so that a user can add to
    it (before the app, where that is last), and ``config_option`` names its configuration file.
    ``pinned`` is the version that the user asked for instead of that of the lock, and ``lock`` is
    one that was resolved for it; None in every file.
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
    ] = ()  # shell patterns: settings of the server hidden in the caller's shell
    needs_compiler: bool = False
    needs: tuple[Dependency, ...] = ()
    implementation: Literal["CPython", "PyPy"] = "CPython"
    python_min: tuple[int, int] = (3, 11)
    python_max: tuple[int, int] | None = None
    serves_apps: bool = True  # False: a baseline that can only respond like the bundled app hello
    stop_signal: str = "SIGTERM"
    stop_timeout_s: float = 10.0
    clean_exit_codes: tuple[int, ...] = (0, -15)  # -15: no handler, died of the SIGTERM it was sent
    legacy: bool = False
    reason: str | None = None
    user_server: UserServer | None = None
    takes_arguments: bool = False
    config_option: str | None = None
    pinned: str | None = None
    lock: Path | None = None

    @property
    def key(self) -> str:
        """Its name, with the version that the user asked for: what has an environment."""
        return self.name if self.pinned is None else f"{self.name}=={self.pinned}"

    def serves(self, variant: Variant, interface: Interface | None) -> bool:
        """Whether a variant can be asked to run apps of this interface, or of any; a command of the
        user's own runs what it names, and a baseline no app at all."""
        is_for_any = self.user_server is not None or not self.serves_apps
        return is_for_any or interface in (None, variant.interface)

    def usual_variant(self, interface: Interface) -> Variant | None:
        """What its bare name means for apps of this interface; None where it runs none of them."""
        first = [one for one in self.variants if one.name == self.default_variant]
        able = (one for one in (*first, *self.variants) if self.serves(one, interface))
        return next(able, None)

    @property
    def lock_path(self) -> Path:
        """The hashed lock of this server's environment."""
        return self.lock or self.source.parent / "locks" / f"{self.name}.txt"

    @property
    def pythons(self) -> str:
        """The interpreters it runs on, as a version specifier."""
        low = ">={}.{}".format(*self.python_min)
        text = low if self.python_max is None else low + ",<={}.{}".format(*self.python_max)
        return text if self.implementation == "CPython" else f"{self.implementation} {text}"
