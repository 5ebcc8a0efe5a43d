"""A control group for whatever is started around a measurement, and its removal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wsgiload.errors import WsgiloadError
from wsgiload.interrupts import uninterrupted
from wsgiload.limits import Backend, Janitor, LimitedGroup, Limits, select_backend


@dataclass(frozen=True, slots=True)
class Place:
    """Where servers are run: how they are limited, and who cleans up after a crash."""

    limits: Limits
    backend: Backend
    janitor: Janitor


@contextmanager
def chosen_place(limits: Limits) -> Iterator[Place]:
    """How servers are limited here, chosen by trying, and a janitor for as long as the block lasts:
    started first, for the group that is tried may also be left."""
    with Janitor() as janitor:
        with uninterrupted():
            backend = select_backend(limits)
        yield Place(limits, backend, janitor)


@contextmanager
def fresh_group(label: str, place: Place) -> Iterator[LimitedGroup]:
    """A group of its own, watched by the janitor and gone with all that is inside when the block
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
