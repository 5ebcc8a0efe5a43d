"""Writes the run directory, and stores each cell before the next begins.

Nothing is computed or printed here. A file is replaced as a whole or appended to by whole lines,
and synced, so a crash loses at most the current cell.
"""

from __future__ import annotations

import csv
import io
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.codec import encode, encode_bytes, read
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.experiment.stored_secrets import public_report
from wsgiload.foreign_files import RUN_FILE, UNFINISHED, read_file, replace_file
from wsgiload.program import command_line
from wsgiload.results import interval_log, manifest, stored_plan
from wsgiload.results.manifest import Digests
from wsgiload.sampling.processes import CLIENT_COLUMNS, PROCESS_COLUMNS, ClientUsage, ProcessUsage
from wsgiload.sampling.sampler import RESOURCE_COLUMNS, SERVICE_COLUMNS, Sample

INTERVAL_COLUMNS = (
    "cell",
    "start_ns",
    "length_ns",
    "scheduled",
    "sent",
    "ok",
    "failed",
    "p50_ns",
    "p99_ns",
    "max_ns",
)
# With more cells, summary.json is no longer rewritten after each.
MAX_REWRITTEN = 32
# Only if there are supporting services.
SERVICES = "services.csv"
CSV_COLUMNS = {
    "intervals.csv": INTERVAL_COLUMNS,
    "resources.csv": RESOURCE_COLUMNS,
    "processes.csv": PROCESS_COLUMNS,
    "client.csv": CLIENT_COLUMNS,
    SERVICES: SERVICE_COLUMNS,
}


def _keep_out_of_git(folder: Path) -> None:
    """Let git ignore the folder that wsgiload creates next to an app."""
    if folder.name == ".wsgiload":
        with suppress(FileExistsError), (folder / ".gitignore").open("x") as file:
            file.write("*\n")


class RunDirectory:
    """The directory of one sweep or search, ``<UTC>-<name>-<4 hex>``. Only sweeps are resumable."""

    def __init__(
        self, folder: Path, name: str, *, stores_secrets: bool = False, is_resumable: bool = False
    ) -> None:
        self.started_utc = datetime.now(UTC)
        stamp = self.started_utc.strftime("%Y%m%dT%H%M%SZ")
        self.path = (folder / f"{stamp}-{name}-{secrets.token_hex(2)}").absolute()
        try:
            # Logs and requests may contain private data.
            self.path.mkdir(parents=True, mode=0o700)
            (self.path / "server").mkdir()
            (self.path / "load").mkdir()
            _keep_out_of_git(folder.absolute().parent)
        except OSError as error:
            raise UsageError(
                f"cannot create the run directory {self.path}: {error.strerror}",
                "choose another directory with --out",
            ) from error
        self._digests = Digests()
        self._stores_secrets, self._is_resumable = stores_secrets, is_resumable
        for name, columns in CSV_COLUMNS.items():
            if name != SERVICES:
                self._append_csv(name, [columns])
        self._has_latency_log = False

    @classmethod
    def reopen(cls, path: Path, cell_ids: Collection[str], *, stores_secrets: bool = False) -> Self:
        """An existing run directory to continue, reduced to the cells in its summary.

        A process that was killed while writing a cell left a part of it in the other files.
        """
        directory = cls.__new__(cls)
        directory.path = path.absolute()
        directory._digests = Digests()
        directory._stores_secrets, directory._is_resumable = stores_secrets, True
        directory.started_utc = _started(path / "run.json")
        for leftover in path.glob(f"**/.*{UNFINISHED}"):
            leftover.unlink()
        # The files change now, so its checksums become wrong.
        (path / manifest.NAME).unlink(missing_ok=True)
        for name, cell_of in _CELL_OF_LINE.items():
            directory._keep_lines(name, cell_of, cell_ids)
        for file in [*(path / "load").glob("*.json"), *(path / "server").glob("*.log")]:
            if file.stem not in cell_ids:
                file.unlink()
        directory._has_latency_log = (path / "latency.hlog").is_file()
        directory._take_digests()
        return directory

    def _keep_lines(
        self, name: str, cell_of: Callable[[str], str | None], cell_ids: Collection[str]
    ) -> None:
        path = self.path / name
        if not path.is_file():
            return
        cell, lines = None, []
        for line in _text_of(path).splitlines():
            cell = cell_of(line) or cell  # a line that names no cell belongs to the one before it
            if cell is None or cell in cell_ids:
                lines.append(line)
        self._replace(name, "\n".join(lines))

    def server_log(self, cell_id: str) -> Path:
        """The log file of a cell's server."""
        return self.path / "server" / f"{cell_id}.log"

    @property
    def started(self) -> str:
        """The start of the run in ISO 8601."""
        return self.started_utc.isoformat(timespec="seconds")

    def write_run(self, run: RunInfo) -> None:
        """run.json: the plan, the host, the status."""
        self._replace_listed("run.json", encode(run, indent=1))

    def write_summary(self, summary: Summary) -> None:
        """summary.json: all cells so far."""
        self._digests.forget(stored_plan.NAME)
        self._replace_listed("summary.json", encode(summary, indent=1))
        (self.path / stored_plan.NAME).unlink(missing_ok=True)

    def keep_cell(self, cells: int, cell: CellResult, summary: Callable[[], Summary]) -> None:
        """Store the last of this many cells: in summary.json or, if there are many, in a line of
        its own, so that no cell takes longer to store than the others."""
        if cells <= MAX_REWRITTEN:
            self.write_summary(summary())
        else:
            self._append(stored_plan.NAME, f"{encode(cell)}\n")

    def write_capacity(self, document: CapacityResult) -> None:
        """capacity.json: the result of a capacity search."""
        self._replace_listed("capacity.json", encode(document, indent=1))

    def _replace_listed(self, name: str, text: str) -> None:
        """Replace a file and update the manifest. The manifest does not list the file in between,
        so a crash leaves no wrong checksum."""
        if self._digests.size_bytes(name) is not None:
            self._digests.forget(name)
            self._write_manifest()
        self._replace(name, text)
        self._write_manifest()

    def _write_manifest(self) -> None:
        for log in (self.path / "server").glob("*.log"):
            if self._digests.size_bytes(f"server/{log.name}") != log.stat().st_size:
                self._digests.take(self.path, f"server/{log.name}")
        text = encode_bytes(self._digests.manifest()).decode()
        self._replace(manifest.NAME, text)
        self._digests.forget(manifest.NAME)

    def _take_digests(self) -> None:
        """The checksums of the existing files."""
        files = [self.path / name for name in (*_CELL_OF_LINE, "summary.json", "run.json")]
        for path in [*files, *(self.path / "load").glob("*.json")]:
            if path.is_file():
                self._digests.take(self.path, str(path.relative_to(self.path)))

    def write_cell(
        self,
        cell_id: str,
        load: LoadReport | None,
        samples: Sequence[Sample],
        processes: Sequence[ProcessUsage] = (),
        client: Sequence[ClientUsage] = (),
    ) -> None:
        """The data of one cell that summary.json does not contain."""
        for name, rows in (("resources", samples), ("processes", processes), ("client", client)):
            self._append_csv(f"{name}.csv", [row.row(cell_id) for row in rows])
        if load is None:
            return

        self._replace(
            f"load/{cell_id}.json", encode(load if self._stores_secrets else public_report(load))
        )
        names = INTERVAL_COLUMNS[1:]
        self._append_csv(
            "intervals.csv",
            ([cell_id, *(getattr(one, name) for name in names)] for one in load.intervals),
        )
        self._write_latency(cell_id, load)

    def write_services(self, cell_id: str, services: Mapping[str, Sequence[Sample]]) -> None:
        """The samples of supporting services, by name."""
        if not services:
            return
        if not (self.path / SERVICES).exists():
            self._append_csv(SERVICES, [SERVICE_COLUMNS])
        rows = (
            sample.service_row(cell_id, name)
            for name, samples in services.items()
            for sample in samples
        )
        self._append_csv(SERVICES, rows)

    def _write_latency(self, cell_id: str, load: LoadReport) -> None:
        lines = interval_log.lines(cell_id, load)
        if not self._has_latency_log:
            lines = [*interval_log.header(load), *lines]
            self._has_latency_log = True
        self._append("latency.hlog", "".join(f"{line}\n" for line in lines))
        self._append("latency.hgrm", interval_log.percentile_text(cell_id, load))

    def _append_csv(self, name: str, rows: Iterable[Sequence[object]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._append(name, text.getvalue())

    def _append(self, name: str, text: str) -> None:
        data, path = text.encode(), self.path / name
        before_bytes = path.stat().st_size if path.exists() else 0
        try:
            with open(path, "ab", opener=_without_links) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            with suppress(OSError):
                os.truncate(path, before_bytes)  # whole lines or none
            raise self._not_written(path, error) from error
        self._digests.appended(name, data)

    def _replace(self, name: str, text: str) -> None:
        final = self.path / name
        data = (text + "\n").encode()
        try:
            replace_file(final, data, is_synced=True)
        except OSError as error:
            raise self._not_written(final, error) from error
        self._digests.replaced(name, data)
        folder = os.open(final.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the rename itself
        finally:
            os.close(folder)

    def _not_written(self, path: Path, error: OSError) -> UsageError:
        if not self.path.is_dir():
            return UsageError(
                f"the run directory {self.path} was deleted or moved during the run",
                "start a new run",
            )
        cause = f"cannot write {path}: {error.strerror}"
        if not self._is_resumable or not (self.path / "run.json").is_file():
            return UsageError(cause, "free disk space, then start a new run")
        return UsageError(
            f"{cause}; every cell before this one is stored",
            f"free disk space, then continue with `{command_line('sweep', '--resume', self.path)}`",
        )


def _cell_of_row(line: str) -> str | None:
    first = line.partition(",")[0]
    return first if first != "cell" else None


def _cell_of_tag(line: str) -> str | None:
    return line.partition(",")[0].removeprefix("Tag=") if line.startswith("Tag=") else None


def _cell_of_heading(line: str) -> str | None:
    return line[2:-1] if line.startswith("#[") and not line.startswith("#[Mean") else None


_CELL_OF_LINE: dict[str, Callable[[str], str | None]] = {
    "intervals.csv": _cell_of_row,
    "resources.csv": _cell_of_row,
    "processes.csv": _cell_of_row,
    "client.csv": _cell_of_row,
    SERVICES: _cell_of_row,
    "latency.hlog": _cell_of_tag,
    "latency.hgrm": _cell_of_heading,
}


def _started(path: Path) -> datetime:
    started = read(RunInfo, path).started_utc
    try:
        return datetime.fromisoformat(started)
    except ValueError as error:
        raise UsageError(f"{path} has no start time: {error}", "start a new run") from error


def _text_of(path: Path) -> str:
    try:
        return read_file(RUN_FILE, path).decode()
    except UnicodeError as error:
        raise UsageError(f"{path} is damaged: {error}", "start a new run") from error


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)
