"""The rows of the kill table, and what must hold after each.

A row is a step of a cell's life and the processes that are killed while the orchestrator stands
there. Every row resumes a copy of one run, of which a cell is finished and another is not.
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
SECONDS_TO_GO = 5.0
# Most rows are cleaned up by what every command does before it starts a server.
ROWS_PER_RESUMED = 5
HOW_COMMANDS_BEGIN = """
from wsgiload.limits import Limits, select_backend
from wsgiload.scratch import remove_stale_scratch
remove_stale_scratch()
select_backend(Limits())
"""
# One report at a time: they share standard output.
READING = threading.Lock()
# Whatever else the host does.
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Row:
    """Who is killed where, in this order."""

    step: str
    killed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.step} {'+'.join(self.killed)}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is wrong after a row, and how long it took until nothing was left."""

    row: Row
    complaints: tuple[str, ...]
    seconds: float


def rows_at(step: str, living: frozenset[str]) -> Iterator[Row]:
    """Every subset of those that live there, the janitor first and the orchestrator last; these two
    also the other way round where others are left."""
    present = [role for role in ROLES if role in living]
    for count in range(1, len(present) + 1):
        for killed in itertools.combinations(present, count):
            yield Row(step, killed)
    if {"janitor", "orchestrator"} < living:
        yield Row(step, ("orchestrator", "janitor"))


def roles_of(processes: Mapping[int, str], orchestrator: int) -> dict[str, list[int]]:
    """The living processes by what they are; whatever else there is belongs to the server."""
    found: dict[str, list[int]] = {}
    for pid, line in processes.items():
        if pid == orchestrator:
            role = "orchestrator"
        elif "limits/sweep.py" in line:
            role = "janitor"
        elif "wsgiload.loads._driver" in line:
            role = "generator"
        else:
            role = "server"
        found.setdefault(role, []).append(pid)
    return found


class Stopped:
    """A sweep that stands at one step, or at one after the other."""

    def __init__(self, command: Command, place: Place, step: str, run: Path) -> None:
        self.command = command
        self._file = command.folder / "step"
        program = place.program(sys.executable, "-P", str(STOPPING), step, str(self._file))
        self.running = command.start("sweep", "--quiet", "--resume", run, program=program)

    def wait(self) -> str | None:
        """The step where it stands now; None where it has ended."""
        until(
            lambda: self._file.exists() or self.running.process.poll() is not None,
            "the step",
            PATIENCE_S,
        )
        return self._file.read_text() if self._file.exists() else None

    def go_on(self) -> None:
        self._file.unlink()

    def roles(self) -> dict[str, list[int]]:
        return roles_of(self.command.processes(), self.running.pid)

    def kill(self, roles: tuple[str, ...]) -> None:
        """In this order: each has died before the next is killed."""
        found = self.roles()
        for role in roles:
            for pid in found.get(role, ()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in found.get(role, ()):
                until(lambda pid=pid: is_dead(pid), f"the end of {role}", PATIENCE_S)  # type: ignore[misc]


def is_dead(pid: int) -> bool:
    stat = process_stat(pid)
    return stat is None or stat[0] in "ZX"


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows are run: in control groups of their own, so that no other command removes what one
    of them left, or where this process is."""

    groups: tuple[Path, ...] = ()

    def program(self, *words: str) -> list[str]:
        """The command, run here."""
        entries = [str(group / "cgroup.procs") for group in self.groups]
        return ["/bin/sh", "-c", ENTER_SCRIPT, "enter", *entries, "--", *words]


ENTER_SCRIPT = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 126; shift; done; shift; exec "$@"'


@contextmanager
def place_of_its_own(number: int) -> Iterator[Place]:
    """Such a place, gone at the end of the block."""
    made = []
    for base in bases_of():
        group = base / f"kill-table-{os.getpid()}-{number}"
        group.mkdir()
        made.append(group)
        for name in ("cpuset.mems", "cpuset.cpus"):  # without, nothing may enter a v1 cpuset
            if (group / name).exists():
                (group / name).write_text((base / name).read_text())
    try:
        yield Place(tuple(made))
    finally:
        for group in made:
            until(lambda group=group: remove_directory(group), f"the end of {group}")  # type: ignore[misc]


def make_template(command: Command) -> Path:
    """A run that was killed after its first cell, in the second."""
    words = ("--servers", SERVER, "--rates", "40,50", *BRIEFLY)
    running = command.start("sweep", *words)
    (runs,) = [command.folder / ".wsgiload" / "runs"]
    until(lambda: [len(cells_of(run)) for run in runs.glob("*")] == [1], "the first cell")
    os.kill(running.pid, signal.SIGKILL)
    running.end()
    until(lambda: leftovers(command, running.pid) == [], "the end of everything")
    (run,) = runs.iterdir()
    return run


def cells_of(run: Path) -> list[str]:
    """The finished cells of a run."""
    try:
        return [cell["id"] for cell in read_json(run / "summary.json")["cells"]]
    except FileNotFoundError:
        return []


def leftovers(command: Command, pid: int) -> list[str]:
    """Processes, groups and folders that are still there."""
    shared = SHARED_MEMORY.glob(f"{scratch_prefix(pid)}*")
    others = [*command.groups(), *shared]
    return [*command.processes().values(), *map(str, others), *command.temporary_files()]


def carry_out(
    row: Row, template: Path, folder: Path, place: Place, *, is_resumed: bool
) -> Outcome | None:
    """Kill, and look what is left; None where one of them does not live at that step this time."""
    command = Command(folder)
    run = folder / "run"
    shutil.copytree(template, run)
    try:
        stopped = Stopped(command, place, row.step, run)
        if stopped.wait() is None or not set(row.killed) <= set(stopped.roles()):
            return None
        stopped.kill(row.killed)
        return judge(row, stopped, run, place, is_resumed=is_resumed)
    finally:
        command.clean_up()
        until(lambda: command.processes() == {}, "the end of every process")
        shutil.rmtree(folder)


def judge(row: Row, stopped: Stopped, run: Path, place: Place, *, is_resumed: bool) -> Outcome:
    complaints, finished = [], cells_of(run)
    is_killed = "orchestrator" in row.killed
    if not is_killed:
        stopped.go_on()
    done = stopped.running.end(PATIENCE_S)
    if not is_killed and (done.code not in (0, 97, 98) or "Traceback" in done.err):
        complaints.append(f"exit code {done.code}: {done.err[-2000:]}")

    began = time.monotonic()
    both = {"orchestrator", "janitor"} <= set(row.killed)
    left = wait_until_gone(stopped, only_processes=both)
    seconds = time.monotonic() - began
    if left:
        complaints.append(f"left after {SECONDS_TO_GO} s: {left}")
    if both:
        complaints += next_command(stopped, run, place, is_resumed=is_resumed)
    complaints += read_again(run, finished)
    return Outcome(row, tuple(complaints), seconds)


def wait_until_gone(stopped: Stopped, *, only_processes: bool) -> list[str]:
    """What is left after the time that there is."""
    command, pid = stopped.command, stopped.running.pid
    deadline = time.monotonic() + SECONDS_TO_GO

    def left() -> list[str]:
        lines = list(command.processes().values())
        return lines if only_processes else leftovers(command, pid)

    while (found := left()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def next_command(stopped: Stopped, run: Path, place: Place, *, is_resumed: bool) -> list[str]:
    """The next command removes what nobody was there to remove; one that resumes the run completes
    it."""
    command, pid = stopped.command, stopped.running.pid
    if is_resumed:
        program = place.program(str(SCRIPT))
        done = command.start("sweep", "--quiet", "--resume", run, program=program).end()
    else:
        done = command.start(program=place.program(sys.executable, "-c", HOW_COMMANDS_BEGIN)).end()
    if done.code not in (0, 98) or "Traceback" in done.err:
        return [f"the next command ended with exit code {done.code}: {done.err[-2000:]}"]
    if is_resumed and sorted(cells_of(run)) != sorted(CELLS):
        return [f"resumed with the cells {cells_of(run)}"]
    left = leftovers(command, pid)
    return [f"left after the next command: {left}"] if left else []


def read_again(run: Path, finished: list[str]) -> list[str]:
    """What was finished can be read, and nothing of it is taken for damaged."""
    out, err = io.StringIO(), io.StringIO()
    with READING, redirect_stdout(out), redirect_stderr(err):
        code = cli.run(["report", str(run)])
    said = err.getvalue()
    complaints = [f"the report: {code}, {said}"] if code or said else []
    complaints += [f"not stored: {cell}" for cell in finished if cell not in cells_of(run)]
    for cell in cells_of(run):
        if (run / "load" / f"{cell}.json").exists():
            read_load(run / "load" / f"{cell}.json")
    return complaints


def steps_of(template: Path, folder: Path, place: Place) -> list[tuple[str, frozenset[str]]]:
    """Every step in its order, and who lives there."""
    command = Command(folder)
    shutil.copytree(template, folder / "run")
    stopped, steps = Stopped(command, place, "every", folder / "run"), []
    try:
        while (step := stopped.wait()) is not None:
            steps.append((step, frozenset(stopped.roles())))
            stopped.go_on()
        done = stopped.running.end(PATIENCE_S)
        assert done.code in (0, 98), done.err
        assert leftovers(command, stopped.running.pid) == []
    finally:
        command.clean_up()
    return steps


def carry_out_all(
    rows: Sequence[Row], template: Path, folder: Path, jobs: int
) -> list[Outcome | None]:
    """The outcomes of all rows, so many at a time."""
    free: SimpleQueue[Place] = SimpleQueue()

    def one(number: int, row: Row) -> Outcome | None:
        place = free.get()
        try:
            where, is_resumed = folder / f"row-{number}", number % ROWS_PER_RESUMED == 0
            outcome = carry_out(row, template, where, place, is_resumed=is_resumed)
            complaints = ["not carried out"] if outcome is None else outcome.complaints
            sys.stdout.write(
                f"{number + 1} of {len(rows)}: {row}: {complaints or 'nothing left'}\n"
            )
            sys.stdout.flush()
            return outcome
        finally:
            free.put(place)

    with ExitStack() as stack:
        for number in range(jobs):
            free.put(stack.enter_context(place_of_its_own(number)) if jobs > 1 else Place())
        with ThreadPoolExecutor(jobs) as pool:
            try:
                return list(pool.map(one, range(len(rows)), rows))
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)
                raise
