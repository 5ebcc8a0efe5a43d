"""The options of ``wsgiload load`` that say whose resources to sample: a server that somebody else
started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from wsgiload.cli._options import together
from wsgiload.errors import UsageError
from wsgiload.limits.attach import Attached, attach_cgroup, attach_pid
from wsgiload.sampling.observe import Observation, observing

attach_options = together(
    click.option(
        "--attach-cgroup",
        metavar="PATH",
        help="Sample this cgroup, for example that of a container.",
    ),
    click.option(
        "--attach-pid", type=click.IntRange(min=1), help="Sample the cgroup of this process."
    ),
)


@contextmanager
def attached(options: dict[str, Any], url: str) -> Iterator[Observation | None]:
    """What the options ask to sample, None where they ask for nothing."""
    found = _chosen(options["attach_cgroup"], options["attach_pid"])
    if found is None:
        yield None
        return
    with observing(found, url) as observation:
        yield observation


def _chosen(path: str | None, pid: int | None) -> Attached | None:
    if path is not None and pid is not None:
        raise UsageError("--attach-cgroup and --attach-pid were both given", "give one of them")
    if path is not None:
        return attach_cgroup(path)
    return attach_pid(pid) if pid is not None else None
