"""The options of ``wsgiload load`` that select a running server whose resource use is sampled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from wsgiload.cli._help import WholeNumber, option, together
from wsgiload.errors import UsageError
from wsgiload.limits.attach import Attached, attach_cgroup, attach_pid
from wsgiload.sampling.observe import Observation, observing

attach_options = together(
    option(
        "Server",
        "--attach-cgroup",
        metavar="PATH",
        help="Sample the resource use of this cgroup, such as a container's.",
    ),
    option(
        "Server",
        "--attach-pid",
        type=WholeNumber(min=1),
        help="Sample the resource use of this process's cgroup.",
    ),
)


@contextmanager
def attached(flags: Mapping[str, Any], url: str) -> Iterator[Observation | None]:
    """Observe the server that the options select; None if they select none."""
    target = _target(flags["attach_cgroup"], flags["attach_pid"])
    if target is None:
        yield None
        return
    with observing(target, url) as observation:
        yield observation


def _target(path: str | None, pid: int | None) -> Attached | None:
    if path is not None and pid is not None:
        raise UsageError("--attach-cgroup and --attach-pid are mutually exclusive")
    if path is not None:
        return attach_cgroup(path)
    return attach_pid(pid) if pid is not None else None
