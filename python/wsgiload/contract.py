"""What a file in ``servers/`` must provide, and what it may rely on.

A server file is data plus two small functions; it defines one module-level ``SERVER = Server(...)``.
It knows how its server is launched and nothing about measuring. It imports from this module and from
the standard library only, never from another server file, and never the server itself: the file is read
by *our* interpreter, the server lives in an environment of its own.

Order of calls, for one launch of one variant:

1. ``Server.requirements``, through the lock beside the file (``lock_path``): the environment is made, or
   taken from the cache.
2. ``Server.command(variant, context)``: the argument list. Called once per launch; must not touch the
   disk (``scratch_dir`` exists, and only the started process writes there), the network or the clock.
3. ``Server.environ(variant, context)``: variables laid over the environment's own, after the inherited
   variables named by ``Server.ignored_variables`` were taken away.
4. The process starts with ``context.app_dir`` as its working directory and first on ``PYTHONPATH``.
   Standard output and error go to a log that should stay silent while requests are served.
5. At the end ``stop_signal`` goes to the first process; after ``stop_timeout_s`` whatever is left is
   killed. One of ``clean_exit_codes`` counts as a clean stop.

Optional, with defaults: ``environ``, ``ignored_variables``, ``stop_*``, ``clean_exit_codes``,
``system_packages``, ``legacy``, ``reason``, ``python_max``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Added to the run so that no idle connection is closed during warm-up, drain, or a slow start.
IDLE_MARGIN_S = 120
# When the length of the run is not known: longer than any run one would sit through.
IDLE_UNKNOWN_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What a launch needs to know. Guaranteed: all paths absolute, ``backlog`` ≤ ``net.core.somaxconn``.

    ``workers`` and ``threads`` are the budget, derived from the limits of the run. A server that has only
    one process, or only one thread, ignores what it cannot use; none may look at the host's core count.
    ``max_connections`` is the most connections the load may hold open at once.
    """

    python: Path
    bin: Path
    host: str
    port: int
    app: str
    app_dir: Path
    scratch_dir: Path
    workers: int = 1
    threads: int = 1
    backlog: int = 1024
    max_connections: int = 10_000
    run_s: float | None = None

    @property
    def address(self) -> str:
        """``host:port``, as most servers take it."""
        return f"{self.host}:{self.port}"

    @property
    def idle_timeout_s(self) -> int:
        """How long an idle connection is kept: longer than the run, so that none is closed in it."""
        return IDLE_UNKNOWN_S if self.run_s is None else math.ceil(self.run_s) + IDLE_MARGIN_S


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a server: a worker class, a socket mode, a front.

    ``keepalive`` is a claim (two requests on one connection are answered), which a probe must confirm.
    ``notes`` justify every setting that is not the server's default, each with its source.
    """

    name: str
    summary: str
    keepalive: bool
    uses_workers: bool
    uses_threads: bool
    notes: tuple[str, ...] = ()


def no_variables(variant: Variant, context: LaunchContext) -> dict[str, str]:
    """The usual ``environ`` of a server: nothing to add."""
    return {}


@dataclass(frozen=True, slots=True)
class Server:
    """One server of the catalogue; ``source`` is the file itself (``Path(__file__)``).

    ``requirements`` are the direct ones, each pinned with ``==``; the lock beside the file pins the rest.
    ``distribution`` is the one whose version is called the server's version; None for the standard library.
    ``reason`` says why a server cannot be run any more: it is listed, and refused with that reason.
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
    ignored_variables: tuple[str, ...] = ()  # shell patterns: settings of the server hidden in the caller's shell
    needs_compiler: bool = False
    system_packages: tuple[str, ...] = ()  # Debian names
    python_min: tuple[int, int] = (3, 11)
    python_max: tuple[int, int] | None = None
    stop_signal: str = "SIGTERM"
    stop_timeout_s: float = 10.0
    clean_exit_codes: tuple[int, ...] = (0, -15)  # -15: no handler, died of the SIGTERM it was sent
    legacy: bool = False
    reason: str | None = None

    @property
    def lock_path(self) -> Path:
        """The hashed lock of this server's environment."""
        return self.source.parent / "locks" / f"{self.name}.txt"

    @property
    def pythons(self) -> str:
        """The interpreters it runs on, as a version specifier."""
        low = ">={}.{}".format(*self.python_min)
        return low if self.python_max is None else low + ",<={}.{}".format(*self.python_max)
