"""Estimates the duration of an experiment: first from its plan, then from its finished trials.
Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.doctor.settle import MIN_WAIT_NS
from wsgiload.documents.summary import ExperimentFacts
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.experiment.procedure import max_reruns, usual_procedure
from wsgiload.units import NS_PER_S

# Time to launch, probe, drain and stop a typical server. Only the first estimate depends on it.
USUAL_OVERHEAD_S = 2.0


def trial_s(cell: Cell, experiment: Experiment) -> float:
    """The expected duration of one trial in seconds, with the minimum wait for a quiet host."""
    waited_ns = min(experiment.procedure.settle_ns, MIN_WAIT_NS)
    load_ns = experiment.load_of(cell.level).load_ns_at(cell.level)
    return (load_ns + waited_ns) / NS_PER_S + USUAL_OVERHEAD_S


def experiment_s(cells: Sequence[Cell], experiment: Experiment) -> float:
    """The expected duration of these trials in seconds, without reruns."""
    return sum(trial_s(cell, experiment) for cell in cells)


def runs_s(facts: ExperimentFacts, servers: int, runs: int) -> float:
    """The expected duration of ``runs`` runs of ``servers`` servers at all load levels, in seconds.

    Uses only facts from summary.json, so that the estimates before the first trial and after the
    last are the same.
    """
    # Several runs wait for a quiet host, even if this single run did not.
    is_quick = facts.runs == 1 and facts.budget_s is None
    settle_s = usual_procedure(runs).settle_ns / NS_PER_S if is_quick else facts.settle_s or 0.0
    around_s = min(settle_s, MIN_WAIT_NS / NS_PER_S) + USUAL_OVERHEAD_S

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
    """The duration of these trials in seconds on a host that never becomes quiet."""
    waited_ns = len(cells) * max(0, experiment.procedure.settle_ns - MIN_WAIT_NS)
    return experiment_s(cells, experiment) + waited_ns / NS_PER_S


def repeats_s(cells: Sequence[Cell], experiment: Experiment) -> float:
    """The time that reruns of disturbed trials may add, in seconds."""
    if not cells or not experiment.procedure.reruns:
        return 0.0
    settle_ns = experiment.procedure.settle_before_ns(attempt=2)
    repeat_s = experiment_s(cells, experiment) / len(cells) + settle_ns / NS_PER_S
    return max_reruns(len(cells)) * repeat_s


def remaining_s(
    done: Sequence[Cell], took_s: float, left: Sequence[Cell], experiment: Experiment
) -> float:
    """The expected duration of the remaining trials in seconds, scaled by the ratio of actual to
    planned duration so far."""
    planned_s = experiment_s(done, experiment)
    return experiment_s(left, experiment) * (took_s / planned_s if planned_s else 1.0)
