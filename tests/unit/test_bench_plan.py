"""The order of the benchmark, the calls of the generators, and programs given by path."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from bench import host, run
from bench.custom import read_description
from bench.generators import DIALECTS, Generator, read_given
from bench.load import Load, OutputError
from bench.measure import run_child
from bench.placement import Placement
from bench.plan import Scope, duration_s, rotated, steps
from bench.run import Bench, carry_out, describe
from bench.servers import ServerError, ServerSpec

GENERATORS = [Generator(name, dialect, Path(name)) for name, dialect in DIALECTS.items()]


@pytest.mark.parametrize(
    ("again", "shares", "superseded"),
    [
        (3, (0.3, 0.003, 0.0), [True, True, False]),
        (1, (0.3, 0.3), [True, False]),
        (0, (0.3,), [False]),
    ],
)
def test_a_run_that_a_hypervisor_disturbed_is_made_again(
    monkeypatch: pytest.MonkeyPatch, again: int, shares: tuple[float, ...], superseded: list[bool]
) -> None:
    measured = iter(shares)
    monkeypatch.setattr(run, "_record", lambda *_: {"steal_share": next(measured)})
    monkeypatch.setattr(run, "wait_until_quiet", lambda _: None)
    planned = steps(Scope(sections=("closed",), rounds=1, connections=(1,)), GENERATORS[:1])[:1]
    placement = Placement(0, real_time=False)
    records = list(carry_out(planned, Bench(placement, placement, again), lambda _: None))
    assert [bool(record.get("superseded")) for record in records] == superseded


def test_only_a_server_that_spins_throughout_runs_at_ordinary_priority(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: dict[str, set[bool]] = {}

    def get(self: object, spec: ServerSpec, placement: Placement) -> NoReturn:
        asked.setdefault(spec.name, set()).add(placement.real_time)
        raise ServerError("not started")

    monkeypatch.setattr(run._Servers, "get", get)
    few = Scope(
        sections=("closed", "open", "accuracy"), rates_per_s=(1_000,), accuracy_rates_per_s=(1_000,)
    )
    planned = steps(few, GENERATORS[:2])
    placement = Placement(0, real_time=True)
    assert all(
        record["failure"]
        for record in carry_out(planned, Bench(placement, placement), lambda _: None)
    )
    assert asked == {
        "refsrv, fast": {True},
        "nginx": {True},
        "refsrv, 2500000ns, spinning throughout": {False},
        "refsrv, 2ms, spinning 60us": {True},
    }


def test_every_generator_runs_once_a_round_and_none_always_first() -> None:
    scope = Scope(sections=("closed",), rounds=3, connections=(64,))
    on_nginx = [step for step in steps(scope, GENERATORS) if step.server.name == "nginx"]
    rounds = [
        [step.generator.name for step in on_nginx if step.round == number] for number in range(3)
    ]
    assert sorted(rounds[0]) == sorted(rounds[1]) == sorted(rounds[2])
    assert len(set(rounds[0])) == len(rounds[0])
    assert [names[0] for names in rounds] == ["loadgen", "wrk", "h2load"]
    assert [step.round for step in on_nginx] == sorted(step.round for step in on_nginx)


def test_generators_are_asked_only_for_what_they_can_do() -> None:
    planned = steps(Scope(), GENERATORS)
    closed = {step.generator.name for step in planned if step.section == "closed"}
    paced = {step.generator.name for step in planned if step.load.rate_per_s}
    random = {step.generator.name for step in planned if step.load.arrivals == "poisson"}
    assert closed == set(DIALECTS) - {"wrk2"}
    assert paced == set(DIALECTS) - {"wrk", "ab", "floor"}
    assert random == {"loadgen"}
    # ab would wait for each connection to close.
    assert not [
        step for step in planned if step.generator.name == "ab" and step.server.name != "nginx"
    ]


def test_loadgen_paces_with_and_without_spinning() -> None:
    planned = steps(Scope(sections=("open",), open_rounds=2, rates_per_s=(1_000,)), GENERATORS[:1])
    assert [(step.load.arrivals, step.load.spin) for step in planned if step.round == 0] == [
        ("constant", "60us"),
        ("constant", "0s"),
        ("poisson", "60us"),
        ("poisson", "0s"),
    ]
    # Each round has a schedule of its own, and all generators of a round the same one.
    assert all(step.load.seed == step.round for step in planned)
    assert describe(planned[0]).startswith(
        "open: loadgen, spin window 60us, 1,000/s constant, refsrv, 2500000ns, spinning throughout, 64"
    )


def test_loads_are_long_enough_for_each_generator() -> None:
    planned = steps(Scope(sections=("accuracy",), open_seconds=3), GENERATORS)
    assert {step.load.seconds for step in planned if step.generator.name == "wrk2"} == {13}
    assert {step.load.seconds for step in planned if step.generator.name == "oha"} == {3}


def test_a_server_that_never_stops_spinning_gets_no_real_time_priority() -> None:
    """The kernel would stop it for a twentieth of each second, and a client would be taken for
    late."""
    planned = steps(Scope(sections=("open", "accuracy")), GENERATORS[:2])
    spinning = {(step.section, step.load.rate_per_s) for step in planned if step.server.is_spinning}
    assert spinning == {("open", 1_000), ("open", 5_000), ("open", 20_000)}


def test_the_server_of_the_accuracy_sleeps_where_it_would_spin_throughout() -> None:
    planned = steps(Scope(sections=("accuracy",)), GENERATORS[:2])
    asked = {(step.load.rate_per_s, step.server.arguments[3], step.server.name) for step in planned}
    assert asked == {
        (1_000, "60us", "refsrv, 2ms, spinning 60us"),
        (5_000, "60us", "refsrv, 2ms, spinning 60us"),
        (20_000, "0s", "refsrv, 2ms, sleeping"),
    }


def test_windows_are_for_the_generators_that_can_be_told_one() -> None:
    planned = steps(
        Scope(sections=("open", "memory"), spins=("2ms", "0s"), rates_per_s=(1_000,)), GENERATORS
    )
    told = {
        (step.section, step.load.spin)
        for step in planned
        if step.generator.name == "loadgen" and step.load.rate_per_s
    }
    assert told == {("open", "2ms"), ("open", "0s"), ("memory", "0s")}
    assert {step.load.spin for step in planned if step.generator.name == "oha"} == {None}


def test_quick_is_a_few_minutes_and_all_is_under_an_hour() -> None:
    here = [one for one in GENERATORS if one.name not in ("wrk2", "zrk")]
    assert duration_s(steps(Scope().quick(), here)) < 6 * 60
    assert 10 * 60 < duration_s(steps(Scope(), here)) < 60 * 60


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_calls_name_the_url_the_connections_and_the_rate(name: str) -> None:
    dialect = DIALECTS[name]
    url = "http://127.0.0.1:8080/"
    for call, load in (
        (dialect.closed, Load(url, 50, 3)),
        (dialect.open_loop, Load(url, 50, 3, 700)),
    ):
        if call is not None:
            words = " ".join([*call(load), dialect.stdin(load)])
            assert url in words
            assert "50" in words
            assert ("700" in words or "14" in words.replace("=", " ").split()) == (
                load.rate_per_s is not None
            )


def test_rotation() -> None:
    assert rotated("abc", 4) == ["b", "c", "a"]
    assert rotated([], 3) == []


def test_a_program_is_given_by_name_and_path() -> None:
    given = read_given(f"before:loadgen={sys.executable}")
    assert (given.name, given.dialect.name) == ("before", "loadgen")
    assert read_given(f"wrk2={sys.executable}").dialect.name == "wrk2"


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("wrk", "not NAME=PATH"),
        ("mine=/bin/sh", "--generator-file"),
        ("wrk=/nowhere/wrk", "not an executable file"),
    ],
)
def test_what_is_given_wrongly_is_said(word: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_given(word)


def test_an_unknown_generator_can_be_described(tmp_path: Path) -> None:
    description = tmp_path / "mine.toml"
    description.write_text(
        f'name = "mine"\nprogram = "{sys.executable}"\nclosed = ["-u", "{{connections}}", '
        f'"{{url}}"]\n'
        'requests = \'answered: (\\d+)\'\nquantile_unit = "ms"\nquantiles = { "0.5" = \'p50 '
        "([\\d.]+)' }\n"
    )
    dialect = read_description(description).dialect
    assert dialect.closed is not None
    assert dialect.closed(Load("http://127.0.0.1:1/", 8, 1)) == ["-u", "8", "http://127.0.0.1:1/"]
    assert dialect.open_loop is None
    output = dialect.parse("answered: 1200\np50 1.5\n")
    assert (output.requests, output.quantiles_us) == (1200, {"0.5": 1500.0})
    with pytest.raises(OutputError, match="the output of mine does not match"):
        dialect.parse("failed")
    description.write_text('name = "mine"\nprogram = "x"\nrequets = "y"\n')
    with pytest.raises(ValueError, match="unknown key requets, missing key requests"):
        read_description(description)


@pytest.mark.parametrize(
    ("changed", "to", "complaint"),
    [
        ("PROGRAM", "/nowhere/mine", "program '/nowhere/mine' does not exist or is not executable"),
        ("{connections}", "{users}", r"closed: unknown placeholder \{users\}; known are \{url\}"),
        ('["-u", "{connections}"]', '"-u {connections}"', "closed must be a list of words"),
        (
            "answered: (\\d+)",
            "answered: (",
            "requests: 'answered: \\(' is not a regular expression",
        ),
        ("answered: (\\d+)", "answered", "requests: 'answered' has no group"),
        ("p50 ([\\d.]+)", "p50 [", "quantile 0.5: 'p50 \\[' is not a regular expression"),
    ],
)
def test_a_description_that_is_wrong_is_refused_before_anything_runs(
    tmp_path: Path, changed: str, to: str, complaint: str
) -> None:
    right = (
        'name = "mine"\nprogram = "PROGRAM"\nclosed = ["-u", "{connections}"]\n'
        "requests = 'answered: (\\d+)'\nquantiles = { \"0.5\" = 'p50 ([\\d.]+)' }\n"
    )
    assert changed in right
    description = tmp_path / "mine.toml"
    description.write_text(right.replace(changed, to).replace("PROGRAM", sys.executable))
    with pytest.raises(ValueError, match=complaint):
        read_description(description)


def test_no_commit_is_named_outside_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert host.versions([])["wsgiload commit"] is None


def test_a_child_is_pinned_fed_and_its_time_is_its_own() -> None:
    core = min(os.sched_getaffinity(0))
    work = (
        "import os, sys, time\nend = time.process_time() + 0.2\nwhile time.process_time() < "
        "end: pass\n"
    )
    script = f"{work}print(sorted(os.sched_getaffinity(0)), sys.stdin.read())"
    usage = run_child(
        [sys.executable, "-c", script], Placement(core, False), stdin="fed", timeout_s=20
    )
    assert (usage.code, usage.stdout.decode()) == (0, f"[{core}] fed\n")
    assert usage.user_s + usage.system_s >= 0.2


def test_a_child_that_does_not_end_is_ended() -> None:
    core = min(os.sched_getaffinity(0))
    ticks: list[int] = []
    usage = run_child(["sleep", "60"], Placement(core, False), timeout_s=0.5, tick=ticks.append)
    assert usage.code == -9
    assert len(set(ticks)) == 1
    assert usage.wall_s < 10
