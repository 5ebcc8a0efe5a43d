"""The progress of ``wsgiload capacity`` on standard error: one line per trial and, on a terminal,
the live view below them."""

from __future__ import annotations

import time

from wsgiload.capacity_search.result import JudgedTrial, ServerSearch
from wsgiload.capacity_search.run import CapacityEvents
from wsgiload.capacity_search.trials import TrialPlan
from wsgiload.cli._live import LiveView
from wsgiload.cli._live_frame import Stage
from wsgiload.procedures.capacity import Phase
from wsgiload.report.words import (
    SEARCH_PHASES,
    format_measured_per_s,
    format_per_s,
    format_span,
    plural,
    verdict_words,
)
from wsgiload.sampling.running_load import RunningLoad


class CapacityProgress(CapacityEvents):
    """Prints the events of a search and updates the live view."""

    def __init__(self, view: LiveView | None = None) -> None:
        self._view = view or LiveView()
        self.is_watching = self._view.is_watching
        self._print_line = self._view.print_line
        self._expected_s = 0.0
        self._since_ns = 0

    def message(self, text: str) -> None:
        self._print_line(text)

    def planned(self, servers: int, seconds: float) -> None:
        self._expected_s, self._since_ns = seconds, time.monotonic_ns()
        self._print_line(
            f"capacity search on {plural(servers, 'server')}, at most {format_span(seconds)}"
        )

    def trial_started(self, state: ServerSearch, plan: TrialPlan, phase: Phase | None) -> None:
        step = SEARCH_PHASES[phase or "initial"]
        where = _where(plan.server, plan.level.rate_per_s, plan.level.connections)
        what = f"{where}, trial {len(state.trials) + 1}, {step}"
        upcoming = "depends on this trial"
        stage = Stage(what, upcoming, self._expected_s, self._since_ns, _standing(state))
        self._view.show(stage)

    def trial_ended(self, state: ServerSearch, trial: JudgedTrial) -> None:
        where = _where(state.server, trial.cell.rate, trial.cell.connections)
        step = SEARCH_PHASES[trial.phase or "initial"]
        outcome = _outcome_words(trial)
        self._print_line(f"{where}, trial {len(state.trials)}, {step}: {outcome}")

    def load_started(self, load: RunningLoad) -> None:
        self._view.load_started(load)

    def load_ended(self) -> None:
        self._view.load_ended()


def _where(server: str, rate_per_s: float | None, connections: int | None) -> str:
    """``waitress at 320/s``."""
    if rate_per_s is not None:
        return f"{server} at {format_per_s(rate_per_s)}"
    return f"{server} at {plural(connections or 0, 'connection')}"


def _standing(state: ServerSearch) -> str | None:
    """``met up to 320/s, missed at 400/s and above``; None before any trial is judged."""
    judged = [
        (trial.cell.rate, trial.judgement.met)
        for trial in state.trials
        if not trial.is_discarded and trial.judgement is not None
    ]
    met = [rate for rate, is_met in judged if is_met is True and rate is not None]
    missed = [rate for rate, is_met in judged if is_met is False and rate is not None]
    words = [f"met up to {format_per_s(max(met))}"] if met else []
    words += [f"missed at {format_per_s(min(missed))} and above"] if missed else []
    return ", ".join(words) or None


def _outcome_words(trial: JudgedTrial) -> str:
    """The outcome of a trial in words."""
    cell, judgement = trial.cell, trial.judgement
    verdict = "" if cell.verdict is None else verdict_words(cell.verdict)
    if cell.failure is not None:
        return f"failed: {cell.failure.message}"
    if judgement is None and trial.is_discarded:
        return f"{verdict}; repeating"
    if judgement is None:
        goodput = None if cell.rate_result is None else cell.rate_result.goodput_per_s
        return f"goodput {format_measured_per_s(goodput)}; the search starts below it"
    if trial.is_inconclusive:
        return f"inconclusive ({judgement.why}); repeating"
    return f"{judgement.why if judgement.met is None else 'met' if judgement.met else 'missed'}, {verdict}"
