"""Control groups for everything that is started for a measurement, and their removal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wsgiload.errors import WsgiloadError
from wsgiload.interrupts import uninterrupted
from wsgiload.limits import Backend, Janitor, LimitedGroup, Limits, select_backend


@dataclass(frozen=True, slots=True)
class Place:
    """Where servers run: their limits, the cgroup backend, and the janitor that cleans up after a
    crash."""

    limits: Limits
    backend: Backend
    janitor: Janitor


@contextmanager
def chosen_place(limits: Limits) -> Iterator[Place]:
    """The backend, chosen by trying, and a janitor while the block lasts. The janitor starts first,
    because the trial may leave a group behind, too."""
    with Janitor() as janitor:
        with uninterrupted():
            backend = select_backend(limits)
        yield Place(limits, backend, janitor)


@contextmanager
def fresh_group(label: str, place: Place) -> Iterator[LimitedGroup]:
    """A new group, watched by the janitor; it is removed with all its processes when the block
    ends."""
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
