"""What an experiment measures: each server in every setting that makes a difference to it. Starts
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
from wsgiload.experiment.estimate import experiment_s
from wsgiload.experiment.plan import Cell, Experiment, Size
from wsgiload.statistics.effect import FEWEST_RUNS, runs_needed
from wsgiload.units import NS_PER_S

# Of a race; the more there are, the less of the error probability each may spend.
MOST_ROUNDS = 20


def resolve_servers(experiment: Experiment) -> dict[str, ServerVariant]:
    """The servers that a sweep measures, by id: each in every requested setting that makes
    a difference to it."""
    chosen = _chosen(experiment)
    settings = [_setting(variant, size) for variant in chosen for size in experiment.sizes]
    able = [
        variant
        for variant in settings
        if variant.server.serves_wsgi or _serves_hello(variant, experiment)
    ]
    if not able:
        raise UsageError("none of these servers runs WSGI apps", "omit APP")
    named: dict[str, ServerVariant] = {}
    for variant in able:
        if named.setdefault(variant.id, variant) != variant:
            raise UsageError(
                f"two servers would be named {variant.id}",
                "give one an alias: --servers alias=NAME",
            )
    return named


def _chosen(experiment: Experiment) -> list[ServerVariant]:
    """The user's own servers, and those of the catalogue that were named beside them."""
    catalogue, named = load_catalogue().with_own(experiment.own_servers), experiment.servers
    own = [one.name for one in experiment.own_servers]
    chosen = catalogue.select([*own, *(named or ())] if own else named)
    variables = tuple(experiment.variables.items())
    return [replace(one, variables=variables) for one in adjusted(chosen, experiment.adjustments)]


def _setting(variant: ServerVariant, size: Size) -> ServerVariant:
    """The server in one setting; a version of Python only applies to servers in Python, and
    profiles only to servers of the catalogue."""
    is_ours = variant.server.own is None
    return replace(
        variant.sized(size.workers, size.threads),
        profile=size.profile if is_ours else None,
        keepalive=size.keepalive,
        app=size.app,
        python=size.python if is_ours and variant.server.serves_wsgi else None,
    )


def _serves_hello(variant: ServerVariant, experiment: Experiment) -> bool:
    """Whether it is requested what a baseline serves by itself, without an app."""
    return experiment.bundled and experiment.served(variant.app).app == BUNDLED[DEFAULT_APP].app


def runs_to_compare(experiment: Experiment) -> int:
    """The number of runs needed to compare the servers of this experiment, at least 6."""
    return runs_needed(most_pairs(resolve_servers(experiment)))


def most_pairs(found: Mapping[str, ServerVariant]) -> int:
    """The most pairs of these servers that are compared at one load: those with different apps are
    not."""
    of_app = Counter(variant.app for variant in found.values())
    return max(math.comb(count, 2) for count in of_app.values())


def rounds_within(experiment: Experiment) -> int:
    """The most rounds of a race within its budget, if all but two servers drop out after the
    fewest from which anything is inferred."""
    servers = len(resolve_servers(experiment))
    cells = [Cell("", level, run=1, seed=0) for level in experiment.levels]
    affordable = int((experiment.budget_ns or 0) / NS_PER_S / experiment_s(cells, experiment))
    before = FEWEST_RUNS * servers
    if affordable < before:
        return max(1, affordable // servers)
    return min(MOST_ROUNDS, FEWEST_RUNS + (affordable - before) // min(servers, 2))
