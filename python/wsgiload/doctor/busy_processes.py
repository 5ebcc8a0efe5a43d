"""Names the processes that use the most CPU time, from two readings below a root directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from wsgiload.foreign_text import visible
from wsgiload.limits.files import read_text, under

NAMED = 3
MIN_CORES = 0.05
# Positions after the process's name, which may contain spaces and parentheses.
_USER_TICKS, _SYSTEM_TICKS = 11, 12

Ticks = Mapping[int, tuple[str, int]]


def process_ticks(root: Path) -> Ticks:
    """The name and CPU time of every other process, by pid."""
    ticks: dict[int, tuple[str, int]] = {}
    for path in under(root, "/proc").glob("[0-9]*/stat"):
        head, _, tail = (read_text(path) or "").rpartition(")")
        fields, pid = tail.split(), int(path.parent.name)
        if len(fields) > _SYSTEM_TICKS and pid != os.getpid():
            spent = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
            ticks[pid] = head.partition("(")[2], spent
    return ticks


def busiest(before: Ticks, after: Ticks, ticks_per_core: float) -> str:
    """The busiest processes with their pids and the cores that each used, such as
    ``rustc (pid 17, 0.98), node (pid 9, 0.10)``; empty if none used many."""
    used = [
        ((now - before.get(pid, ("", 0))[1]) / ticks_per_core, pid, name)
        for pid, (name, now) in after.items()
    ]
    top = sorted(used, reverse=True)[:NAMED]
    words = [f"{name} (pid {pid}, {cores:.2f})" for cores, pid, name in top if cores >= MIN_CORES]
    return visible(", ".join(words))
