"""How many processes and threads a server gets: by the CPU limit in the tuned profile, by itself in
the stock one.

Pure. No budget depends on the host's core count. Equal budget, not equal flags: a server of one
process gets, as threads, what others get as processes times threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from wsgiload.catalogue.contract import Profile
from wsgiload.catalogue.names import ServerVariant

THREADS_PER_CPU = 4
# For a server that decides its size itself.
USUAL_USERS = 16
# Users of each event loop: an app that waits for 100 ms then still shows 2,560 requests per second.
EVENT_LOOP_USERS = 256


@dataclass(frozen=True, slots=True)
class Budget:
    """What the launch sets; None leaves it to the server."""

    workers: int | None
    threads: int | None


def budget_of(variant: ServerVariant, cpus: float, profile: Profile) -> Budget:
    """The size of one variant: what the user named goes before everything, its own profile before
    the experiment's."""
    if variant.server.user_server is None and (variant.profile or profile) == "stock":
        return Budget(variant.workers, variant.threads)
    processes = max(1, int(cpus))
    workers = processes if variant.variant.uses_workers else 1
    threads = THREADS_PER_CPU * (processes // workers) if variant.variant.uses_threads else 1
    if variant.server.user_server is not None:
        # Without a placeholder its size is in its command or its files, and not known here.
        return Budget(
            (variant.workers or workers) if variant.variant.uses_workers else None,
            (variant.threads or threads) if variant.variant.uses_threads else None,
        )
    return Budget(variant.workers or workers, variant.threads or threads)


def busy_users(variant: ServerVariant, cpus: float, profile: Profile) -> int:
    """Users of a closed loop, twice as many as are served at once, so that the server never waits
    for the client."""
    budget = budget_of(variant, cpus, profile)
    if variant.variant.interface == "asgi":  # an event loop serves any number at once
        return EVENT_LOOP_USERS * (budget.workers or 1)
    if budget.workers is None or budget.threads is None:
        return USUAL_USERS
    return 2 * budget.workers * budget.threads


def most_processes(variant: ServerVariant, budget: Budget) -> int:
    """As many as the server may have: its workers, and the helpers that its file declares."""
    return (budget.workers or 1) + variant.variant.helpers
