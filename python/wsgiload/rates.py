"""Which rates to offer where nobody named any: shares of what the quickest setting gets through in a closed loop.

A closed loop without think time shows the most that is served, and nothing of how late answers are at any rate, so its
figure is only where an open loop begins to look. Its trials are kept in a run directory of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wsgiload.capacity_trials import TrialPlan, server_trials
from wsgiload.errors import ServerError
from wsgiload.host import host_facts
from wsgiload.plan import Experiment, Level, plain
from wsgiload.slo_search import rounded
from wsgiload.units import NS_PER_S

Json = dict[str, Any]

# From a load that most settings hold to one at which few still answer in time.
SHARES = (0.3, 0.5, 0.7, 0.85, 0.95)
LOOK_NS = 5 * NS_PER_S


def find_levels(experiment: Experiment, log: Callable[[str], None]) -> tuple[Level, ...]:
    """Levels of an open loop, lowest first. Raises what failed where no setting answered anything."""
    best_per_s, failure = 0.0, None
    with server_trials(experiment, log) as (trials, users):
        for server, count in users.items():
            cell = trials.carry_out(TrialPlan(server, Level(connections=count), 1, LOOK_NS))
            if cell["failure"] is not None:
                failure = cell["failure"]["message"]
            elif cell["rate_result"] is not None:
                best_per_s = max(best_per_s, cell["rate_result"]["goodput_per_s"])
        trials.write_summary("complete")
        looked = [{"server": cell["server"], "rate_result": cell["rate_result"]} for cell in trials.cells]
        trials.directory.write_run(
            {"status": "complete", "plan": plain(experiment), "host": host_facts(), "closed_loops": looked}
        )
    if not best_per_s:
        raise ServerError(failure or "no setting gave a right answer", "see what they do at a low --rates")
    levels = tuple(Level(rate_per_s=rounded(best_per_s * share, digits=2)) for share in SHARES)
    listed = ", ".join(f"{level.rate_per_s:g}" for level in levels)
    log(f"rates {listed} per second: shares of the {best_per_s:.0f}/s that the quickest setting gets through")
    return levels
