"""How long an experiment will take: before it starts from its plan, while it runs from what its
trials took. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.doctor.settle import LEAST_WAIT_NS
from wsgiload.documents.experiment_facts import ExperimentFacts
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.experiment.procedure import most_repeats, usual_procedure
from wsgiload.units import NS_PER_S

# Launch, probes, draining and stopping of a usual server; only the first guess hangs on it.
USUAL_OVERHEAD_S = 2.0
# What the page takes after the last trial, on a busy host.
REPORT_S = 15.0


def trial_s(cell: Cell, experiment: Experiment) -> float:
    """What one trial should take, in seconds; waiting for a quiet host counts with its least."""
    waited_ns = min(experiment.procedure_of(cell.run).settle_ns, LEAST_WAIT_NS)
    load_ns = experiment.load_of(cell.run).load_ns_at(cell.level)
    return (load_ns + waited_ns) / NS_PER_S + USUAL_OVERHEAD_S


def experiment_s(cells: Sequence[Cell], experiment: Experiment) -> float:
    """What all of these trials should take, reruns apart, in seconds."""
    return sum(trial_s(cell, experiment) for cell in cells)


def runs_s(facts: ExperimentFacts, servers: int, runs: int) -> float:
    """What so many runs of so many servers at all loads should take, in seconds. From what
    summary.json says of the plan, so that the time named before the first trial and the one named
    after the last are the same."""
    # The runs of an experiment wait for a quiet host, even where this single one did not.
    is_quick = facts.runs == 1 and facts.budget_s is None
    settle_s = usual_procedure(runs).settle_ns / NS_PER_S if is_quick else facts.settle_s or 0.0
    around_s = min(settle_s, LEAST_WAIT_NS / NS_PER_S) + USUAL_OVERHEAD_S

    loads_s = [_load_s(facts, rate) for rate in facts.rates or ()]
    if facts.rates is None and isinstance(facts.connections, tuple):
        loads_s = [_load_s(facts, None)] * len(facts.connections)
    return runs * servers * sum(load_s + around_s for load_s in loads_s)


def _load_s(facts: ExperimentFacts, rate_per_s: float | None) -> float:
    warmup_s = facts.warmup_s
    if facts.warmup_requests is not None and rate_per_s is not None:
        warmup_s = max(warmup_s, facts.warmup_requests / rate_per_s)
    return warmup_s + facts.duration_s + (facts.cooldown_s or 0.0)


def longest_s(cells: Sequence[Cell], experiment: Experiment) -> float:
    """The same on a host that never becomes quiet, in seconds."""
    settles_ns = [experiment.procedure_of(cell.run).settle_ns for cell in cells]
    waited_ns = sum(max(0, settle_ns - LEAST_WAIT_NS) for settle_ns in settles_ns)
    return experiment_s(cells, experiment) + waited_ns / NS_PER_S


def repeats_s(cells: Sequence[Cell], experiment: Experiment) -> float:
    """What may be added for trials that the host disturbs, in seconds."""
    if not cells or not experiment.procedure.reruns:
        return 0.0
    settle_ns = experiment.procedure.settle_before_ns(attempt=2)
    repeat_s = experiment_s(cells, experiment) / len(cells) + settle_ns / NS_PER_S
    return most_repeats(len(cells)) * repeat_s


def remaining_s(
    done: Sequence[Cell], took_s: float, left: Sequence[Cell], experiment: Experiment
) -> float:
    """What is left should take, if it takes as much longer than planned as what is done did."""
    planned_s = experiment_s(done, experiment)
    return experiment_s(left, experiment) * (took_s / planned_s if planned_s else 1.0)
