"""Numbers of workers and threads, and their effect on names."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsgiload.catalogue.budget import DEFAULT_USERS, Budget, budget_of, busy_users
from wsgiload.catalogue.bundled import BUNDLED
from wsgiload.cli._options import repeat_grid
from wsgiload.errors import UsageError
from wsgiload.experiment.grid import parse_sizes
from wsgiload.experiment.plan import Experiment, Size, experiment_facts
from wsgiload.experiment.settings import resolve_servers
from wsgiload.loads.options import Level, LoadSettings
from wsgiload.loads.request import Request
from wsgiload.report.cells import conditions, label_of
from wsgiload.sweeps.cell import load_settings_of

from .invented_cells import cell


def experiment(
    servers: tuple[str, ...], sizes: tuple[Size, ...], app: str = "hello:app"
) -> Experiment:
    return Experiment(
        name="n",
        app=app,
        app_dir=Path("/app"),
        request=Request(),
        load=LoadSettings(duration_ns=1),
        levels=(Level(rate_per_s=1.0),),
        servers=servers,
        sizes=sizes,
        bundled=app == BUNDLED["hello"].app,
    )


def test_a_grid_contains_every_combination() -> None:
    sizes = parse_sizes(None, None, ["workers=1,2", "threads=1, 8"])
    assert sizes == (Size(1, 1), Size(1, 8), Size(2, 1), Size(2, 8))


def test_the_profile_of_a_size_overrides_that_of_the_experiment() -> None:
    sizes = parse_sizes(None, None, ["profile=tuned,stock"])
    variants = resolve_servers(experiment(("gunicorn-gthread",), sizes))
    budgets = [budget_of(one, 2, "tuned") for one in variants.values()]
    assert budgets == [Budget(2, 4), Budget(None, None)]
    assert [busy_users(one, 2, "tuned") for one in variants.values()] == [2 * 2 * 4, DEFAULT_USERS]


def test_without_a_grid_there_is_one_size() -> None:
    assert parse_sizes(None, None, []) == (Size(),)
    assert parse_sizes(2, None, ["threads=1,4"]) == (Size(2, 1), Size(2, 4))


@pytest.mark.parametrize(
    ("workers", "grid", "message"),
    [
        (
            None,
            ["cores=1"],
            "unknown factor; use workers, threads, profile, keepalive, app or python",
        ),
        (None, ["workers"], "write it like workers=1,2,4"),
        (None, ["workers=1,0"], "'0' is not a number"),
        (None, ["workers=1,"], "'' is not a number"),
        (None, ["workers=1001"], "not a number from 1 to 1,000"),
        (None, ["profile=best"], "'best' is not a profile; choose tuned or stock"),
        (None, ["keepalive=maybe"], "invalid keep-alive 'maybe'"),
        (3, ["workers=1"], "workers was given twice; use it either in --grid or as an option"),
        (None, ["threads=1", "threads=2"], "threads was given twice"),
    ],
)
def test_an_invalid_grid_is_refused(workers: int | None, grid: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_sizes(workers, None, grid)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--grid", "workers=1", "threads=2"], ["--grid", "workers=1", "--grid", "threads=2"]),
        (["--grid", "workers=1", "app:app"], ["--grid", "workers=1", "app:app"]),
        (["--grid", "workers=1", "--runs", "2"], ["--grid", "workers=1", "--runs", "2"]),
        (
            ["--grid", "workers=1", "--grid", "threads=2"],
            ["--grid", "workers=1", "--grid", "threads=2"],
        ),
        (["app:app", "--rates", "1,2"], ["app:app", "--rates", "1,2"]),
    ],
)
def test_several_values_may_follow_the_flag(words: list[str], expected: list[str]) -> None:
    assert repeat_grid(words) == expected


def test_a_size_changes_the_name_if_it_affects_the_server() -> None:
    sizes = parse_sizes(None, None, ["workers=1,2", "threads=4"])
    variants = resolve_servers(experiment(("gunicorn-gthread", "waitress", "wsgiref"), sizes))
    assert list(variants) == [
        "gunicorn-gthread-w1-t4",
        "gunicorn-gthread-w2-t4",
        "waitress-t4",
        "wsgiref",
    ]


def test_the_profile_and_keep_alive_are_factors_and_part_of_the_name() -> None:
    sizes = parse_sizes(None, None, ["threads=2", "profile=tuned,stock", "keepalive=off,5"])
    assert sizes[1] == Size(None, 2, "tuned", 5)

    variants = resolve_servers(experiment(("waitress",), sizes))
    assert list(variants) == [
        "waitress-t2-tuned-close",
        "waitress-t2-tuned-k5",
        "waitress-t2-stock-close",
        "waitress-t2-stock-k5",
    ]
    assert [
        load_settings_of(one, experiment((), sizes).load).keepalive for one in variants.values()
    ] == [
        "off",
        5,
        "off",
        5,
    ]

    facts = experiment_facts(experiment(("waitress",), sizes), tuple(variants))
    assert (facts.profile, facts.keepalive) == (("tuned", "stock"), ("off", 5))
    assert conditions(facts).startswith("profile: see the server's name · Poisson arrivals · ")
    assert "keep-alive: see the server's name" in conditions(facts)

    alike = experiment_facts(experiment(("waitress",), (Size(), Size(2))), ("waitress",))
    assert (alike.profile, alike.keepalive) == ("tuned", "on")


def test_a_variant_has_the_warm_up_that_its_name_promises() -> None:
    planned = LoadSettings(duration_ns=1, warmup=2.0, warmup_requests=50_000)
    names = ("pypy-gevent-cold", "pypy-gevent-warm", "gevent-pywsgi")
    warm_up_s = {
        name: load_settings_of(one, planned).warmup_ns_at(Level(rate_per_s=10_000.0)) / 1e9
        for name, one in resolve_servers(experiment(names, (Size(),))).items()
    }
    assert warm_up_s == {"pypy-gevent-cold": 0, "pypy-gevent-warm": 8, "gevent-pywsgi": 5}


def test_a_label_contains_size_and_legacy() -> None:
    legacy = cell("meinheld", variant="gunicorn", size="w2", legacy=True)
    assert label_of(legacy) == "meinheld-gunicorn-w2 (legacy)"
    plain = cell("waitress", variant="default", size=None, legacy=False)
    assert label_of(plain) == "waitress"


def test_a_baseline_without_an_app_is_omitted_for_other_apps() -> None:
    assert "node" in resolve_servers(experiment(("all",), (Size(),)))
    assert "node" not in resolve_servers(experiment(("all",), (Size(),), app="shop:app"))
    with pytest.raises(UsageError, match="none of these servers runs WSGI apps; omit APP"):
        resolve_servers(experiment(("node",), (Size(),), app="shop:app"))
