"""Runs a capacity search: a closed loop, then the trials that ``procedures.capacity`` chooses, with
every trial stored in a run directory.

The searches of several servers are interleaved, in a new random order in each round, so that drift
affects all of them equally. ``objective`` judges and counts single trials.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from wsgiload.analysis.attempts import disturbance_of
from wsgiload.analysis.objective import Objective
from wsgiload.analysis.recommend import recommend_capacity
from wsgiload.analysis.recommendations import recommendations
from wsgiload.capacity_search.result import (
    JudgedTrial,
    ServerSearch,
    blame_of,
    exit_code,
    server_result,
)
from wsgiload.capacity_search.trials import TrialPlan, Trials, UrlTrials, server_trials
from wsgiload.catalogue.budget import DEFAULT_USERS
from wsgiload.doctor.settle import settle, watch_host
from wsgiload.documents.answer import Recommendation
from wsgiload.documents.capacity import CapacityResult as CapacityDocument
from wsgiload.documents.capacity import ServerCapacity
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import Experiment
from wsgiload.experiment.redaction import public_url
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import CpuPlan, available_cpus, pinned
from wsgiload.host.facts import host_facts
from wsgiload.host.memory_guard import lift_guard
from wsgiload.loads.options import MAX_RATE_PER_S, Level
from wsgiload.procedures.capacity import NextTrial, Outcome, Phase, Search, capacity
from wsgiload.procedures.capacity import Plan as SearchPlan
from wsgiload.report import write_html
from wsgiload.report.words import plural
from wsgiload.results.run_lock import exclusive
from wsgiload.results.store import RunDirectory
from wsgiload.results.stored_plan import raw_plan
from wsgiload.results.summary import Status
from wsgiload.sampling.running_load import LoadEvents
from wsgiload.scratch import remove_stale_scratch
from wsgiload.serving import launch
from wsgiload.statistics.crossing import MIN_TRIALS
from wsgiload.units import NS_PER_S

GUESS_NS = 5 * NS_PER_S
USUAL_RERUNS = 3
# A closed loop without think time shows the maximum throughput. A search outside of this range
# around it has gone wrong.
MIN_SHARE, MAX_SHARE = 1 / 32, 16.0
# To start and stop a server.
LAUNCH_S = 2.0
BUDGET_S = 240.0
USUAL_WIDTH = 0.05
# A trial is as long as this many fit into the budget: fewer would hide the scatter of launches.
TRIALS = 14
# Shorter trials would measure the start of the server; a queue settles within some of its longest
# response times.
MIN_TRIAL_S, LIMITS_PER_TRIAL = 2.0, 20
# A longer trial is worth more than a longer warm-up.
MAX_WARMUP_NS = NS_PER_S


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """The subject and precision of a search. ``width`` is the distance from the rate to the ends of
    its interval at which a search ends, relative to the rate."""

    experiment: Experiment
    objective: Objective
    width: float = USUAL_WIDTH
    url: str | None = None
    settle_ns: int = 0
    # Of all servers; None: four minutes for each.
    budget_s: float | None = None
    # The duration of a trial's measurement; None: as long as the budget allows.
    duration_s: float | None = None
    # Maximum number of reruns of a trial.
    reruns: int = USUAL_RERUNS

    def server_budget_s(self, servers: int) -> float:
        """The seconds for the search of one of this many servers."""
        return BUDGET_S if self.budget_s is None else self.budget_s / servers

    def trial_s(self, left_s: float, around_s: float) -> float:
        """The duration of a trial's measurement, if so much is left for one server and each trial
        takes ``around_s`` in addition."""
        if self.duration_s is not None:
            return self.duration_s
        slowest_s = max((one.limit for one in self.objective.quantiles), default=0.0) / NS_PER_S
        longest_s = left_s / MIN_TRIALS - around_s
        needed_s = min(longest_s, LIMITS_PER_TRIAL * slowest_s)
        return max(MIN_TRIAL_S, needed_s, left_s / TRIALS - around_s)

    @property
    def around_s(self) -> float:
        """Seconds that a trial takes in addition to its measurement."""
        load = self.experiment.load
        around_s = (load.warmup_ns + load.cooldown_ns) / NS_PER_S
        return around_s + (LAUNCH_S if self.url is None else 0.0)

    def require_enough_time(self) -> None:
        """Raise UsageError if the budget is too short for the fewest and shortest trials."""
        servers = 1 if self.url is not None else len(resolve_servers(self.experiment))
        trial_s = (self.duration_s or MIN_TRIAL_S) + self.around_s
        needed_s = servers * (GUESS_NS / NS_PER_S + self.around_s + MIN_TRIALS * trial_s)
        if servers * self.server_budget_s(servers) < needed_s:
            raise UsageError(
                "--budget is too short for a capacity search on "
                f"{servers} server{'' if servers == 1 else 's'}",
                f"use --budget {math.ceil(needed_s / 60)}m",
            )

    def without_secrets(self) -> CapacityPlan:
        """This plan without secrets, for storing and printing. From now on, all output hides
        them."""
        if self.experiment.store_secrets:
            return self
        experiment = self.experiment.without_secrets()
        url = None if self.url is None else public_url(self.url)
        return replace(self, experiment=experiment, url=url)

    def estimated_s(self, servers: int) -> float:
        """The maximum duration in seconds."""
        return servers * self.server_budget_s(servers)


class CapacityEvents(LoadEvents):
    """Progress events of a search. By default, they are ignored."""

    def message(self, text: str) -> None:
        """A line of text about the progress."""

    def planned(self, servers: int, seconds: float) -> None:
        """The number of servers and the estimated duration, before the first trial."""

    def trial_started(self, state: ServerSearch, plan: TrialPlan, phase: Phase | None) -> None:
        """The next trial of this server begins; ``phase`` is None for the closed loop before the
        search."""

    def trial_ended(self, state: ServerSearch, trial: JudgedTrial) -> None:
        """A trial of this server has ended."""


@dataclass(frozen=True, slots=True)
class CapacityResult:
    """A finished or interrupted search; ``document`` is stored as capacity.json."""

    run_dir: Path
    status: Status
    document: CapacityDocument
    report: Path

    @property
    def exit_code(self) -> int:
        """The documented exit code, without thresholds."""
        return exit_code(self.status, self.document.servers)


@dataclass(slots=True)
class _ActiveSearch:
    """The search of one server while it is running."""

    state: ServerSearch
    users: int
    left_s: float
    trial_ns: int = 0
    steps: Search | None = None
    next_trial: NextTrial | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def next_run(self, level: Level) -> int:
        self.counts[level.text] = self.counts.get(level.text, 0) + 1
        return self.counts[level.text]


def run_capacity(plan: CapacityPlan, events: CapacityEvents | None = None) -> CapacityResult:
    """Run the search of every server and write the run directory. Raises UsageError before anything
    starts if the plan cannot be used; Ctrl-C ends the search with the results so far."""
    events = events or CapacityEvents()
    plan.without_secrets()  # before any text can contain them
    plan.require_enough_time()
    remove_stale_scratch()
    host = host_facts()  # before this process is pinned, and before the first load
    with _trials_of(plan, events) as (trials, directory, users):
        searches = [
            _ActiveSearch(
                ServerSearch(server, app=trials.app_of(server)),
                count,
                plan.server_budget_s(len(users)),
            )
            for server, count in users.items()
        ]
        events.planned(len(searches), plan.estimated_s(len(searches)))
        _write_run(plan, directory, host, "interrupted")  # if nothing more can be written
        status: Status = "failed"
        try:
            _guess_all(plan, trials, searches, events)
            _search_all(plan, trials, searches, events)
            status = "complete"
        except KeyboardInterrupt:
            status = "interrupted"
        except MemoryError:
            lift_guard()  # to store the results so far
            raise
        finally:
            document = _document(plan, [active.state for active in searches], directory, status)
            directory.write_capacity(document)
            trials.write_summary(status)
            _write_run(plan, directory, host, status)
    return CapacityResult(directory.path, status, document, write_html(directory.path))


def _write_run(
    plan: CapacityPlan, directory: RunDirectory, host: HostFacts, status: Status
) -> None:
    run = RunInfo(
        schema_version=1,
        started_utc=directory.started,
        status=status,
        plan=raw_plan(plan.without_secrets()),
        host=host,
    )
    directory.write_run(run)


@contextmanager
def _trials_of(
    plan: CapacityPlan, events: CapacityEvents
) -> Iterator[tuple[Trials, RunDirectory, Mapping[str, int]]]:
    experiment = plan.experiment
    if plan.url is not None:
        launch.raise_fd_limit()
        cores = experiment.limits.client_cpus or available_cpus()
        # If there is a second core, a server on this machine can use it.
        cpu_plan = CpuPlan((), cores, shared_cores=len(available_cpus()) == 1)
        directory = RunDirectory(
            experiment.out, experiment.name, stores_secrets=experiment.store_secrets
        )
        with exclusive(directory.path), pinned(cpu_plan.client_cpus):
            yield (
                UrlTrials(plan.url, experiment, cpu_plan, directory, events),
                directory,
                {"url": DEFAULT_USERS},
            )
        return
    with server_trials(experiment, events.message, events) as (trials, users):
        yield trials, trials.directory, users


def _guess_all(
    plan: CapacityPlan, trials: Trials, searches: Sequence[_ActiveSearch], events: CapacityEvents
) -> None:
    for active in random.Random(plan.experiment.seed).sample(searches, len(searches)):
        _guess(plan, trials, active, events)


def _search_all(
    plan: CapacityPlan, trials: Trials, searches: Sequence[_ActiveSearch], events: CapacityEvents
) -> None:
    order = random.Random(plan.experiment.seed)
    while under_way := [active for active in searches if not active.state.is_over]:
        for active in order.sample(under_way, len(under_way)):
            _advance(plan, trials, active, events)


def _guess(
    plan: CapacityPlan, trials: Trials, active: _ActiveSearch, events: CapacityEvents
) -> None:
    """Determine the throughput at saturation by a closed loop, and what a trial costs."""
    state, began_s = active.state, time.monotonic()
    cell = _closed_loop(plan, trials, active, events)
    spent_s = time.monotonic() - began_s
    active.left_s -= spent_s
    if cell.failure is not None:
        state.fail(cell)
        return

    guess_per_s = cell.rate_result.goodput_per_s if cell.rate_result is not None else None
    if not guess_per_s:
        blame = blame_of(cell) if _is_spoiled(cell) else "server"
        why = f"{active.users:,} closed-loop users got no correct response"
        state.abandoned = (blame, why)
        return

    loops = len(state.trials)
    around_s = max(plan.around_s, spent_s / loops - _guess_ns(plan) / NS_PER_S)
    trial_s = plan.trial_s(active.left_s, around_s)
    active.trial_ns = round(trial_s * NS_PER_S)
    active.steps = capacity(
        SearchPlan(
            saturation_per_s=guess_per_s,
            lowest_per_s=guess_per_s * MIN_SHARE,
            highest_per_s=min(guess_per_s * MAX_SHARE, MAX_RATE_PER_S),
            width=plan.width,
            budget_s=active.left_s,
            trial_s=trial_s + around_s,
        )
    )
    _go_on(active, None)


def _guess_ns(plan: CapacityPlan) -> int:
    """The duration of the closed loop: not longer than a trial that the user wants short."""
    return min(GUESS_NS, round((plan.duration_s or BUDGET_S) * NS_PER_S))


def _closed_loop(
    plan: CapacityPlan, trials: Trials, active: _ActiveSearch, events: CapacityEvents
) -> CellResult:
    """The closed-loop trial, repeated while it is invalid because of the generator or the host. The
    last one is used in any case, because it only gives a starting rate."""
    state, level = active.state, Level(connections=active.users)
    duration_ns = _guess_ns(plan)
    for repeats_left in reversed(range(1 + plan.reruns)):
        trial_plan = TrialPlan(state.server, level, active.next_run(level), duration_ns)
        events.trial_started(state, trial_plan, None)
        cell = trials.carry_out(trial_plan)
        trial = JudgedTrial(cell, None, None, is_discarded=repeats_left > 0 and _is_spoiled(cell))
        state.trials.append(trial)
        events.trial_ended(state, trial)
        if not trial.is_discarded:
            break
        _settle(plan)
    return cell


def _is_spoiled(cell: CellResult) -> bool:
    """Whether the generator or the host made a measurement unusable and a repetition may help. A
    failure to enforce limits would occur again, and a trial with longer response times still gives
    a starting rate."""
    verdict, failure = cell.verdict, cell.failure
    if verdict is None or verdict.status != "invalid" or verdict.blame not in ("client", "host"):
        return False
    return disturbance_of(verdict) is None and (failure is None or failure.step == "load")


def _settle(plan: CapacityPlan) -> None:
    if plan.settle_ns:
        settle(plan.settle_ns, lambda: watch_host(plan.experiment.port))


def _advance(
    plan: CapacityPlan, trials: Trials, active: _ActiveSearch, events: CapacityEvents
) -> None:
    """Run the next trial, repeat it while it is invalid, and pass the outcome to the search."""
    next_trial, state, began_s = active.next_trial, active.state, time.monotonic()
    assert next_trial is not None
    trial = _try(plan, trials, active, next_trial, events)
    for _ in range(plan.reruns):
        if state.failure is not None or not state.should_repeat(trial):
            break
        state.discard_last()
        _settle(plan)
        trial = _try(plan, trials, active, next_trial, events)
    if state.failure is not None:
        return
    if trial.is_inconclusive:
        state.discard_last()
        why = (
            f"no conclusive result at {next_trial.rate_per_s:,.10g}/s in "
            f"{plural(1 + plan.reruns, 'trial')} (last one: {trial.why})"
        )
        state.abandoned = (blame_of(trial.cell), why)
    counted = None if trial.is_inconclusive else plan.objective.count(trial.cell)
    _go_on(active, Outcome(counted, time.monotonic() - began_s))


def _go_on(active: _ActiveSearch, outcome: Outcome | None) -> None:
    """Pass the outcome of a trial to the search (None: begin it)."""
    assert active.steps is not None
    try:
        if outcome is None:
            active.next_trial = next(active.steps)
        else:
            active.next_trial = active.steps.send(outcome)
    except StopIteration as ended:
        active.state.result = ended.value
        if not ended.value.trials and active.state.abandoned is None:
            active.state.abandoned = ("method", "the budget ended before the first trial")


def _try(
    plan: CapacityPlan,
    trials: Trials,
    active: _ActiveSearch,
    next_trial: NextTrial,
    events: CapacityEvents,
) -> JudgedTrial:
    state, level = active.state, Level(rate_per_s=next_trial.rate_per_s)
    trial_plan = TrialPlan(state.server, level, active.next_run(level), active.trial_ns)
    events.trial_started(state, trial_plan, next_trial.phase)
    cell = trials.carry_out(trial_plan)
    trial = JudgedTrial(cell, next_trial.phase, plan.objective.judge(cell))
    state.trials.append(trial)
    events.trial_ended(state, trial)
    # A server that dies under load misses the objective. A server that does not start gives no
    # result for any load.
    if cell.failure is not None and cell.failure.step != "load":
        state.fail(cell)
    return trial


def _document(
    plan: CapacityPlan, states: Sequence[ServerSearch], directory: RunDirectory, status: Status
) -> CapacityDocument:
    load = plan.experiment.load
    servers = tuple(server_result(state, plan.width) for state in states)
    return CapacityDocument(
        schema_version=1,
        status=status,
        slo=tuple(plan.objective.texts),
        arrivals=load.arrivals,
        keepalive=load.keepalive,
        budget_s=plan.estimated_s(len(states)),
        width=plan.width,
        url=plan.without_secrets().url,
        servers=servers,
        recommendations=_recommendations(states, servers, plan.objective),
        run_dir=str(directory.path),
    )


def _recommendations(
    states: Sequence[ServerSearch], servers: Sequence[ServerCapacity], objective: Objective
) -> tuple[Recommendation, ...]:
    # One server leaves no choice, and interrupted searches have no result.
    if len(servers) < 2 or not all(state.is_over for state in states):
        return ()
    return recommendations(servers, recommend_capacity, objective.texts)
