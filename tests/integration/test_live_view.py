"""The live view on a terminal: what it shows, how it restores the terminal, and where it is
disabled."""

from __future__ import annotations

import re
import termios
from pathlib import Path

import pytest

from wsgiload.host.cpus import CpuPlan, available_cpus
from wsgiload.loads.drive import ProgressFile, drive
from wsgiload.loads.handle import Handle
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.request import Request
from wsgiload.units import NS_PER_S

from .command import SCRIPT, Command
from .pseudo_terminal import Terminal
from .target import CountingServer

LINE_COUNT = 30
SWEEP = ("sweep", "--servers", "wsgiref,waitress", "--rates", "200", "--duration", "6s")
BRIEFLY = ("--warmup", "1s", "--cooldown", "0s", "--limits", "best-effort")
SCREENS = Path(__file__).parents[2] / "target" / "live"


def start(command: Command, size: tuple[int, int], *words: object, **variables: str) -> Terminal:
    inherited = {
        name: value
        for name, value in command.environment.items()
        if name not in ("CI", "NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR")
    }
    return Terminal(
        [SCRIPT, *words], command.folder, inherited | {"TERM": "xterm-256color"} | variables, size
    )


def rows_of(terminal: Terminal) -> dict[str, str]:
    """The lines of the view, by label."""
    labels = ("now", "next", "rate", "latency", "failures", "server", "standing")
    lines = [line.split(maxsplit=1) for line in terminal.visible_lines if line]
    return {words[0]: words[1] for words in lines if len(words) == 2 and words[0] in labels}


def require_measured(terminal: Terminal) -> dict[str, str]:
    """Wait until the view of a measurement shows all figures; returns its lines."""

    def is_complete() -> bool:
        shown = rows_of(terminal)
        return (
            "measuring" in shown.get("now", "")
            and "p50" in shown.get("latency", "")
            and "–" not in shown.get("rate", "–")
        )

    assert terminal.wait_until(is_complete), "\n".join(terminal.visible_lines)
    return rows_of(terminal)


def store_screen(terminal: Terminal, name: str) -> None:
    """Store the text on the screen for inspection."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    text = "\n".join(terminal.visible_lines).rstrip()
    (SCREENS / f"{name}.txt").write_text(text + "\n")


def require_removed(terminal: Terminal) -> None:
    """No line of the view is left, and the cursor is visible."""
    remaining = [
        line for line in terminal.all_lines if re.match(r"(now|next|latency|failures) ", line)
    ]
    assert remaining == []
    assert not terminal.screen.cursor.hidden


@pytest.mark.servers
@pytest.mark.parametrize("columns", [80, 200])
def test_the_view_follows_a_sweep(command: Command, columns: int) -> None:
    terminal = start(command, (columns, LINE_COUNT), *SWEEP, *BRIEFLY)

    shown = require_measured(terminal)
    store_screen(terminal, f"sweep-{columns}")
    assert re.fullmatch(
        r"\[1/2\] (wsgiref|waitress)\S* at 200/s, run 1: measuring, \d of 6 s", shown["now"]
    )
    assert re.fullmatch(r"(wsgiref|waitress)\S* at 200/s, run 1, about \d+ s left", shown["next"])
    offered = re.match(r"offered ([\d,]+)/s, achieved ([\d,]+)/s", shown["rate"])
    assert offered is not None and 100 < int(offered[1]) < 400
    assert re.match(r"p50 [\d.,]+ (µs|ms|s), p99 .* \([\d,]+ requests so far\)", shown["latency"])
    assert shown["failures"]
    assert re.match(r"CPU [\d.–]+ (of 1 core|cores), memory ", shown["server"])
    assert max(map(len, terminal.visible_lines)) <= columns

    assert terminal.end() in (0, 98)
    require_removed(terminal)
    results = [line for line in terminal.all_lines if re.match(r"\[[12]/2\] ", line)]
    assert len(results) == 2 and all(" … p" in line for line in results), results


def test_the_view_of_a_load_restores_the_terminal_after_ctrl_c(
    command: Command, target: CountingServer
) -> None:
    words = ("load", target.url, "-R", "100", "-d", "60s")
    terminal = start(command, (80, LINE_COUNT), *words)
    before = termios.tcgetattr(terminal.descriptor)

    shown = require_measured(terminal)
    store_screen(terminal, "load-80")
    assert shown["now"].startswith(f"sending load to {target.url}: measuring, ")
    assert "server" not in shown
    assert terminal.screen.cursor.hidden

    terminal.press_ctrl_c()
    terminal.wait_until(lambda: b"\x1b[?25h" in terminal.output)
    after = termios.tcgetattr(terminal.descriptor)
    assert terminal.end() == 130
    assert after == before
    require_removed(terminal)


def test_the_view_adapts_to_a_resized_terminal(command: Command, target: CountingServer) -> None:
    words = ("load", target.url, "-R", "100", "-d", "6s")
    terminal = start(command, (120, LINE_COUNT), *words)
    require_measured(terminal)

    for columns in (60, 100):
        terminal.resize(columns, LINE_COUNT)
        seen = len(terminal.output)
        terminal.wait_until(lambda seen=seen: len(terminal.output) > seen + 200)
        assert rows_of(terminal)["now"].startswith("sending load to ")
        assert sum(line.startswith("now ") for line in terminal.visible_lines) == 1

    assert terminal.end() in (0, 98)
    require_removed(terminal)


def test_the_view_follows_a_capacity_search(command: Command, target: CountingServer) -> None:
    words = ("capacity", "--url", target.url, "--slo", "p99<900ms", "--duration", "3s")
    terminal = start(command, (80, LINE_COUNT), *words, "--warmup", "0s", "--settle", "0s")

    shown = require_measured(terminal)
    assert shown["now"].startswith("url at ") and "trial 1, closed loop: measuring" in shown["now"]
    assert shown["rate"].endswith("/s") and "in a closed loop" in shown["rate"]

    terminal.press_ctrl_c()
    assert terminal.end() == 130
    require_removed(terminal)


@pytest.mark.parametrize("variables", [{"CI": "true"}, {"TERM": "dumb"}])
def test_there_is_no_view_in_ci_or_on_a_dumb_terminal(
    command: Command, target: CountingServer, variables: dict[str, str]
) -> None:
    words = ("load", target.url, "-R", "100", "-d", "1s")
    terminal = start(command, (80, LINE_COUNT), *words, **variables)

    assert terminal.end() in (0, 98)
    assert b"\x1b[?25l" not in terminal.output
    assert any(line.startswith("sending load to ") for line in terminal.all_lines)


def test_no_color_disables_colors(command: Command, target: CountingServer) -> None:
    words = ("load", target.url, "-R", "100", "-d", "2s")
    terminal = start(command, (80, LINE_COUNT), *words, NO_COLOR="1")
    require_measured(terminal)

    assert terminal.end() in (0, 98)
    assert not re.search(rb"\x1b\[[\d;]*3\d", terminal.output), "the output sets a foreground color"


@pytest.mark.parametrize(("threads", "processes"), [(1, 1), (2, 1), (1, 2)])
def test_the_last_progress_of_a_load_matches_its_report(
    target: CountingServer, threads: int, processes: int
) -> None:
    load = LoadSettings(duration_ns=NS_PER_S, warmup=0.25, threads=threads, processes=processes)
    plan = load_plan(target.url, Request(), load, Level(rate_per_s=400.0), 1)
    cores = CpuPlan((), available_cpus(), shared_cores=True)

    with ProgressFile() as file:
        assert file.read(threads * processes) is None, "no progress before the load"
        if processes == 1:
            report = drive(plan, cores, progress=file)
        else:
            report = Handle(plan, file).result().document
        shown = file.read(threads * processes)

    assert shown is not None
    assert shown.outcomes == report.outcomes
    assert shown.ended == report.outcomes.scheduled <= shown.answered == target.response_count
    assert shown.measure_to_ns - shown.measure_from_ns == NS_PER_S
    assert report.response_time_ns is not None and shown.p50_ns is not None
    median_ns = report.response_time_ns.quantiles["0.5"]
    assert abs(shown.p50_ns - median_ns) < 0.05 * median_ns
