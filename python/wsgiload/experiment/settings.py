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
from wsgiload.experiment.plan import Experiment, Size, launches_s, planned_blocks
from wsgiload.procedures.race import FIELD, first_level
from wsgiload.statistics.effect import MIN_RUNS, runs_needed
from wsgiload.units import NS_PER_S

MAX_BLOCKS = 60
# With an objective.
MIN_BLOCKS, MAX_ROUNDS = 9, 20


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
    """The experiment as a race, with the most blocks that its budget allows: those of two servers,
    if the others drop out at once. With an objective, those of its field at each level, but not
    more than MAX_ROUNDS, since every analysis takes a share of the error probability."""
    servers = len(resolve_servers(experiment))
    launches = launches_s(experiment)
    first_s = launches[first_level(len(launches))]
    if first_s > experiment.race_s:
        enough_s = experiment.closed_loops_ns / NS_PER_S + (1 + MIN_RUNS) * servers * first_s
        raise UsageError(
            f"the budget is too short: a launch takes about {math.ceil(first_s)} s",
            f"use --budget {math.ceil(enough_s / 60)}m",
        )
    blocks = planned_blocks(experiment, min(2, servers))
    if experiment.slo:
        of_field = planned_blocks(experiment, min(FIELD, servers)) / len(experiment.levels)
        blocks = max(MIN_BLOCKS, min(MAX_ROUNDS, of_field))
    return replace(experiment, runs=min(MAX_BLOCKS, max(1, math.ceil(blocks))))
