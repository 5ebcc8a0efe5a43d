"""How many connections the limit on file descriptors (``ulimit -n``) allows."""

from __future__ import annotations

import resource

from wsgiload.errors import UsageError
from wsgiload.loads.options import DEFAULT_MAX_CONNECTIONS, Level, LoadSettings

# As in the generator (net/connection_cap.rs): descriptors for anything other than connections.
SPARE_DESCRIPTORS = 64


def default_max_connections() -> int:
    """The default maximum of an open loop: 1,000, or as many as this process may open."""
    possible = _limit() - SPARE_DESCRIPTORS
    return min(DEFAULT_MAX_CONNECTIONS, possible) if possible > 0 else DEFAULT_MAX_CONNECTIONS


def lowered_default(load: LoadSettings) -> str | None:
    """A note if the limit lowered the default maximum."""
    if load.max_connections == DEFAULT_MAX_CONNECTIONS:
        return None
    if load.max_connections != default_max_connections():
        return None
    return (
        f"at most {load.max_connections:,} connections, because this process may open only "
        f"{_limit():,} files; `ulimit -n {DEFAULT_MAX_CONNECTIONS + SPARE_DESCRIPTORS}` allows the "
        f"usual {DEFAULT_MAX_CONNECTIONS:,}"
    )


def require_descriptors(load: LoadSettings, level: Level) -> None:
    """Raise UsageError if the connections of this load need more descriptors than this process may
    open."""
    is_open = level.rate_per_s is not None
    connections = (load.max_connections if is_open else level.connections) or 1
    needed, limit = connections + SPARE_DESCRIPTORS, _limit()
    if needed <= limit:
        return
    flag, possible = "--max-connections" if is_open else "--connections", limit - SPARE_DESCRIPTORS
    raise UsageError(
        f"{connections:,} connections need {needed:,} file descriptors, but this "
        f" process may open only {limit:,}",
        f"ulimit -n {needed}" + (f", or {flag} {possible}" if possible > 0 else ""),
    )


def _limit() -> int:
    """The descriptors that this process may get."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**63 if hard == resource.RLIM_INFINITY else hard
