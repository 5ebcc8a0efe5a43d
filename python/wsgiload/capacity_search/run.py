"""Runs a capacity search: guess, search and confirm, with every trial stored in a run directory.

The searches of several servers are interleaved, in a new random order in each round, so that drift
affects all of them equally. ``objective`` judges single trials; ``search`` chooses the next rate.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from wsgiload.analysis.disturbance import disturbance_of
from wsgiload.analysis.objective import Judgement, Objective
from wsgiload.analysis.recommend import recommend_capacity
from wsgiload.analysis.recommendations import recommendations
from wsgiload.capacity_search.budget import Clock, require_enough, trial_s_within
from wsgiload.capacity_search.result import (
    JudgedTrial,
    ServerSearch,
    blame_of,
    exit_code,
    server_result,
)
from wsgiload.capacity_search.search import Goal, NextTrial, Phase, Search, search
from wsgiload.capacity_search.trials import TrialPlan, Trials, UrlTrials, server_trials
from wsgiload.catalogue.budget import DEFAULT_USERS
from wsgiload.doctor.settle import settle, watch_host
from wsgiload.documents.capacity import CapacityResult as CapacityDocument
from wsgiload.documents.capacity import ServerCapacity
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.recommendation import Recommendation
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.experiment.plan import Experiment
from wsgiload.experiment.redaction import public_url
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import CpuPlan, available_cpus, pinned
from wsgiload.host.facts import host_facts
from wsgiload.host.memory_guard import lift_guard
from wsgiload.loads.options import MAX_RATE_PER_S, Level
from wsgiload.report import write_html
from wsgiload.report.words import plural
from wsgiload.results.run_lock import exclusive
from wsgiload.results.store import RunDirectory
from wsgiload.results.stored_plan import raw_plan
from wsgiload.results.summary import Status
from wsgiload.sampling.running_load import LoadEvents
from wsgiload.scratch import remove_stale_scratch
from wsgiload.serving import launch
from wsgiload.units import NS_PER_S

GUESS_NS = 5 * NS_PER_S
USUAL_RERUNS = 3
# A closed loop without think time shows the maximum throughput. A search outside of this range
# around it has gone wrong.
MIN_SHARE, MAX_SHARE = 1 / 32, 16.0
# Trials of a bisection to 2 %, counted on the noisy oracle of its tests, and the time to start and
# stop a server.
USUAL_TRIALS = 34
LAUNCH_S = 2.0


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """The subject and precision of a search. A trial lasts as long as the experiment's load."""

    experiment: Experiment
    objective: Objective
    goal: Goal
    confirm_duration_ns: int
    url: str | None = None
    settle_ns: int = 0
    budget_s: float | None = None
    # Maximum number of reruns of a trial.
    reruns: int = USUAL_RERUNS

    def within(self, left_s: float, servers: int, around_s: float) -> CapacityPlan:
        """This plan with trials so short that the searches of this many servers fit into
        ``left_s``. Each trial takes ``around_s`` in addition to its measurement."""
        trial_ns = round(trial_s_within(left_s, servers, around_s) * NS_PER_S)
        load = replace(self.experiment.load, duration_ns=trial_ns)
        return replace(
            self,
            experiment=replace(self.experiment, load=load),
            confirm_duration_ns=trial_ns,
            settle_ns=min(self.settle_ns, trial_ns),
        )

    @property
    def around_s(self) -> float:
        """Seconds that a trial takes in addition to its measurement."""
        return self.load_around_s + (LAUNCH_S if self.url is None else 0.0)

    @property
    def load_around_s(self) -> float:
        """The part of ``around_s`` in which the generator sends."""
        load = self.experiment.load
        return (load.warmup_ns + load.cooldown_ns) / NS_PER_S

    @property
    def confirmation_s(self) -> float:
        """Seconds that the confirmation of one server takes."""
        return self.goal.confirmations * (self.confirm_duration_ns / NS_PER_S + self.around_s)

    def require_enough_time(self) -> None:
        """Raise UsageError if the budget is too short."""
        if self.budget_s is not None:
            servers = 1 if self.url is not None else len(resolve_servers(self.experiment))
            require_enough(self.budget_s, servers, self.around_s)

    def without_secrets(self) -> CapacityPlan:
        """This plan without secrets, for storing and printing. From now on, all output hides
        them."""
        if self.experiment.store_secrets:
            return self
        experiment = self.experiment.without_secrets()
        url = None if self.url is None else public_url(self.url)
        return replace(self, experiment=experiment, url=url)

    def estimated_s(self, servers: int) -> float:
        """The expected duration in seconds, with the usual number of trials."""
        if self.budget_s is not None:
            return self.budget_s
        trials_s = USUAL_TRIALS * (self.experiment.load.duration_ns / NS_PER_S + self.around_s)
        return servers * (trials_s + self.confirmation_s)


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
    # Whether the remaining time only suffices for a confirmation.
    is_time_up: Callable[[], bool]
    steps: Search | None = None
    next_trial: NextTrial | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def next_run(self, level: Level) -> int:
        self.counts[level.text] = self.counts.get(level.text, 0) + 1
        return self.counts[level.text]


def run_capacity(plan: CapacityPlan, events: CapacityEvents | None = None) -> CapacityResult:
    """Run the search of every server and write the run directory. Raises UsageError before anything
    starts if the plan cannot be used; Ctrl-C ends the search with the results so far."""
    events, began_s = events or CapacityEvents(), time.monotonic()
    plan.without_secrets()  # before any text can contain them
    plan.require_enough_time()
    remove_stale_scratch()
    host = host_facts()  # before this process is pinned, and before the first load
    with _trials_of(plan, events) as (trials, directory, users):
        clock = None if plan.budget_s is None else Clock(plan.budget_s, began_s)
        searches = _active_searches(trials, users, clock)
        events.planned(len(searches), plan.estimated_s(len(searches)))
        _write_run(plan, directory, host, "interrupted")  # if nothing more can be written
        status: Status = "failed"
        try:
            guessing_s = time.monotonic()
            _guess_all(plan, trials, searches, events)
            if clock is not None:
                plan = _sized(plan, clock, searches, time.monotonic() - guessing_s)
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


def _sized(
    plan: CapacityPlan, clock: Clock, searches: Sequence[_ActiveSearch], spent_s: float
) -> CapacityPlan:
    """The plan with trials that fill the remaining budget. ``spent_s`` is the total time of the
    closed loops, from which the overhead per trial follows."""
    loops = [trial.cell for active in searches for trial in active.state.trials]
    measured_s = min(GUESS_NS, plan.experiment.load.duration_ns) / NS_PER_S
    around_s = spent_s / len(loops) - measured_s if loops else plan.around_s
    left = sum(not active.state.is_over for active in searches)
    sized = plan.within(clock.left_s(), max(1, left), max(around_s, plan.load_around_s))
    clock.confirmation_s = sized.confirmation_s
    return sized


def _active_searches(
    trials: Trials, users: Mapping[str, int], clock: Clock | None
) -> list[_ActiveSearch]:
    """One search per server; within a budget, they share the remaining time."""
    searches: list[_ActiveSearch] = []

    def is_time_up() -> bool:
        under_way = sum(not active.state.is_over for active in searches)
        return clock is not None and clock.must_confirm(under_way)

    for server, count in users.items():
        state = ServerSearch(server, app=trials.app_of(server))
        searches.append(_ActiveSearch(state, count, is_time_up))
    return searches


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
    """Determine the starting rate of the search by a closed loop."""
    state = active.state
    cell = _closed_loop(plan, trials, active, events)
    if cell.failure is not None:
        state.fail(cell)
        return

    guess_per_s = cell.rate_result.goodput_per_s if cell.rate_result is not None else None
    if not guess_per_s:
        blame = blame_of(cell) if _is_spoiled(cell) else "server"
        why = f"{active.users:,} closed-loop users got no correct response"
        state.abandoned = (blame, why)
        return

    goal = replace(
        plan.goal,
        lowest_per_s=max(guess_per_s * MIN_SHARE, plan.goal.lowest_per_s),
        highest_per_s=min(guess_per_s * MAX_SHARE, MAX_RATE_PER_S),
    )
    active.steps = search(guess_per_s, goal, active.is_time_up)
    active.next_trial = next(active.steps)


def _closed_loop(
    plan: CapacityPlan, trials: Trials, active: _ActiveSearch, events: CapacityEvents
) -> CellResult:
    """The closed-loop trial, repeated while it is invalid because of the generator or the host. The
    last one is used in any case, because it only gives a starting rate."""
    state, level = active.state, Level(connections=active.users)
    duration_ns = min(GUESS_NS, plan.experiment.load.duration_ns)
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
    steps, next_trial, state = active.steps, active.next_trial, active.state
    assert steps is not None
    assert next_trial is not None
    judgement = _carry_out(plan, trials, active, next_trial, events)
    for _ in range(plan.reruns):
        if state.failure is not None or not state.should_repeat(judgement):
            break
        if judgement.met is not None and active.is_time_up():
            break
        state.discard_last()
        _settle(plan)
        judgement = _carry_out(plan, trials, active, next_trial, events)
    if state.failure is not None:
        return
    if judgement.met is None:
        state.discard_last()
        why = (
            f"no conclusive result at {next_trial.rate_per_s:,.10g}/s in "
            f"{plural(1 + plan.reruns, 'trial')} (last one: {judgement.why})"
        )
        state.abandoned = (blame_of(state.trials[-1].cell), why)
    try:
        active.next_trial = steps.send(judgement.met)
    except StopIteration as ended:
        state.result = ended.value


def _carry_out(
    plan: CapacityPlan,
    trials: Trials,
    active: _ActiveSearch,
    next_trial: NextTrial,
    events: CapacityEvents,
) -> Judgement:
    """Run one trial; if too few requests decided a miss, run a longer one."""
    usual_ns = (
        plan.confirm_duration_ns
        if next_trial.phase == "confirm"
        else plan.experiment.load.duration_ns
    )
    judgement = _try(plan, trials, active, (next_trial, usual_ns), events)
    if not judgement.is_too_short or active.is_time_up():
        return judgement
    longer_ns = max(usual_ns, plan.objective.long_enough_ns(next_trial.rate_per_s))
    return _try(plan, trials, active, (next_trial, longer_ns), events)


def _try(
    plan: CapacityPlan,
    trials: Trials,
    active: _ActiveSearch,
    timed_trial: tuple[NextTrial, int],
    events: CapacityEvents,
) -> Judgement:
    (next_trial, duration_ns), state = timed_trial, active.state
    level = Level(rate_per_s=next_trial.rate_per_s)
    trial_plan = TrialPlan(state.server, level, active.next_run(level), duration_ns)
    events.trial_started(state, trial_plan, next_trial.phase)
    cell = trials.carry_out(trial_plan)
    judgement = plan.objective.judge(cell)
    trial = JudgedTrial(cell, next_trial.phase, judgement)
    state.trials.append(trial)
    events.trial_ended(state, trial)
    # A server that dies under load misses the objective. A server that does not start gives no
    # result for any load.
    if cell.failure is not None and cell.failure.step != "load":
        state.fail(cell)
    return judgement


def _document(
    plan: CapacityPlan, states: Sequence[ServerSearch], directory: RunDirectory, status: Status
) -> CapacityDocument:
    load = plan.experiment.load
    servers = tuple(server_result(state, plan.objective, load.duration_ns) for state in states)
    return CapacityDocument(
        schema_version=1,
        status=status,
        slo=tuple(plan.objective.texts),
        arrivals=load.arrivals,
        keepalive=load.keepalive,
        duration_s=load.duration_ns / NS_PER_S,
        confirm_duration_s=plan.confirm_duration_ns / NS_PER_S,
        width=plan.goal.width,
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
