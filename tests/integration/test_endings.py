"""However a sweep ends, what was finished is kept and nothing is left behind."""

from __future__ import annotations

import os
import signal
import textwrap
import time
from collections.abc import Callable

import pytest

from .command import Command, Running, read_json, until
from .stored import only_run, rows, schema_errors

pytestmark = [pytest.mark.servers, pytest.mark.limits]

BRIEFLY = ("--warmup", "0s", "--cooldown", "0s", "--quiet")


def start_in_the_middle_of_the_second_cell(command: Command, limits: str = "strict") -> Running:
    """A sweep whose first cell is finished and whose second is under load."""
    words = (
        "--servers",
        "wsgiref",
        "--rates",
        "50,60,70",
        "--duration",
        "1s",
        "--warmup",
        "0s",
        "--cooldown",
        "0s",
    )
    running = command.start("sweep", *words, "--limits", limits)
    until(lambda: "[2/3]" in running.err, "the second cell")
    until(
        lambda: any("wsgiload.loads._driver" in line for line in command.processes().values()),
        "its load",
    )
    return running


def press_ctrl_c(running: Running) -> None:
    running.press_ctrl_c()


def terminate(running: Running) -> None:
    """What a service manager does: SIGTERM to the command alone."""
    os.kill(running.pid, signal.SIGTERM)


def hang_up(running: Running) -> None:
    """What a terminal does that is closed."""
    os.kill(running.pid, signal.SIGHUP)


each_request_to_end = pytest.mark.parametrize("ask", [press_ctrl_c, terminate, hang_up])


@each_request_to_end
@pytest.mark.parametrize("limits", ["strict", "none"])
def test_an_interrupt_keeps_the_finished_cells_and_leaves_nothing_running(
    command: Command, ask: Callable[[Running], None], limits: str
) -> None:
    running = start_in_the_middle_of_the_second_cell(command, limits)
    ask(running)
    done = running.end()
    assert done.code == 130
    assert "Traceback" not in done.err
    assert done.complaints == [f"wsgiload: interrupted; partial results are in {done.run_dir}"]
    command.require_nothing_left()
    assert done.run_dir == only_run(command)
    assert done.summary["status"] == read_json(done.run_dir / "run.json")["status"] == "interrupted"
    assert [cell["id"] for cell in done.summary["cells"]] == done.summary["order"][:1]
    assert done.summary["cells"][0]["outcomes"]["ok"] > 0
    assert {row["cell"] for row in rows(done.run_dir / "intervals.csv")} == set(
        done.summary["order"][:1]
    )
    assert schema_errors("summary-2", done.summary) == []
    assert (done.run_dir / "report.html").is_file()


# Slow only inside the server: the app is imported once before that, to see whether it can be.
SLOW_START = """
    import subprocess, sys, time

    if "gunicorn" in sys.modules:
        subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
        time.sleep(600)

    def app(environ, start_response):
        return []
"""
FAILS_UNDER_LOAD = """
    import os, subprocess

    def app(environ, start_response):
        subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
        os._exit(3)
"""


@each_request_to_end
@pytest.mark.parametrize("limits", ["strict", "none"])
def test_an_interrupt_while_a_server_starts_leaves_nothing_either(
    command: Command, ask: Callable[[Running], None], limits: str
) -> None:
    (command.folder / "slow.py").write_text(textwrap.dedent(SLOW_START))
    words = ("--servers", "gunicorn-sync", "--rates", 50, "--limits", limits)
    running = command.start("sweep", "slow:app", *words)
    until(
        lambda: any("sleep 600" in line for line in command.processes().values()),
        "a child of the app",
    )
    ask(running)
    assert running.end().code == 130
    command.require_nothing_left()


@pytest.mark.parametrize("limits", ["strict", "none"])
def test_a_server_that_fails_leaves_nothing_either(command: Command, limits: str) -> None:
    (command.folder / "fails.py").write_text(textwrap.dedent(FAILS_UNDER_LOAD))
    done = command.run(
        "sweep", "fails:app", "--servers", "wsgiref", "--rates", 50, "--limits", limits, *BRIEFLY
    )
    assert done.code == 97  # and nothing is left: `run` insists on that


@pytest.mark.parametrize("limits", ["strict", "none"])
def test_a_sweep_that_is_killed_leaves_no_server_and_no_group(
    command: Command, limits: str
) -> None:
    """The janitor is another process: it sees the end of the orchestrator, whatever ended it."""
    running = start_in_the_middle_of_the_second_cell(command, limits)
    assert (command.groups() != []) is (limits == "strict")
    os.kill(running.pid, signal.SIGKILL)
    assert running.end().code == -signal.SIGKILL
    killed = time.monotonic()
    until(lambda: command.processes() == {}, "the end of every process", timeout_s=20)
    assert time.monotonic() - killed < 5
    until(lambda: command.groups() == [], "the end of every group", timeout_s=20)
    summary = read_json(only_run(command) / "summary.json")
    assert [cell["id"] for cell in summary["cells"]] == summary["order"][:1]
    assert summary["status"] != "complete"
    until(lambda: command.temporary_files() == [], "the end of every folder", timeout_s=20)
