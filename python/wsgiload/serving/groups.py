"""Creates and removes the control groups of everything that a measurement starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from wsgiload.errors import WsgiloadError
from wsgiload.foreign_text import visible
from wsgiload.interrupts import uninterrupted
from wsgiload.limits import Backend, Janitor, LimitedGroup, Limits, select_backend
from wsgiload.limits.select import ignore


@dataclass(frozen=True, slots=True)
class Place:
    """Where servers run: their limits, the cgroup backend, and the janitor that cleans up after a
    crash."""

    limits: Limits
    backend: Backend
    janitor: Janitor


@contextmanager
def chosen_place(limits: Limits, log: Callable[[str], None] = ignore) -> Iterator[Place]:
    """A place with a tested backend, and a janitor while the block lasts. The janitor starts first,
    because testing may leave a group behind, too. ``log`` gets the limits that cannot be
    enforced."""
    with Janitor() as janitor:
        with uninterrupted():
            backend = select_backend(limits, log=log)
        yield Place(limits, backend, janitor)


@contextmanager
def fresh_group(label: str, place: Place) -> Iterator[LimitedGroup]:
    """A new group that the janitor watches; its processes are killed and it is removed when the
    block ends."""
    with uninterrupted():
        group = place.backend.create(place.limits, label)
        try:
            place.janitor.watch(group)
        except WsgiloadError:
            group.close()
            raise
    try:
        yield group
    finally:
        with uninterrupted():
            group.close()
            place.janitor.release(group)


def list_processes(names: Mapping[int, str]) -> str:
    """``17 (python), 18 (sleep)``."""
    return visible(", ".join(f"{pid} ({name})" for pid, name in sorted(names.items())))
