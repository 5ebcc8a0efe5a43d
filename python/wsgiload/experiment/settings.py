"""Resolves the configurations that an experiment measures, and plans the rounds of a race. Starts
nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from wsgiload.catalogue.adjust import adjusted
from wsgiload.catalogue.bundled import BUNDLED, DEFAULT_APP
from wsgiload.catalogue.names import ServerVariant, load_catalogue
from wsgiload.errors import UsageError
from wsgiload.experiment.estimate import REPORT_S, experiment_s, longest_s
from wsgiload.experiment.plan import Cell, Experiment, Size, planned_blocks
from wsgiload.experiment.qualifying import qualifying_of
from wsgiload.statistics.effect import MIN_RUNS, runs_needed

# Rounds of a race. The more rounds, the smaller the share of the error probability for each.
MAX_ROUNDS = 20
MAX_BLOCKS = 60


def resolve_servers(experiment: Experiment) -> dict[str, ServerVariant]:
    """The configurations that a sweep measures, by ID: each server with every requested setting
    that affects it."""
    chosen = _chosen(experiment)
    settings = [_setting(variant, size) for variant in chosen for size in experiment.sizes]
    runnable = [
        variant
        for variant in settings
        if variant.server.serves_apps or _serves_hello(variant, experiment)
    ]
    if not runnable:
        kind = experiment.interface.upper()
        raise UsageError(f"none of these servers runs {kind} apps", "omit APP")
    named: dict[str, ServerVariant] = {}
    for variant in runnable:
        if named.setdefault(variant.id, variant) != variant:
            raise UsageError(
                f"two servers would be named {variant.id}",
                "give one an alias: --servers alias=NAME",
            )
    return named


def _chosen(experiment: Experiment) -> list[ServerVariant]:
    """The user's own servers and the selected catalogue servers."""
    catalogue, named = (
        load_catalogue(further=experiment.servers_from).with_user_servers(experiment.own_servers),
        experiment.servers,
    )
    own = [one.name for one in experiment.own_servers]
    chosen = catalogue.select([*own, *(named or ())] if own else named, experiment.interface)
    return [
        replace(one, variables=tuple(_variables_of(one, experiment).items()))
        for one in adjusted(chosen, experiment.adjustments)
    ]


def _variables_of(variant: ServerVariant, experiment: Experiment) -> dict[str, str]:
    """The variables of all servers, overridden by those of the user's own server."""
    own = variant.server.user_server
    return {**experiment.variables, **(own.env if own is not None else {})}


def _setting(variant: ServerVariant, size: Size) -> ServerVariant:
    """The server with the settings of a size. Profiles apply only to catalogue servers, and Python
    versions only to catalogue servers that run apps."""
    is_ours = variant.server.user_server is None
    return replace(
        variant.sized(size.workers, size.threads),
        profile=size.profile if is_ours else None,
        keepalive=size.keepalive,
        app=size.app,
        python=size.python if is_ours and variant.server.serves_apps else None,
    )


def _serves_hello(variant: ServerVariant, experiment: Experiment) -> bool:
    """Whether the measured app is hello, whose response a baseline sends without running an app."""
    hello = BUNDLED[DEFAULT_APP].app_for(experiment.interface)
    return experiment.bundled and experiment.served(variant.app).app == hello


def runs_to_compare(experiment: Experiment) -> int:
    """The number of runs needed to compare the servers of this experiment, at least 6."""
    return runs_needed(max_pairs(resolve_servers(experiment)))


def max_pairs(servers: Mapping[str, ServerVariant]) -> int:
    """The most pairs of these servers that are compared at one load: those with different apps are
    not."""
    of_app = Counter(variant.app for variant in servers.values())
    return max(math.comb(count, 2) for count in of_app.values())


def raced(experiment: Experiment) -> Experiment:
    """The experiment as a race within its budget, with qualifying rounds and the maximum number of
    rounds."""
    servers = resolve_servers(experiment)
    if experiment.is_race:
        # Enough blocks for two servers, of which the others drop out at once.
        blocks = planned_blocks(experiment, min(2, len(servers)))
        return replace(experiment, runs=min(MAX_BLOCKS, max(1, math.ceil(blocks))))
    qualifying = qualifying_of(experiment.load, experiment.levels)
    planned = replace(experiment, qualifying=qualifying)

    # Fewer configurations race if the budget is too short for enough rounds on a busy host.
    busy_s = longest_s([Cell("", experiment.levels[0], racing_run(planned), seed=0)], planned)
    trials = int(max(0.0, _race_s(planned) - REPORT_S) / busy_s)
    field = max(2, min(qualifying.field, trials // MIN_RUNS))
    planned = replace(experiment, qualifying=replace(qualifying, field=field))
    return replace(planned, runs=qualifying.rounds + rounds_within(planned))


def rounds_within(experiment: Experiment) -> int:
    """The maximum number of rounds of a race within its budget, if all but two servers drop out
    after the minimum number of rounds for a comparison."""
    affordable, field = _race_trials(experiment), field_of(experiment)
    before = MIN_RUNS * field
    if affordable < before:
        return max(1, affordable // field)
    return min(MAX_ROUNDS, MIN_RUNS + (affordable - before) // min(field, 2))


def _race_trials(experiment: Experiment) -> int:
    """How many runs of one server the budget allows after the qualifying rounds."""
    return int(max(0.0, _race_s(experiment)) / _block_s(experiment, racing_run(experiment)))


def _race_s(experiment: Experiment) -> float:
    """The seconds that remain of the budget after the qualifying rounds."""
    return experiment.race_s - qualifying_s(experiment)


def field_of(experiment: Experiment) -> int:
    """The maximum number of servers that race."""
    servers, first = len(resolve_servers(experiment)), experiment.qualifying
    return servers if first is None else min(servers, first.field)


def racing_run(experiment: Experiment) -> int:
    """The first run after the qualifying rounds."""
    return 1 if experiment.qualifying is None else experiment.qualifying.rounds + 1


def qualifying_s(experiment: Experiment) -> float:
    """The seconds that the qualifying rounds take; with an objective, at one load level."""
    if experiment.qualifying is None:
        return 0.0
    servers = len(resolve_servers(experiment))
    return servers * _block_s(experiment, 1)


def round_s(experiment: Experiment) -> float:
    """The seconds that one round of the race takes if no server has dropped out."""
    return field_of(experiment) * _block_s(experiment, racing_run(experiment))


def _block_s(experiment: Experiment, run: int) -> float:
    """The seconds that one run of one server takes; with an objective, at one load level."""
    levels = experiment.levels[:1] if experiment.slo else experiment.levels
    return experiment_s([Cell("", level, run, seed=0) for level in levels], experiment)
