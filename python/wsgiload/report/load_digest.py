"""What the page of a sweep shows of each load report: the reports of thousands of cells do not fit
into memory. Damaged files are omitted; ``results.integrity`` reports them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from wsgiload.attribution.exposure import slowest_count
from wsgiload.documents.load_plan import KeepaliveLimit
from wsgiload.documents.load_report import GeneratorUsage, LoadReport
from wsgiload.documents.typed import decode_json
from wsgiload.foreign_files import LOAD_REPORT, read_file

PARTS = ("pool wait", "connect", "first byte", "transfer", "send lag")


class _Plan(msgspec.Struct, frozen=True):
    keepalive: Literal["on", "off"] | KeepaliveLimit = "on"


class _Times(msgspec.Struct, frozen=True):
    intervals_95: dict[str, tuple[int | None, int | None] | None]


class _Outcomes(msgspec.Struct, frozen=True):
    scheduled: int


class _Flights(msgspec.Struct, frozen=True):
    slowest: tuple[tuple[int, int], ...]
    slowest_parts: tuple[tuple[int, ...] | None, ...] = ()


class StoredLoad(msgspec.Struct, frozen=True):
    """The keys of a load report that are read, under the same names."""

    plan: _Plan
    outcomes: _Outcomes
    status_codes: dict[str, int]
    client: GeneratorUsage | None = None
    response_time_ns: _Times | None = None
    flights: _Flights | None = None


@dataclass(frozen=True, slots=True)
class LoadDigest:
    """The figures of one load."""

    keepalive: Literal["on", "off"] | int
    status_codes: dict[str, int]
    client: GeneratorUsage | None
    p99_interval_ns: tuple[int | None, int | None] | None
    # How many of the slowest requests got a response, how many failed, and the sums of the parts of
    # the former, in the order of PARTS.
    slowest: int
    failed: int
    sums_ns: tuple[int, ...]


def read_digests(directory: Path, cells: Iterable[str]) -> dict[str, LoadDigest]:
    """The digests of these cells, as far as their reports exist."""
    digests = {}
    for cell in cells:
        try:
            data = read_file(LOAD_REPORT, directory / "load" / f"{cell}.json")
            digests[cell] = digest_of(decode_json(data, StoredLoad))
        except (FileNotFoundError, ValueError, RecursionError):
            continue
    return digests


def digest_of(load: LoadReport | StoredLoad) -> LoadDigest:
    """The digest of one report."""
    policy, times = load.plan.keepalive, load.response_time_ns
    parts = _slowest(load)
    known = [one for one in parts if one is not None]
    return LoadDigest(
        policy.requests if isinstance(policy, KeepaliveLimit) else policy,
        load.status_codes,
        load.client,
        times.intervals_95.get("0.99") if times is not None else None,
        len(known),
        len(parts) - len(known),
        tuple(map(sum, zip(*known, strict=True))),
    )


def _slowest(load: LoadReport | StoredLoad) -> list[tuple[int, ...] | None]:
    """The parts of each of the slowest requests, in the order of PARTS; None for a failure."""
    if load.flights is None:
        return []
    slowest = load.flights.slowest[: slowest_count(load.outcomes.scheduled)]
    components: list[tuple[int, ...] | None] = []
    for (start_ns, end_ns), parts in zip(slowest, load.flights.slowest_parts, strict=False):
        left_ns = None if parts is None else end_ns - start_ns - sum(parts)
        components.append(None if parts is None or left_ns is None else (*parts, max(0, left_ns)))
    return components
