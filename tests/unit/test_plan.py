"""Experiments expand to reproducible cells, and invalid plans are refused."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wsgiload.cli import run
from wsgiload.documents.codec import encode, to_plain
from wsgiload.documents.load_plan import (
    ClosedLoop,
    KeepaliveLimit,
    LoadModel,
    LoadPlan,
    OpenLoop,
    Phases,
    ResponseCheck,
)
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import Experiment, expand, experiment_facts, plain
from wsgiload.loads.build import require_possible
from wsgiload.loads.handle import Handle
from wsgiload.loads.options import Level, LoadSettings, load_plan, without_keepalive
from wsgiload.loads.public_options import parse_keepalive
from wsgiload.loads.request import Request, parse_header, sessions_of, targets_of
from wsgiload.units import NS_PER_S

SERVERS = ("cheroot", "waitress", "wsgiref")
LOAD = LoadSettings(duration_ns=NS_PER_S)
EXPERIMENT = Experiment(
    name="hello",
    app="hello:app",
    app_dir=Path("/apps"),
    request=Request(),
    load=LOAD,
    levels=tuple(Level(rate_per_s=rate) for rate in (100.0, 200.0, 300.0)),
    runs=4,
)


def open_loop_plan(**changes: Any) -> LoadPlan:
    """The generator's plan for an open loop of 50 requests per second, with these options."""
    return load_plan(
        "http://127.0.0.1:9/", Request(), replace(LOAD, **changes), Level(rate_per_s=50.0), seed=3
    )


def require_accepted(load: LoadSettings) -> None:
    """Raise ``UsageError`` if the generator would refuse this load."""
    require_possible(
        load_plan("http://127.0.0.1:9/", Request(), load, Level(rate_per_s=50.0), seed=3)
    )


# --- cells


def test_each_run_is_a_complete_block() -> None:
    cells = expand(EXPERIMENT, SERVERS)
    assert len(cells) == 4 * 3 * 3
    for run_number in range(1, 5):
        block = cells[(run_number - 1) * 9 : run_number * 9]
        assert {cell.run for cell in block} == {run_number}
        assert {(cell.server, cell.level.text) for cell in block} == {
            (server, level.text) for server in SERVERS for level in EXPERIMENT.levels
        }


def test_the_order_is_random_and_the_seed_reproduces_it() -> None:
    order = [cell.id for cell in expand(EXPERIMENT, SERVERS)]
    assert order == [cell.id for cell in expand(EXPERIMENT, SERVERS)]
    assert order != [cell.id for cell in expand(replace(EXPERIMENT, seed=2), SERVERS)]
    blocks = {
        tuple(name.partition("#")[0] for name in order[start : start + 9])
        for start in range(0, 36, 9)
    }
    assert len(blocks) > 1, "every run had the same order"


def test_the_order_for_a_seed_is_the_same_on_every_machine() -> None:
    one = replace(EXPERIMENT, runs=1, levels=EXPERIMENT.levels[:2])
    assert [cell.id for cell in expand(one, ("a", "b"))] == [
        "a@200#1",
        "a@100#1",
        "b@200#1",
        "b@100#1",
    ]


def test_all_servers_get_the_same_arrivals_at_a_load_level_of_a_run() -> None:
    seeds: dict[tuple[str, int], set[int]] = {}
    for cell in expand(EXPERIMENT, SERVERS):
        seeds.setdefault((cell.level.text, cell.run), set()).add(cell.seed)
    assert all(len(of_level) == 1 for of_level in seeds.values())
    assert len(set.union(*seeds.values())) == 12, "two levels or two runs share their arrivals"


def test_adding_a_server_does_not_change_the_arrivals_of_the_others() -> None:
    few = {cell.id: cell.seed for cell in expand(EXPERIMENT, SERVERS[:2])}
    more = {cell.id: cell.seed for cell in expand(EXPERIMENT, SERVERS)}
    assert few.items() <= more.items()


def test_ids_are_unique_even_if_levels_differ_only_slightly() -> None:
    rates = (10_000.01, 10_000.02, 1_234_567.0, 1_234_568.0, 0.1, 0.2)
    levels = (*(Level(rate_per_s=rate) for rate in rates), Level(connections=100))
    cells = expand(replace(EXPERIMENT, levels=levels), SERVERS)
    assert len({cell.id for cell in cells}) == len(cells)


@pytest.mark.parametrize(
    ("level", "text"),
    [
        (Level(rate_per_s=1000.0), "1000"),
        (Level(rate_per_s=2_000_000.0), "2000000"),
        (Level(rate_per_s=0.1 + 0.2), "0.3"),
        (Level(connections=50), "c50"),
    ],
)
def test_a_level_has_a_short_name_without_an_exponent(level: Level, text: str) -> None:
    assert level.text == text


# --- the plan of one load


def test_a_plan_contains_the_options_and_round_trips_through_json() -> None:
    request = Request("/x", "POST", (("A", "1"), ("A", "2")), b"\x00body", (200, 404), b"right")
    load = replace(
        LOAD,
        warmup=5e-9,
        cooldown=7e-9,
        keepalive=3,
        deadline=9e-9,
        threads=2,
        max_connections=4,
        max_pending=6,
    )
    plan = load_plan("http://h:1/x", request, load, Level(rate_per_s=50.0), seed=3)

    assert msgspec.json.decode(encode(plan), type=LoadPlan) == plan
    assert plan.headers == (("A", "1"), ("A", "2"))
    assert base64.b64decode(plan.body_base64 or "") == b"\x00body"

    correct = base64.b64encode(b"right").decode()
    assert plan.check == ResponseCheck(
        statuses=(200, 404), body_base64=correct, length=None, sha256=None, regex=None
    )
    assert plan.phases == Phases(warmup_ns=5, measure_ns=NS_PER_S, cooldown_ns=7)
    assert plan.keepalive == KeepaliveLimit(requests=3)
    assert (plan.deadline_ns, plan.threads, plan.seed) == (9, 2, 3)

    policy = OpenLoop(
        rate_per_s=50.0,
        arrivals="poisson",
        on_busy="grow",
        max_connections=4,
        max_pending=6,
    )
    assert plan.load == LoadModel(open=policy)


def test_connections_without_a_rate_are_a_closed_loop() -> None:
    plan = load_plan(
        "http://h/", Request(), replace(LOAD, think_time=8e-9), Level(connections=5), seed=0
    )
    assert plan.load == LoadModel(closed=ClosedLoop(connections=5, think_time_ns=8))


def test_probes_send_the_first_of_several_requests() -> None:
    alone = Request("/x", "POST", (("A", "1"),), b"body", (200, 404), b"right")
    assert alone.first == alone

    check = {"statuses": [201], "body_base64": None, "length": 3, "sha256": None, "regex": None}
    order = {
        "method": "PUT",
        "url": "http://h/a?b",
        "headers": [["a", "2"]],
        "body_base64": "eA==",
        "check": check,
    }
    targets = targets_of([{"request": order}, {"request": {"url": "/"}}])
    several = Request(headers=(("A", "1"), ("B", "1")), targets=targets)
    first = Request("/a?b", "PUT", (("a", "2"), ("B", "1")), b"x", (201,), None, 3)

    assert several.first == first

    session = {"name": "s", "steps": [{"request": {"url": "/only"}, "think_time_ns": 5}]}
    sessions = sessions_of([session])
    assert Request(expected_body=b"right", sessions=sessions).first == Request(
        "/only", expected_body=b"right"
    )
    with pytest.raises(UsageError, match="targets and sessions are mutually exclusive"):
        Request(targets=several.targets, sessions=sessions)


def test_keepalive_off_changes_nothing_else() -> None:
    assert without_keepalive(replace(LOAD, keepalive=7, threads=2)) == replace(
        LOAD, keepalive="off", threads=2
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"keepalive": "off"},
        {"keepalive": 5},
        {"arrivals": "constant", "on_busy": "queue", "max_connections": 3, "max_pending": 0},
        {"on_busy": "shed", "deadline": 1.0},
        {"warmup": 1e-9, "cooldown": 1e-9, "threads": 2},
    ],
)
def test_the_generator_accepts_every_plan_from_python(changes: dict[str, Any]) -> None:
    """The generator is stopped at once and reports the plan that it parsed."""
    plan = open_loop_plan(**changes)
    with Handle(plan) as handle:
        handle.stop()
        reported = handle.result().document.plan
    filled_in = {
        name: getattr(reported, name) for name in ("spin_window_ns", "interval_ns", "thresholds")
    }
    assert reported == msgspec.structs.replace(plan, **filled_in)


def test_a_dry_run_prints_the_plan_of_the_python_function(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = [
        "load",
        "http://127.0.0.1:9/",
        "-R",
        "50",
        "-d",
        "1s",
        "--seed",
        "3",
        "--dry-run",
        "--json",
        "-",
    ]
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(to_plain(open_loop_plan())))


# --- invalid plans and options


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Request(path="x"), "the path 'x' must start with a slash; write --path /x"),
        (lambda: Request(path="/a b"), "the path '/a b' is not a URL path; percent-encode it"),
        (lambda: Request(path="/é"), "the path '/é' is not a URL path"),
        (lambda: Request(method="A B"), "'A B' is not a request method"),
        (lambda: Request(method=""), "'' is not a request method"),
        (lambda: Request(headers=(("X", "a\r\nY: b"),)), "header X: "),
        (lambda: Request(headers=(("X", "☃"),)), "header X: '☃' has characters that HTTP forbids"),
        (lambda: Request(headers=(("a b", "1"),)), "header a b: "),
        (
            lambda: require_accepted(replace(LOAD, duration_ns=0)),
            "plan: the duration must be longer than",
        ),
        (
            lambda: require_accepted(replace(LOAD, warmup=25 * 3600.0)),
            "plan: .*24 hours",
        ),
        (
            lambda: require_accepted(replace(LOAD, timeout=0.0)),
            "plan: the timeout must be at least 1ms",
        ),
        (
            lambda: require_accepted(replace(LOAD, timeout=4000.0)),
            "plan: the timeout .* hour",
        ),
        (
            lambda: require_accepted(replace(LOAD, deadline=0.0)),
            "plan: the deadline must be longer than",
        ),
        (lambda: require_accepted(replace(LOAD, threads=0)), "plan: threads must"),
        (
            lambda: require_accepted(replace(LOAD, threads=4, max_connections=3)),
            "plan: max_connections must be at least the number of threads",
        ),
        (
            lambda: require_accepted(replace(LOAD, max_pending=-1)),
            "plan: load.open.max_pending: invalid value: integer `-1`",
        ),
        (lambda: Level(rate_per_s=float("nan")), "the rate must be above 0 and at most 10,000,000"),
        (lambda: Level(rate_per_s=0.0), "the rate must be above 0"),
        (lambda: Level(rate_per_s=1e9), "the rate must be above 0 and at most 10,000,000"),
        (lambda: Level(connections=0), "connections must be between 1 and 1,000,000, not 0"),
    ],
)
def test_an_invalid_plan_is_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        make()
    assert re.match(message, str(raised.value))


@pytest.mark.parametrize(
    ("text", "keepalive"),
    [("on", "on"), ("off", "off"), ("1", 1), ("100", 100)],
    ids=lambda value: str(value),
)
def test_keepalive_is_on_off_or_a_number_of_requests(text: str, keepalive: object) -> None:
    assert parse_keepalive(text) == keepalive


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "yes", "ON ", "²"])
def test_any_other_keepalive_is_refused(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"invalid keep-alive .*; write on, off, or a number of requests"
    ):
        parse_keepalive(text)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("Accept: text/html", ("Accept", "text/html")),
        ("X-Empty:", ("X-Empty", "")),
        ("Host:example.org:80", ("Host", "example.org:80")),
        ("  Cookie :  a=b  ", ("Cookie", "a=b")),
    ],
)
def test_a_header_field_is_split_at_its_first_colon(text: str, field: tuple[str, str]) -> None:
    assert parse_header(text) == field


@pytest.mark.parametrize("text", ["", "no colon", ": value", "two words: x", "Ümlaut: x"])
def test_any_other_header_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a header field; write it as 'Name: value'"):
        parse_header(text)


# --- the facts of an experiment


def test_the_facts_of_an_experiment_name_either_rates_or_connections() -> None:
    facts = experiment_facts(EXPERIMENT, SERVERS)
    assert (facts.rates, facts.connections) == ((100.0, 200.0, 300.0), None)
    assert facts.servers == SERVERS
    closed = experiment_facts(replace(EXPERIMENT, levels=(Level(connections=5),)), SERVERS)
    assert (closed.rates, closed.connections, closed.arrivals) == (None, (5,), None)


def test_an_experiment_becomes_plain_data() -> None:
    data = plain(replace(EXPERIMENT, request=Request(body=b"\x00")))
    assert json.loads(json.dumps(data)) == data
    assert data["app_dir"] == "/apps"
    assert data["request"]["body"] == "AA=="
