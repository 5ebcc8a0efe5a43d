"""Runs the rows of the kill table and checks the outcome of each.

A row is a step in the lifecycle of a cell and the processes that are killed while the orchestrator
is paused there. Every row resumes a copy of the same run, which has one finished and one
unfinished cell.
"""

from __future__ import annotations

import io
import itertools
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from wsgiload import cli
from wsgiload.limits.select import bases_of
from wsgiload.limits.sweep import process_stat, remove_directory
from wsgiload.results.integrity import read_load
from wsgiload.scratch import SHARED_MEMORY, scratch_prefix

from .command import SCRIPT, Command, read_json, until

ROLES = ("janitor", "server", "generator", "orchestrator")
SERVER = "waitress"
CELLS = (f"{SERVER}@40#1", f"{SERVER}@50#1")
BRIEFLY = ("--duration", "1s", "--warmup", "0s", "--cooldown", "0s", "--settle", "0s", "--quiet")
STOPPING = Path(__file__).with_name("stopping.py")
CLEANUP_TIMEOUT_S = 5.0
# One row in five resumes the run afterwards; the others only run the cleanup that every command
# begins with.
ROWS_PER_RESUMED = 5
STARTUP_CLEANUP = """
from wsgiload.limits import Limits, select_backend
from wsgiload.scratch import remove_stale_scratch
remove_stale_scratch()
select_backend(Limits())
"""
# One report at a time, because the redirection of stdout and stderr is global.
REPORT_LOCK = threading.Lock()
# Long enough for a busy host.
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Row:
    """The processes to kill at a step, in this order."""

    step: str
    killed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.step} {'+'.join(self.killed)}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The problems found after a row, and the seconds until nothing was left."""

    row: Row
    problems: tuple[str, ...]
    seconds: float


def rows_at(step: str, living: frozenset[str]) -> Iterator[Row]:
    """Every subset of the processes alive at a step, killed with the janitor first and the
    orchestrator last. If other processes are alive, these two are also killed in reverse order."""
    present = [role for role in ROLES if role in living]
    for count in range(1, len(present) + 1):
        for killed in itertools.combinations(present, count):
            yield Row(step, killed)
    if {"janitor", "orchestrator"} < living:
        yield Row(step, ("orchestrator", "janitor"))


def roles_of(processes: Mapping[int, str], orchestrator: int) -> dict[str, list[int]]:
    """The process IDs by role; processes without another role belong to the server."""
    roles: dict[str, list[int]] = {}
    for pid, line in processes.items():
        if pid == orchestrator:
            role = "orchestrator"
        elif "limits/sweep.py" in line:
            role = "janitor"
        elif "wsgiload.loads._driver" in line:
            role = "generator"
        else:
            role = "server"
        roles.setdefault(role, []).append(pid)
    return roles


class PausedSweep:
    """A sweep that pauses at one step, or at every step."""

    def __init__(self, command: Command, place: Place, step: str, run: Path) -> None:
        self.command = command
        self._file = command.folder / "step"
        program = place.program(sys.executable, "-P", str(STOPPING), step, str(self._file))
        self.running = command.start("sweep", "--quiet", "--resume", run, program=program)

    def wait(self) -> str | None:
        """Wait for the next pause and return its step; None if the sweep has ended."""
        until(
            lambda: self._file.exists() or self.running.process.poll() is not None,
            "the step",
            TIMEOUT_S,
        )
        return self._file.read_text() if self._file.exists() else None

    def proceed(self) -> None:
        self._file.unlink()

    def roles(self) -> dict[str, list[int]]:
        return roles_of(self.command.processes(), self.running.pid)

    def kill(self, roles: tuple[str, ...]) -> None:
        """Kill the processes of these roles in this order, each after the previous one is dead."""
        pids_by_role = self.roles()
        for role in roles:
            for pid in pids_by_role.get(role, ()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in pids_by_role.get(role, ()):
                until(lambda pid=pid: is_dead(pid), f"the end of {role}", TIMEOUT_S)  # type: ignore[misc]


def is_dead(pid: int) -> bool:
    stat = process_stat(pid)
    return stat is None or stat[0] in "ZX"


@dataclass(frozen=True, slots=True)
class Place:
    """The control groups in which a row runs. Parallel rows need separate ones, so that no row
    cleans up after another; without any, a row runs in those of this process."""

    groups: tuple[Path, ...] = ()

    def program(self, *args: str) -> list[str]:
        """A command line that runs the program in these control groups."""
        entries = [str(group / "cgroup.procs") for group in self.groups]
        return ["/bin/sh", "-c", ENTER_SCRIPT, "enter", *entries, "--", *args]


ENTER_SCRIPT = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 126; shift; done; shift; exec "$@"'


@contextmanager
def separate_place(number: int) -> Iterator[Place]:
    """Create separate control groups, and remove them afterwards."""
    groups = []
    for base in bases_of():
        group = base / f"kill-table-{os.getpid()}-{number}"
        group.mkdir()
        groups.append(group)
        for name in ("cpuset.mems", "cpuset.cpus"):  # an empty v1 cpuset accepts no process
            if (group / name).exists():
                (group / name).write_text((base / name).read_text())
    try:
        yield Place(tuple(groups))
    finally:
        for group in groups:
            until(lambda group=group: remove_directory(group), f"the end of {group}")  # type: ignore[misc]


def make_template(command: Command) -> Path:
    """A run that was killed in its second cell."""
    args = ("--servers", SERVER, "--rates", "40,50", *BRIEFLY)
    running = command.start("sweep", *args)
    (runs,) = [command.folder / ".wsgiload" / "runs"]
    until(lambda: [len(cells_of(run)) for run in runs.glob("*")] == [1], "the first cell")

    os.kill(running.pid, signal.SIGKILL)
    running.end()
    until(lambda: leftovers(command, running.pid) == [], "the cleanup")

    (run,) = runs.iterdir()
    return run


def cells_of(run: Path) -> list[str]:
    """The finished cells of a run."""
    try:
        return [cell["id"] for cell in read_json(run / "summary.json")["cells"]]
    except FileNotFoundError:
        return []


def leftovers(command: Command, pid: int) -> list[str]:
    """The remaining processes, control groups and temporary files."""
    shared = SHARED_MEMORY.glob(f"{scratch_prefix(pid)}*")
    paths = [*command.groups(), *shared]
    return [*command.processes().values(), *map(str, paths), *command.temporary_files()]


def run_row(
    row: Row, template: Path, folder: Path, place: Place, *, is_resumed: bool
) -> Outcome | None:
    """Run one row; None if one of its processes was not alive at that step this time."""
    command = Command(folder)
    run = folder / "run"
    shutil.copytree(template, run)
    try:
        paused = PausedSweep(command, place, row.step, run)
        if paused.wait() is None or not set(row.killed) <= set(paused.roles()):
            return None
        paused.kill(row.killed)
        return check_outcome(row, paused, run, place, is_resumed=is_resumed)
    finally:
        command.clean_up()
        until(lambda: command.processes() == {}, "the end of every process")
        shutil.rmtree(folder)


def check_outcome(
    row: Row, paused: PausedSweep, run: Path, place: Place, *, is_resumed: bool
) -> Outcome:
    problems, finished = [], cells_of(run)
    is_killed = "orchestrator" in row.killed
    if not is_killed:
        paused.proceed()
    result = paused.running.end(TIMEOUT_S)
    if not is_killed and (result.code not in (0, 97, 98) or "Traceback" in result.err):
        problems.append(f"exit code {result.code}: {result.err[-2000:]}")

    started = time.monotonic()
    both = {"orchestrator", "janitor"} <= set(row.killed)
    remaining = wait_for_cleanup(paused, only_processes=both)
    seconds = time.monotonic() - started
    if remaining:
        problems.append(f"left after {CLEANUP_TIMEOUT_S} s: {remaining}")

    if both:
        problems += run_next_command(paused, run, place, is_resumed=is_resumed)
    problems += check_stored_cells(run, finished)
    return Outcome(row, tuple(problems), seconds)


def wait_for_cleanup(paused: PausedSweep, *, only_processes: bool) -> list[str]:
    """Wait until nothing is left; returns the leftovers at the timeout."""
    command, pid = paused.command, paused.running.pid
    deadline = time.monotonic() + CLEANUP_TIMEOUT_S

    def find_leftovers() -> list[str]:
        lines = list(command.processes().values())
        return lines if only_processes else leftovers(command, pid)

    while (remaining := find_leftovers()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return remaining


def run_next_command(
    paused: PausedSweep, run: Path, place: Place, *, is_resumed: bool
) -> list[str]:
    """The next command removes the leftovers if the janitor was killed, too; if it resumes the run,
    it completes the run."""
    command, pid = paused.command, paused.running.pid
    # A sweep that was killed during its last cleanup is complete.
    is_resumed = is_resumed and read_json(run / "run.json")["status"] != "complete"
    if is_resumed:
        program = place.program(str(SCRIPT))
        result = command.start("sweep", "--quiet", "--resume", run, program=program).end()
    else:
        result = command.start(program=place.program(sys.executable, "-c", STARTUP_CLEANUP)).end()

    if result.code not in (0, 98) or "Traceback" in result.err:
        return [f"the next command ended with exit code {result.code}: {result.err[-2000:]}"]
    if is_resumed and sorted(cells_of(run)) != sorted(CELLS):
        return [f"resumed with the cells {cells_of(run)}"]
    remaining = leftovers(command, pid)
    return [f"left after the next command: {remaining}"] if remaining else []


def check_stored_cells(run: Path, finished: list[str]) -> list[str]:
    """Finished cells are still stored, and all stored files are intact."""
    out, err = io.StringIO(), io.StringIO()
    with REPORT_LOCK, redirect_stdout(out), redirect_stderr(err):
        code = cli.run(["report", str(run)])
    messages = err.getvalue()

    problems = [f"the report: {code}, {messages}"] if code or messages else []
    problems += [f"not stored: {cell}" for cell in finished if cell not in cells_of(run)]
    for cell in cells_of(run):
        if (run / "load" / f"{cell}.json").exists():
            read_load(run / "load" / f"{cell}.json")
    return problems


def record_steps(template: Path, folder: Path, place: Place) -> list[tuple[str, frozenset[str]]]:
    """Every step in order, with the roles of the processes that are alive there."""
    command = Command(folder)
    shutil.copytree(template, folder / "run")
    paused, steps = PausedSweep(command, place, "every", folder / "run"), []
    try:
        while (step := paused.wait()) is not None:
            steps.append((step, frozenset(paused.roles())))
            paused.proceed()
        result = paused.running.end(TIMEOUT_S)
        assert result.code in (0, 98), result.err
        assert leftovers(command, paused.running.pid) == []
    finally:
        command.clean_up()
    return steps


def run_rows(rows: Sequence[Row], template: Path, folder: Path, jobs: int) -> list[Outcome | None]:
    """Run all rows, ``jobs`` at a time."""
    free_places: SimpleQueue[Place] = SimpleQueue()

    def run_one(number: int, row: Row) -> Outcome | None:
        place = free_places.get()
        try:
            row_folder, is_resumed = folder / f"row-{number}", number % ROWS_PER_RESUMED == 0
            outcome = run_row(row, template, row_folder, place, is_resumed=is_resumed)
            problems = ["skipped"] if outcome is None else outcome.problems
            sys.stdout.write(f"{number + 1} of {len(rows)}: {row}: {problems or 'nothing left'}\n")
            sys.stdout.flush()
            return outcome
        finally:
            free_places.put(place)

    with ExitStack() as stack:
        for number in range(jobs):
            free_places.put(stack.enter_context(separate_place(number)) if jobs > 1 else Place())
        with ThreadPoolExecutor(jobs) as pool:
            try:
                return list(pool.map(run_one, range(len(rows)), rows))
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)
                raise
