"""What an experiment measures: each server in every setting that makes a difference to it. Starts
nothing."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from wsgiload.catalogue.bundled import BUNDLED, DEFAULT_APP
from wsgiload.catalogue.names import ServerVariant, load_catalogue
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import Experiment, Size
from wsgiload.statistics.effect import runs_needed


def resolve_servers(experiment: Experiment) -> dict[str, ServerVariant]:
    """The servers that a sweep measures, by id: each in every setting asked for that makes a
    difference to it."""
    chosen = load_catalogue().select(experiment.servers)
    settings = [_setting(found, size) for found in chosen for size in experiment.sizes]
    able = [
        found for found in settings if found.server.serves_wsgi or _serves_hello(found, experiment)
    ]
    if not able:
        raise UsageError(
            "none of the servers runs a WSGI app", "measure them with the bundled app hello"
        )
    named: dict[str, ServerVariant] = {}
    for found in able:
        if named.setdefault(found.id, found) != found:
            raise UsageError(
                f"two of the servers would be called {found.id}",
                "choose another name in --servers NAME=",
            )
    return named


def _setting(found: ServerVariant, size: Size) -> ServerVariant:
    """The server in one setting; a version of Python is none to a server that is no Python."""
    return replace(
        found.sized(size.workers, size.threads),
        profile=size.profile,
        keepalive=size.keepalive,
        app=size.app,
        python=size.python if found.server.serves_wsgi else None,
    )


def _serves_hello(found: ServerVariant, experiment: Experiment) -> bool:
    """Whether what is asked of it is what a baseline answers by itself, without an app."""
    return experiment.bundled and experiment.served(found.app).app == BUNDLED[DEFAULT_APP].app


def runs_to_compare(experiment: Experiment) -> int:
    """The fewest runs with which the servers of this experiment can be told apart, six at least;
    those with different apps are not compared."""
    of_app = Counter(found.app for found in resolve_servers(experiment).values())
    return runs_needed(max(math.comb(count, 2) for count in of_app.values()))
