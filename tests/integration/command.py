"""Runs the command line as a user would, and finds the processes, control groups and temporary
files that it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = Path(sys.executable).with_name("wsgiload")
CGROUPS = Path("/sys/fs/cgroup")
# Every process that a command starts inherits this variable, so that a test finds only its own.
MARK = "STARTED_BY_TEST"
TIMEOUT_S = 120.0
POLL_S = 0.02


def until(holds: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Wait until a condition holds. The timeout only ends a hung test."""
    end = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end, f"timed out after {timeout_s} s waiting for {what}"
        time.sleep(POLL_S)


def groups_made_by(pid: int, places: Iterable[Path] = (CGROUPS,)) -> list[Path]:
    """The remaining control groups of this process.

    Other processes remove groups meanwhile: ``os.walk`` skips those, ``Path.rglob`` would fail.
    """
    directories = (
        (Path(directory), names) for place in places for directory, names, _ in os.walk(place)
    )
    return [
        directory / name
        for directory, names in directories
        for name in names
        if name.startswith(f"wsgiload-{pid}-")
    ]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A completed command."""

    code: int
    out: str
    err: str

    @property
    def messages(self) -> list[str]:
        """The messages of wsgiload on stderr, without progress output."""
        return [line for line in self.err.splitlines() if line.startswith("wsgiload: ")]

    @property
    def run_dir(self) -> Path:
        """The run directory named on stdout."""
        (line,) = [line for line in self.out.splitlines() if line.startswith("run directory: ")]
        return Path(line.removeprefix("run directory: "))

    @property
    def summary(self) -> dict[str, Any]:
        """The summary in the run directory."""
        return read_json(self.run_dir / "summary.json")

    @property
    def cells(self) -> dict[str, dict[str, Any]]:
        """The cells of the summary by ID."""
        return {cell["id"]: cell for cell in self.summary["cells"]}


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file."""
    content: dict[str, Any] = json.loads(path.read_text())
    return content


class RunningCommand:
    """A running command. Its output goes to files, so that tests can read it meanwhile."""

    def __init__(
        self, args: list[str], folder: Path, cwd: Path, environment: dict[str, str]
    ) -> None:
        self._out, self._err = folder / "stdout.txt", folder / "stderr.txt"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            # A separate process group, like that of the foreground job in a terminal.
            self.process = subprocess.Popen(
                args,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process ID of the command."""
        return self.process.pid

    @property
    def err(self) -> str:
        """The output on stderr so far."""
        return self._err.read_text()

    def press_ctrl_c(self) -> float:
        """Send SIGINT to the whole process group, as a terminal does; returns the seconds until the
        command exits."""
        started = time.monotonic()
        os.killpg(self.pid, signal.SIGINT)
        self.process.wait(TIMEOUT_S)
        took_s = time.monotonic() - started

        sys.stdout.write(f"exited {took_s:.3f} s after Ctrl-C\n")
        return took_s

    def end(self, timeout_s: float = TIMEOUT_S) -> CommandResult:
        """Wait for the command to exit."""
        code = self.process.wait(timeout_s)
        return CommandResult(code, self._out.read_text(), self.err)


def _with_tables(args: Sequence[object]) -> list[object]:
    """Add ``--verbose`` to commands that print a short summary by default, because most tests read
    the tables; ``--no-verbose`` selects the short summary."""
    if args[:1] not in (("sweep",), ("report",), ("load",), ("capacity",)):
        return list(args)
    if "--no-verbose" in args:
        return [word for word in args if word != "--no-verbose"]
    return [args[0], "--verbose", *args[1:]]


class Command:
    """Runs commands in one folder, and finds and kills the processes that they leave behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir(parents=True)
        self._mark = uuid.uuid4().hex
        self._pids: list[int] = []
        self._count = 0

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this process without settings for wsgiload (except the cache of
        servers) and Python."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name == "WSGILOAD_CACHE_DIR"
            or not name.startswith(("WSGILOAD_", "VIRTUAL_ENV", "PYTHON"))
        }
        return inherited | {
            MARK: self._mark,
            "TMPDIR": str(self.temporary),
            "COLUMNS": "200",
            "NO_COLOR": "1",
            # Otherwise the number of trials would depend on what else this host runs.
            "WSGILOAD_RERUNS": "0",
        }

    def start(
        self, *args: object, cwd: Path | None = None, program: list[str] | None = None
    ) -> RunningCommand:
        """Start ``wsgiload`` (or another program) with these arguments."""
        self._count += 1
        folder = self.folder / f"command-{self._count}"
        folder.mkdir()

        argv = [*(program or [str(SCRIPT)]), *map(str, _with_tables(args))]
        environment = self.environment
        if args[:1] == ("capacity",):
            # Without reruns, a search ends at its first disturbed trial.
            del environment["WSGILOAD_RERUNS"]

        running = RunningCommand(argv, folder, cwd or self.folder, environment)
        self._pids.append(running.pid)
        return running

    def run(
        self, *args: object, cwd: Path | None = None, program: list[str] | None = None
    ) -> CommandResult:
        """Run a command to completion; fails if it prints a traceback or leaves anything behind."""
        done = self.start(*args, cwd=cwd, program=program).end()
        assert "Traceback (most recent call last)" not in done.err, done.err
        self.require_no_leftovers()
        return done

    def processes(self) -> dict[int, str]:
        """The command lines of all running processes of the commands, by process ID."""
        return dict(self._running_processes())

    def _running_processes(self) -> Iterator[tuple[int, str]]:
        variable = f"{MARK}={self._mark}".encode()
        for directory in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if variable in (directory / "environ").read_bytes().split(b"\0"):
                    command_line = (directory / "cmdline").read_bytes()
                    yield int(directory.name), command_line.replace(b"\0", b" ").decode()

    def groups(self) -> list[Path]:
        """The remaining control groups of the commands."""
        return [path for pid in self._pids for path in groups_made_by(pid)]

    def temporary_files(self) -> list[str]:
        """The names in the directory for temporary files."""
        return sorted(path.name for path in self.temporary.iterdir())

    def require_no_leftovers(self) -> None:
        """Fail if a process, a control group or a temporary file remains."""
        leftovers = [*self.processes().values(), *map(str, self.groups()), *self.temporary_files()]
        assert not leftovers, f"left behind: {leftovers}"

    def clean_up(self) -> None:
        """Kill the remaining processes; only a failed test has any."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
