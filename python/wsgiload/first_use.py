"""Locks for what happens once per process, so that any thread, task or forked child may be first.

A fork waits for these locks: otherwise, the child would wait forever for an import that only
another thread of its parent could complete. Both are made when ``wsgiload`` is imported, because
hooks that are added during a fork are called after it but not before.
"""

import os
from _thread import RLock  # threading is slow to import

IMPORTING = RLock()
"""Held while a public name is imported."""

BUILDING = RLock()
"""Held while the description of a type is built; see ``documents.base``."""


def _acquire() -> None:
    IMPORTING.acquire()  # first, because a module may build a type while it is imported
    BUILDING.acquire()


def _release() -> None:
    BUILDING.release()
    IMPORTING.release()


os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)
