"""Runs the command line as a user does, and knows what it left behind: processes, control groups,
temporary files."""

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
# Every process that a command starts inherits this variable, so that none of another test is ever
# touched.
MARK = "STARTED_BY_TEST"
TIMEOUT_S = 120.0
POLL_S = 0.02


def until(holds: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Wait for something that must come; how long it takes is no claim of the test."""
    end = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end, f"not within {timeout_s} s: {what}"
        time.sleep(POLL_S)


def groups_made_by(pid: int, places: Iterable[Path] = (CGROUPS,)) -> list[Path]:
    """The control groups that this process made and that are still there.

    Groups of others come and go meanwhile: a walk passes over what has vanished, which
    ``Path.rglob`` fails at.
    """
    folders = ((Path(folder), names) for place in places for folder, names, _ in os.walk(place))
    return [
        folder / name
        for folder, names in folders
        for name in names
        if name.startswith(f"wsgiload-{pid}-")
    ]


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """The lines on standard error that are no progress."""
        return [line for line in self.err.splitlines() if line.startswith("wsgiload: ")]

    @property
    def run_dir(self) -> Path:
        """The run directory that it named."""
        (line,) = [line for line in self.out.splitlines() if line.startswith("run directory: ")]
        return Path(line.removeprefix("run directory: "))

    @property
    def summary(self) -> dict[str, Any]:
        """The summary in that directory."""
        return read_json(self.run_dir / "summary.json")

    @property
    def cells(self) -> dict[str, dict[str, Any]]:
        """Its cells by their id."""
        return {cell["id"]: cell for cell in self.summary["cells"]}


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object in a file."""
    content: dict[str, Any] = json.loads(path.read_text())
    return content


class Running:
    """A command that was started and may be interrupted; its output goes to files, which can be
    read meanwhile."""

    def __init__(
        self, words: list[str], folder: Path, cwd: Path, environment: dict[str, str]
    ) -> None:
        self._out, self._err = folder / "stdout.txt", folder / "stderr.txt"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            # A session of its own, as the foreground job of a terminal has a process group of its
            # own.
            self.process = subprocess.Popen(
                words,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The command's own process."""
        return self.process.pid

    @property
    def err(self) -> str:
        """Standard error so far."""
        return self._err.read_text()

    def press_ctrl_c(self) -> float:
        """What the terminal does: SIGINT to the whole foreground group. Returns the seconds until
        the end."""
        started = time.monotonic()
        os.killpg(self.pid, signal.SIGINT)
        self.process.wait(TIMEOUT_S)
        took_s = time.monotonic() - started
        sys.stdout.write(f"from Ctrl-C to the end: {took_s:.3f} s\n")
        return took_s

    def end(self, timeout_s: float = TIMEOUT_S) -> Done:
        """Wait for its end."""
        code = self.process.wait(timeout_s)
        return Done(code, self._out.read_text(), self.err)


def _with_tables(words: Sequence[object]) -> list[object]:
    """The words with ``--verbose`` where a command prints an answer instead of tables: most tests
    read the tables. ``--no-verbose`` leaves the answer."""
    if words[:1] not in (("sweep",), ("report",), ("load",), ("capacity",)):
        return list(words)
    if "--no-verbose" in words:
        return [word for word in words if word != "--no-verbose"]
    return [words[0], "--verbose", *words[1:]]


class Command:
    """Starts commands from one folder, and tells and removes what they left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir(parents=True)
        self._mark = uuid.uuid4().hex
        self._pids: list[int] = []
        self._count = 0

    @property
    def environment(self) -> dict[str, str]:
        """The variables of this process without settings of ours or Python's; the cache of servers
        stays."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name == "WSGILOAD_CACHE_DIR"
            or not name.startswith(("WSGILOAD_", "VIRTUAL_ENV", "PYTHON"))
        }
        return kept | {
            MARK: self._mark,
            "TMPDIR": str(self.temporary),
            "COLUMNS": "200",
            "NO_COLOR": "1",
            # Otherwise what else runs on this host decides how many trials there are.
            "WSGILOAD_RERUNS": "0",
        }

    def start(
        self, *words: object, cwd: Path | None = None, program: list[str] | None = None
    ) -> Running:
        """Start ``wsgiload`` (or another program) with these words."""
        self._count += 1
        folder = self.folder / f"command-{self._count}"
        folder.mkdir()
        argv = [*(program or [str(SCRIPT)]), *map(str, _with_tables(words))]
        environment = self.environment
        if words[:1] == ("capacity",):
            del environment["WSGILOAD_RERUNS"]  # a search ends at its first spoiled trial without
        running = Running(argv, folder, cwd or self.folder, environment)
        self._pids.append(running.pid)
        return running

    def run(
        self, *words: object, cwd: Path | None = None, program: list[str] | None = None
    ) -> Done:
        """Run it to its end, and insist that it shows no traceback and leaves nothing."""
        done = self.start(*words, cwd=cwd, program=program).end()
        assert "Traceback (most recent call last)" not in done.err, done.err
        self.require_nothing_left()
        return done

    def processes(self) -> dict[int, str]:
        """The living processes of all commands, with their command lines."""
        return dict(self._living())

    def _living(self) -> Iterator[tuple[int, str]]:
        wanted = f"{MARK}={self._mark}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    yield (
                        int(folder.name),
                        (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(),
                    )

    def groups(self) -> list[Path]:
        """The control groups that the commands made and that are still there."""
        return [path for pid in self._pids for path in groups_made_by(pid)]

    def temporary_files(self) -> list[str]:
        """What lies in their folder for temporary files."""
        return sorted(path.name for path in self.temporary.iterdir())

    def require_nothing_left(self) -> None:
        """Nothing runs, no group is there, and no temporary file."""
        left = [*self.processes().values(), *map(str, self.groups()), *self.temporary_files()]
        assert not left, f"left behind: {left}"

    def clean_up(self) -> None:
        """For tests that fail: end what is left, by process id."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
