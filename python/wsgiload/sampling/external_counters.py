"""Counters from outside the generator: the app's calls, and the kernel's TCP counters.

Read-only. ``findings.external_counts`` compares them with the generator's report.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from wsgiload.account import Account
from wsgiload.catalogue.apps.counted import COUNT_BYTES, FOLDER_VARIABLE
from wsgiload.documents.cell_result import ExternalCounts
from wsgiload.scratch import SHARED_MEMORY, scratch_folder


@dataclass(frozen=True, slots=True)
class TcpCounts:
    """The kernel's counters for all TCP connections in this network namespace; None: not
    available."""

    retransmitted_segments: int | None
    listen_overflows: int | None
    listen_drops: int | None
    request_queue_full_drops: int | None


@dataclass(frozen=True, slots=True)
class ExternalReading:
    """External counts at one time, or their increase between two times."""

    requests_seen: int | None
    tcp: TcpCounts

    def since(self, before: ExternalReading) -> ExternalReading:
        """The increase since ``before``."""
        now, then = asdict(self.tcp), asdict(before.tcp)
        return ExternalReading(
            _grown(before.requests_seen, self.requests_seen),
            TcpCounts(**{name: _grown(then[name], now[name]) for name in now}),
        )

    def document(self) -> ExternalCounts:
        """The ``external_counts`` of a cell."""
        return ExternalCounts(requests_seen=self.requests_seen, **asdict(self.tcp))


def _grown(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None or now < before else now - before


@dataclass(frozen=True, slots=True)
class ExternalCounters:
    """The sources of the counts; without ``folder``, the app does not count its calls."""

    folder: Path | None = None
    root: Path = Path("/")

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables that make the app count its calls."""
        return {} if self.folder is None else {FOLDER_VARIABLE: str(self.folder)}

    def read(self) -> ExternalReading:
        """All current counts."""
        return ExternalReading(read_request_count(self.folder), read_tcp_counts(self.root))


@contextmanager
def external_counters(*, app_counts: bool, owner: Account | None) -> Iterator[ExternalCounters]:
    """Counters for one launch of a server, which runs as ``owner``; ``app_counts``: its app is a
    bundled app, which counts its calls."""
    if not app_counts:
        yield ExternalCounters()
        return
    # In memory, because writing a page to disk could delay the app.
    parent = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK | os.X_OK) else None
    with scratch_folder(parent, owner) as folder:
        yield ExternalCounters(folder)


def read_request_count(folder: Path | None) -> int | None:
    """The number of calls of the app in all its processes; None if unknown."""
    try:
        counts = [path.read_bytes() for path in folder.iterdir()] if folder is not None else []
    except OSError:
        return None
    return (
        sum(int.from_bytes(count[:COUNT_BYTES], sys.byteorder) for count in counts)
        if counts
        else None
    )


def read_tcp_counts(root: Path = Path("/")) -> TcpCounts:
    """The kernel's current counters."""
    tcp = _table(root / "proc/net/snmp", "Tcp:")
    extended = _table(root / "proc/net/netstat", "TcpExt:")
    return TcpCounts(
        tcp.get("RetransSegs"),
        extended.get("ListenOverflows"),
        extended.get("ListenDrops"),
        extended.get("TCPReqQFullDrop"),
    )


def _table(path: Path, title: str) -> dict[str, int]:
    """The counters of the two lines with this title (names, then numbers); empty if unreadable."""
    try:
        lines = [
            line.split()[1:]
            for line in path.read_text().splitlines()
            if line.startswith(f"{title} ")
        ]
        names, numbers = lines
        return dict(zip(names, map(int, numbers), strict=True))
    except (OSError, ValueError):
        return {}
