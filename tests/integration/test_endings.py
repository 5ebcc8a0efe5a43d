"""However a sweep ends, it keeps the finished cells and leaves nothing behind."""

from __future__ import annotations

import os
import shlex
import signal
import textwrap
import time
from collections.abc import Callable

import pytest

from .command import Command, RunningCommand, read_json, until
from .stored import only_run, rows, schema_errors

pytestmark = [pytest.mark.servers, pytest.mark.limits]

BRIEFLY = ("--warmup", "0s", "--cooldown", "0s", "--quiet")


def start_until_second_cell(command: Command, limits: str = "strict") -> RunningCommand:
    """Start a sweep, and wait until its second cell is under load."""
    args = shlex.split("--servers wsgiref --rates 50,60,70")
    args += shlex.split(f"--duration 1s --warmup 0s --cooldown 0s --limits {limits}")
    running = command.start("sweep", *args)

    until(lambda: "[2/3]" in running.err, "the second cell")
    until(
        lambda: any("wsgiload.loads._driver" in line for line in command.processes().values()),
        "the load",
    )
    return running


def press_ctrl_c(running: RunningCommand) -> None:
    running.press_ctrl_c()


def terminate(running: RunningCommand) -> None:
    """Send SIGTERM to the command alone, as a service manager does."""
    os.kill(running.pid, signal.SIGTERM)


def hang_up(running: RunningCommand) -> None:
    """Send SIGHUP, as a closed terminal does."""
    os.kill(running.pid, signal.SIGHUP)


each_interrupt = pytest.mark.parametrize("interrupt", [press_ctrl_c, terminate, hang_up])


def test_a_killed_import_check_leaves_nothing_behind(command: Command) -> None:
    app = "import time; open('importing', 'w').close(); time.sleep(600)\n"
    (command.folder / "slow.py").write_text(app)
    running = command.start("sweep", "slow:app", "--servers", "wsgiref", "--rates", 50, *BRIEFLY)
    until(lambda: (command.folder / "importing").exists(), "the import")
    assert command.temporary_files()

    os.kill(running.pid, signal.SIGKILL)
    running.process.wait()
    until(lambda: not command.temporary_files() and not command.processes(), "the cleanup")


@each_interrupt
@pytest.mark.parametrize("limits", ["strict", "none"])
def test_an_interrupt_keeps_the_finished_cells_and_leaves_nothing_running(
    command: Command, interrupt: Callable[[RunningCommand], None], limits: str
) -> None:
    running = start_until_second_cell(command, limits)
    interrupt(running)
    result = running.end()

    assert result.code == 130
    assert "Traceback" not in result.err
    assert result.messages == [f"wsgiload: interrupted; partial results are in {result.run_dir}"]
    command.require_no_leftovers()

    assert result.run_dir == only_run(command)
    assert (
        result.summary["status"]
        == read_json(result.run_dir / "run.json")["status"]
        == "interrupted"
    )
    assert [cell["id"] for cell in result.summary["cells"]] == result.summary["order"][:1]
    assert result.summary["cells"][0]["outcomes"]["ok"] > 0
    assert {row["cell"] for row in rows(result.run_dir / "intervals.csv")} == set(
        result.summary["order"][:1]
    )
    assert schema_errors("summary-1", result.summary) == []
    assert (result.run_dir / "report.html").is_file()


# Slow only in the server, because wsgiload imports the app before to check it.
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


@each_interrupt
@pytest.mark.parametrize("limits", ["strict", "none"])
def test_an_interrupt_during_server_startup_leaves_nothing_behind(
    command: Command, interrupt: Callable[[RunningCommand], None], limits: str
) -> None:
    (command.folder / "slow.py").write_text(textwrap.dedent(SLOW_START))
    args = ("--servers", "gunicorn-sync", "--rates", 50, "--limits", limits)
    running = command.start("sweep", "slow:app", *args)
    until(
        lambda: any("sleep 600" in line for line in command.processes().values()),
        "a child of the app",
    )

    interrupt(running)
    assert running.end().code == 130
    command.require_no_leftovers()


@pytest.mark.parametrize("limits", ["strict", "none"])
def test_a_failed_server_leaves_nothing_behind(command: Command, limits: str) -> None:
    (command.folder / "fails.py").write_text(textwrap.dedent(FAILS_UNDER_LOAD))
    result = command.run(
        "sweep", "fails:app", "--servers", "wsgiref", "--rates", 50, "--limits", limits, *BRIEFLY
    )
    assert result.code == 97  # `run` also checks that nothing is left


@pytest.mark.parametrize("limits", ["strict", "none"])
def test_a_killed_sweep_leaves_no_process_and_no_control_group(
    command: Command, limits: str
) -> None:
    """The janitor, a separate process, cleans up when the orchestrator dies."""
    running = start_until_second_cell(command, limits)
    assert (command.groups() != []) is (limits == "strict")

    os.kill(running.pid, signal.SIGKILL)
    assert running.end().code == -signal.SIGKILL
    killed_s = time.monotonic()
    until(lambda: command.processes() == {}, "the end of every process", timeout_s=20)
    assert time.monotonic() - killed_s < 5
    until(lambda: command.groups() == [], "the removal of every control group", timeout_s=20)

    summary = read_json(only_run(command) / "summary.json")
    assert [cell["id"] for cell in summary["cells"]] == summary["order"][:1]
    assert summary["status"] != "complete"
    until(lambda: command.temporary_files() == [], "the removal of temporary files", timeout_s=20)
