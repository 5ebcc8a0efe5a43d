"""The benchmark plan, generator command lines, and generators given by the user."""

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
    ("reruns", "shares", "superseded"),
    [
        (3, (0.3, 0.003, 0.0), [True, True, False]),
        (1, (0.3, 0.3), [True, False]),
        (0, (0.3,), [False]),
    ],
)
def test_a_run_disturbed_by_the_hypervisor_is_repeated(
    monkeypatch: pytest.MonkeyPatch, reruns: int, shares: tuple[float, ...], superseded: list[bool]
) -> None:
    steal_shares = iter(shares)
    monkeypatch.setattr(run, "_record", lambda *_: {"steal_share": next(steal_shares)})
    monkeypatch.setattr(run, "wait_until_quiet", lambda _: None)

    planned = steps(Scope(sections=("closed",), rounds=1, connections=(1,)), GENERATORS[:1])[:1]
    placement = Placement(0, real_time=False)
    records = list(carry_out(planned, Bench(placement, placement, reruns), lambda _: None))
    assert [bool(record.get("superseded")) for record in records] == superseded


def test_only_servers_that_always_spin_run_at_ordinary_priority(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real_time: dict[str, set[bool]] = {}

    def get(self: object, spec: ServerSpec, placement: Placement) -> NoReturn:
        real_time.setdefault(spec.name, set()).add(placement.real_time)
        raise ServerError("not started")

    monkeypatch.setattr(run._Servers, "get", get)

    scope = Scope(
        sections=("closed", "open", "accuracy"), rates_per_s=(1_000,), accuracy_rates_per_s=(1_000,)
    )
    planned = steps(scope, GENERATORS[:2])

    placement = Placement(0, real_time=True)
    assert all(
        record["failure"]
        for record in carry_out(planned, Bench(placement, placement), lambda _: None)
    )

    assert real_time == {
        "refsrv, fast": {True},
        "nginx": {True},
        "refsrv, 2500000ns, spinning throughout": {False},
        "refsrv, 2ms, spinning 60us": {True},
    }


def test_each_generator_runs_once_per_round_in_rotating_order() -> None:
    scope = Scope(sections=("closed",), rounds=3, connections=(64,))
    on_nginx = [step for step in steps(scope, GENERATORS) if step.server.name == "nginx"]
    rounds = [
        [step.generator.name for step in on_nginx if step.round == number] for number in range(3)
    ]

    assert sorted(rounds[0]) == sorted(rounds[1]) == sorted(rounds[2])
    assert len(set(rounds[0])) == len(rounds[0])
    assert [names[0] for names in rounds] == ["loadgen", "wrk", "h2load"]
    assert [step.round for step in on_nginx] == sorted(step.round for step in on_nginx)


def test_generators_get_only_loads_that_they_support() -> None:
    planned = steps(Scope(), GENERATORS)
    closed = {step.generator.name for step in planned if step.section == "closed"}
    paced = {step.generator.name for step in planned if step.load.rate_per_s}
    poisson = {step.generator.name for step in planned if step.load.arrivals == "poisson"}

    assert closed == set(DIALECTS) - {"wrk2"}
    assert paced == set(DIALECTS) - {"wrk", "ab", "floor"}
    assert poisson == {"loadgen"}
    # ab would wait for each connection to close.
    assert not [
        step for step in planned if step.generator.name == "ab" and step.server.name != "nginx"
    ]


def test_loadgen_runs_open_loops_with_and_without_spinning() -> None:
    planned = steps(Scope(sections=("open",), open_rounds=2, rates_per_s=(1_000,)), GENERATORS[:1])
    assert [(step.load.arrivals, step.load.spin) for step in planned if step.round == 0] == [
        ("constant", "60us"),
        ("constant", "0s"),
        ("poisson", "60us"),
        ("poisson", "0s"),
    ]

    # Each round has a different schedule, the same for all generators.
    assert all(step.load.seed == step.round for step in planned)
    assert describe(planned[0]).startswith(
        "open: loadgen, spin window 60us, 1,000/s constant, refsrv, 2500000ns, spinning throughout, 64"
    )


def test_loads_are_long_enough_for_each_generator() -> None:
    planned = steps(Scope(sections=("accuracy",), open_seconds=3), GENERATORS)
    assert {step.load.seconds for step in planned if step.generator.name == "wrk2"} == {13}
    assert {step.load.seconds for step in planned if step.generator.name == "oha"} == {3}


def test_servers_that_always_spin_get_no_real_time_priority() -> None:
    """Real-time throttling would stop the server for 5 % of each second, which would look like
    lateness of the client."""
    planned = steps(Scope(sections=("open", "accuracy")), GENERATORS[:2])
    spinning = {(step.section, step.load.rate_per_s) for step in planned if step.server.is_spinning}
    assert spinning == {("open", 1_000), ("open", 5_000), ("open", 20_000)}


def test_the_server_for_accuracy_sleeps_where_it_would_always_spin() -> None:
    planned = steps(Scope(sections=("accuracy",)), GENERATORS[:2])
    servers = {
        (step.load.rate_per_s, step.server.arguments[3], step.server.name) for step in planned
    }
    assert servers == {
        (1_000, "60us", "refsrv, 2ms, spinning 60us"),
        (5_000, "60us", "refsrv, 2ms, spinning 60us"),
        (20_000, "0s", "refsrv, 2ms, sleeping"),
    }


def test_only_generators_with_a_spin_option_get_a_spin_window() -> None:
    planned = steps(
        Scope(sections=("open", "memory"), spins=("2ms", "0s"), rates_per_s=(1_000,)), GENERATORS
    )
    windows = {
        (step.section, step.load.spin)
        for step in planned
        if step.generator.name == "loadgen" and step.load.rate_per_s
    }
    assert windows == {("open", "2ms"), ("open", "0s"), ("memory", "0s")}
    assert {step.load.spin for step in planned if step.generator.name == "oha"} == {None}


def test_a_quick_plan_takes_minutes_and_the_full_plan_under_an_hour() -> None:
    available = [generator for generator in GENERATORS if generator.name not in ("wrk2", "zrk")]
    assert duration_s(steps(Scope().quick(), available)) < 6 * 60
    assert 10 * 60 < duration_s(steps(Scope(), available)) < 60 * 60


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_command_lines_have_the_url_connections_and_rate(name: str) -> None:
    dialect = DIALECTS[name]
    url = "http://127.0.0.1:8080/"
    for command, load in (
        (dialect.closed, Load(url, 50, 3)),
        (dialect.open_loop, Load(url, 50, 3, 700)),
    ):
        if command is not None:
            text = " ".join([*command(load), dialect.stdin(load)])
            assert url in text
            assert "50" in text
            assert ("700" in text or "14" in text.replace("=", " ").split()) == (
                load.rate_per_s is not None
            )


def test_rotation() -> None:
    assert rotated("abc", 4) == ["b", "c", "a"]
    assert rotated([], 3) == []


def test_a_generator_is_given_by_name_and_path() -> None:
    generator = read_given(f"before:loadgen={sys.executable}")
    assert (generator.name, generator.dialect.name) == ("before", "loadgen")
    assert read_given(f"wrk2={sys.executable}").dialect.name == "wrk2"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("wrk", "not NAME=PATH"),
        ("mine=/bin/sh", "--generator-file"),
        ("wrk=/nowhere/wrk", "not an executable file"),
    ],
)
def test_an_invalid_generator_argument_is_rejected(argument: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_given(argument)


def test_a_generator_can_be_described_in_a_file(tmp_path: Path) -> None:
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
    ("old", "new", "message"),
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
def test_an_invalid_description_is_rejected_before_any_run(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    valid = (
        'name = "mine"\nprogram = "PROGRAM"\nclosed = ["-u", "{connections}"]\n'
        "requests = 'answered: (\\d+)'\nquantiles = { \"0.5\" = 'p50 ([\\d.]+)' }\n"
    )

    assert old in valid
    description = tmp_path / "mine.toml"
    description.write_text(valid.replace(old, new).replace("PROGRAM", sys.executable))

    with pytest.raises(ValueError, match=message):
        read_description(description)


def test_outside_a_repository_there_is_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert host.versions([])["wsgiload commit"] is None


def test_a_child_process_is_pinned_gets_stdin_and_its_cpu_time_is_measured() -> None:
    core = min(os.sched_getaffinity(0))
    work = (
        "import os, sys, time\nend = time.process_time() + 0.2\nwhile time.process_time() < "
        "end: pass\n"
    )
    script = f"{work}print(sorted(os.sched_getaffinity(0)), sys.stdin.read())"

    usage = run_child(
        [sys.executable, "-c", script], Placement(core, False), stdin="input", timeout_s=20
    )

    assert (usage.code, usage.stdout.decode()) == (0, f"[{core}] input\n")
    assert usage.user_s + usage.system_s >= 0.2


def test_a_child_process_is_killed_at_the_timeout() -> None:
    core = min(os.sched_getaffinity(0))
    ticks: list[int] = []
    usage = run_child(["sleep", "60"], Placement(core, False), timeout_s=0.5, tick=ticks.append)
    assert usage.code == -9
    assert len(set(ticks)) == 1
    assert usage.wall_s < 10
