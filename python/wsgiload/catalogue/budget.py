"""How many processes and threads a server gets: in the tuned profile according to the CPU limit, in
the stock profile its defaults.

Pure. No budget depends on the host's core count. Servers get equal budgets, not equal flags: a
server with a single process gets as many threads as others get processes times threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from wsgiload.catalogue.contract import Profile
from wsgiload.catalogue.names import ServerVariant

THREADS_PER_CPU = 4
# For a server with unknown numbers of workers and threads.
DEFAULT_USERS = 16
# Per event loop; enough for 2,560 requests per second to an app that waits for 100 ms.
EVENT_LOOP_USERS = 256


@dataclass(frozen=True, slots=True)
class Budget:
    """The numbers of workers and threads set at launch; None: the server's default."""

    workers: int | None
    threads: int | None


def budget_of(variant: ServerVariant, cpus: float, profile: Profile) -> Budget:
    """The budget of one variant. The user's values override those of the profile, and the variant's
    profile overrides the experiment's."""
    if variant.server.user_server is None and (variant.profile or profile) == "stock":
        return Budget(variant.workers, variant.threads)
    processes = max(1, int(cpus))
    workers = processes if variant.variant.uses_workers else 1
    threads = THREADS_PER_CPU * (processes // workers) if variant.variant.uses_threads else 1
    if variant.server.user_server is not None:
        # Without a placeholder, the size is set in the user's command or files and unknown here.
        return Budget(
            (variant.workers or workers) if variant.variant.uses_workers else None,
            (variant.threads or threads) if variant.variant.uses_threads else None,
        )
    return Budget(variant.workers or workers, variant.threads or threads)


def busy_users(variant: ServerVariant, cpus: float, profile: Profile) -> int:
    """The number of closed-loop users: twice the server's concurrency, so the server never waits
    for the client."""
    budget = budget_of(variant, cpus, profile)
    if variant.variant.interface == "asgi":  # the concurrency of an event loop is unlimited
        return EVENT_LOOP_USERS * (budget.workers or 1)
    if budget.workers is None or budget.threads is None:
        return DEFAULT_USERS
    return 2 * budget.workers * budget.threads


def max_processes(variant: ServerVariant, budget: Budget) -> int:
    """The maximum number of processes: the workers and the declared helpers."""
    return (budget.workers or 1) + variant.variant.helpers
