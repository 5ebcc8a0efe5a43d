"""Stored sweeps that repeat one another show how much sessions differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import stdev

import msgspec
import pytest

from tests.simulated_sessions import World, percent_different
from wsgiload.analysis.repeats import NOTHING_LEARNED, Session, learn, session_of
from wsgiload.cli import run
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.codec import encode
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.statistics.sessions import ASSUMED, NONE, Scatter, pooled, scatter_of, spread_of

from .invented_cells import experiment, runs_of
from .report_fixture import store_summary, summary_of

replace = msgspec.structs.replace
HOST = HostFacts(cpu_model="A", cpus=2, kernel="6.1", machine="x86_64", wsgiload="0.1.0")
COMMIT = "a" * 40


# --- how often unchanged servers are called different


@pytest.mark.parametrize("between", [0.05, 0.1])
@pytest.mark.parametrize(("repeats", "most"), [(0, 8), (2, 5)])
def test_unchanged_servers_rarely_differ(between: float, repeats: int, most: int) -> None:
    """In any of three figures of three servers at three levels; `make simulate` has more. The limit
    is one of 30 sweeps above the required percentage."""
    for is_common in (False, True):
        world = World(between, is_common=is_common)
        assert percent_different(world, 30, repeats) <= most + 100 / 30


def test_a_doubled_p99_is_found_and_without_the_spread_everything_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert percent_different(World(0.05, change=math.log(2)), 20, 2, only_first=True) >= 90
    monkeypatch.setattr("wsgiload.analysis.repeats.spread_of", lambda own, of_host: NONE)
    assert percent_different(World(0.1), 20, 0) >= 80


# --- the arithmetic


def test_the_scatter_of_sessions_excludes_the_error_within_them() -> None:
    means = [0.0, 0.2, 0.1, 0.3]
    exact = scatter_of([(mean, 0.0) for mean in means])
    assert exact.squares / exact.degrees == pytest.approx(stdev(means) ** 2)
    noisy = scatter_of([(mean, 0.004) for mean in means])
    assert noisy.squares / noisy.degrees == pytest.approx(stdev(means) ** 2 - 0.004)
    assert scatter_of([(0.5, 0.1)]) == Scatter()


def test_without_repeats_the_spread_is_assumed_and_with_many_it_is_measured() -> None:
    assert (spread_of(Scatter(), Scatter()).deviation, ASSUMED) == (0.1, 0.1)
    many = scatter_of([(0.3 * (-1) ** number, 0.0) for number in range(400)])
    spread = spread_of(many, pooled([[many]]))
    assert spread.deviation == pytest.approx(0.3, rel=0.02)
    assert (spread.sessions, round(spread.degrees)) == (400, 407)


def test_a_cell_without_repeats_borrows_from_its_host() -> None:
    other = scatter_of([(0.0, 0.0), (0.0, 0.0), (0.0, 0.0)])
    spread = spread_of(Scatter(), pooled([[other, other]]))
    assert spread.deviation == pytest.approx(ASSUMED * math.sqrt(4 / 6))
    assert (spread.sessions, spread.degrees) == (3, 36 / 2)


# --- which sweeps repeat one another


def session(
    p99_ns: float = 20e6,
    host: HostFacts = HOST,
    version: str = "3.0.2",
    *,
    is_bundled: bool = False,
    cell_s: float = 20,
    **facts: object,
) -> Session:
    cells = [replace(one, version=version, duration_s=cell_s) for one in runs_of("a", [p99_ns] * 6)]
    summary = summary_of(cells, **({"runs": 6, "app_revision": COMMIT} | facts))
    return session_of(summary, host, is_bundled=is_bundled)


def learned(*sessions: Session) -> tuple[int, float]:
    """From how many sessions p99 of the first one is known, and its spread."""
    first, *others = sessions
    [level] = {cell.level for cell in first.means}
    spread = learn(first, others).at(level, "p99")
    return spread.sessions, spread.deviation


def test_repeated_sweeps_are_learned_from() -> None:
    slower, renamed = session(20e6 * math.exp(0.6)), session(name="other name")
    # The rates that closed loops find, and their time, affect both.
    race = session(planned_blocks=43.2, duration_s=18.6)
    few, spread = learned(session(), slower, renamed, race)
    assert few == 4 and spread > 0.2


@pytest.mark.parametrize(
    "other",
    [
        session(99e6, cpus=2.0),
        session(99e6, app_revision="b" * 40),
        session(99e6, app_revision=None),
        session(99e6, version="4"),
        session(99e6, cell_s=5),
        session(99e6, replace(HOST, wsgiload="0.2.0")),
        session(99e6, replace(HOST, kernel="6.12")),
    ],
    ids=["plan", "commit", "unknown commit", "server", "duration", "wsgiload", "host"],
)
def test_changed_sweeps_are_not_learned_from(other: Session) -> None:
    assert learned(session(), other) == (0, ASSUMED)


@pytest.mark.parametrize("revision", [None, f"{COMMIT}+changes"])
def test_an_app_that_may_have_changed_teaches_nothing(revision: str | None) -> None:
    unknown = session(app_revision=revision)
    assert learned(unknown, unknown, unknown) == (0, ASSUMED)
    bundled = session(app_revision=None, is_bundled=True)
    assert learned(bundled, bundled)[0] == 2


def test_repeats_of_other_sweeps_on_the_host_count_for_a_new_one() -> None:
    others = [session(20e6 * math.exp(0.5 * number), cpus=2.0) for number in (0, 1, 2)]
    count, spread = learned(session(), *others)
    assert count == 3 and spread > 0.2
    assert not NOTHING_LEARNED.own


# --- the commands


Store = Callable[[str, Sequence[CellResult]], Path]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Stores a sweep on a later day than the one before."""

    def write(name: str, cells: Sequence[CellResult]) -> Path:
        folder = tmp_path / name
        day = 1 + len(list(tmp_path.iterdir()))
        folder.mkdir()
        store_summary(folder, summary_of(cells, runs=6, app_revision=COMMIT))
        info = RunInfo(
            schema_version=1,
            started_utc=f"2026-11-{day:02}T09:30:00+00:00",
            status="complete",
            plan=msgspec.Raw(b"{}"),
            host=HOST,
        )
        (folder / "run.json").write_text(encode(info))
        return folder

    return write


def measured(seed: int, p99_ns: float = 20e6) -> list[CellResult]:
    return experiment(seed, {"a": p99_ns}, run_effect=0.01)


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert run([str(word) for word in words]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_compare_learns_from_the_runs_beside_the_compared_ones(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    first = store("first", measured(1))
    second = store("second", measured(2, 23e6))
    assert "10 % between sessions, assumed" in said(capsys, "compare", first, second)

    for number in range(9):
        store(f"repeat-{number}", measured(10 + number))
    (store("damaged", measured(3)) / "summary.json").write_text("{")
    text = said(capsys, "compare", first, second)
    assert " the first run's (including 3.1 % between sessions, from 10 repeated runs)" in text
    assert "no significant" in said(capsys, "compare", first, first.with_name("repeat-1"))


def test_the_trend_learns_from_its_own_runs(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [store(f"day-{day}", measured(day)) for day in range(9)]
    runs.append(store("last", measured(20, 25e6)))
    text = said(capsys, "report", "--trend", *runs)
    assert "1 of 1 cell changed from the first to the last run (1 slower)" in text
    assert "between sessions, from 9 repeated runs" in text
