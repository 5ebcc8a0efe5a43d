"""Events that coincided with the load of a cell, in words. Pure.

A coincidence never states a cause. Only an intervention, which lifts a limit in random order, can
show an effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wsgiload.attribution.fingerprints import FINGERPRINTS
from wsgiload.documents.attribution_result import (
    AttributionResult,
    ExposureResult,
    FingerprintResult,
    ShareInterval,
)
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.summary import Summary
from wsgiload.report import words
from wsgiload.report.cells import Cell

# What happened to the server itself, in the order of the first screen.
NEAREST = (
    "throttling",
    "backlog_overflow",
    "memory_pressure",
    "pause",
    "busy_pause",
    "worker_imbalance",
)
# An event is named on the first screen if it overlapped with this share of the slowest requests.
MIN_COVERED = 0.5


def nearest_lines(cells: Sequence[CellResult]) -> list[str]:
    """For each kind of event that happened to a server and covers its slowest requests, the trial
    that shows it most clearly, the other servers, and the fix."""
    found: dict[str, list[tuple[float, CellResult, FingerprintResult]]] = {}
    for cell in cells:
        for one in cell.attribution.fingerprints if cell.attribution is not None else ():
            if one.name in NEAREST and _covers(cell, one):
                found.setdefault(one.name, []).append((one.value, cell, one))
    return [_nearest_line(name, found[name]) for name in NEAREST if name in found]


def _nearest_line(name: str, found: Sequence[tuple[float, CellResult, FingerprintResult]]) -> str:
    _, cell, fingerprint = max(found, key=lambda entry: entry[0])
    others = dict.fromkeys(server_of(one) for _, one, _ in found)
    del others[server_of(cell)]
    also = f" The same applies to {words.join_names(list(others))}." if others else ""
    covered = _exposure_sentence(cell, fingerprint)
    covered = f"; {covered.removesuffix('.')}" if covered else ""
    fix = FINGERPRINTS[name].fix or ""
    advice = f"{fix[:1].upper()}{fix[1:]}"
    return f"{server_of(cell)}: {fingerprint.sentence}{covered}.{also} {advice}"


def _covers(cell: CellResult, fingerprint: FingerprintResult) -> bool:
    """Whether the event covers most of the slowest requests, and no fewer of them than of all.
    Events without a period, such as dropped connections, are themselves about slow requests."""
    if FINGERPRINTS[fingerprint.name].event is None:
        return True
    exposure = _exposure_of(cell, fingerprint)
    return exposure is not None and exposure.slowest.value >= max(MIN_COVERED, exposure.all.value)


def names(cell: Cell) -> str:
    """The names of a cell's fingerprints, for a table column."""
    if cell.result.attribution is None:
        return words.MISSING
    return ", ".join(FINGERPRINTS[one.name].title for one in fingerprints(cell)) or "none"


def fingerprints(cell: Cell) -> tuple[FingerprintResult, ...]:
    """The fingerprints of a cell."""
    attribution = cell.result.attribution
    return () if attribution is None else attribution.fingerprints


def sentence(cell: Cell, fingerprint: FingerprintResult) -> str:
    """One fingerprint in words, with the shares of overlapping requests if known."""
    kind = FINGERPRINTS[fingerprint.name]
    observed = f"{fingerprint.sentence[:1].upper()}{fingerprint.sentence[1:]}"
    coincided = f"Coincided with this load: {kind.title}. {observed}."
    return " ".join(
        part for part in (coincided, _exposure_sentence(cell.result, fingerprint)) if part
    )


def _exposure_of(cell: CellResult, fingerprint: FingerprintResult) -> ExposureResult | None:
    event = FINGERPRINTS[fingerprint.name].event
    known = cell.attribution.exposures if cell.attribution is not None else ()
    return next((one for one in known if one.event == event), None)


def _exposure_sentence(cell: CellResult, fingerprint: FingerprintResult) -> str:
    exposure, span = _exposure_of(cell, fingerprint), FINGERPRINTS[fingerprint.name].span
    if exposure is None or span is None or cell.attribution is None:
        return ""
    return exposure_words(cell.attribution, exposure, span)


def interventions(summary: Summary) -> Iterator[str]:
    """The effect of lifting a limit, for each server."""
    for trial in summary.interventions or ():
        load = (
            words.format_per_s(trial.rate)
            if trial.rate is not None
            else words.plural(trial.connections or 0, "connection")
        )
        yield f"{trial.server} at {load}: {' '.join(trial.sentences)}"


def exposure_words(attribution: AttributionResult, exposure: ExposureResult, called: str) -> str:
    """ "92.0 % [95 % CI 88.1 %, 95.3 %] of the slowest 1 % of requests overlapped a throttled
    period, compared with …"."""
    resolution = words.format_duration_ns(attribution.resolution_ns)
    slowest, every = _share(exposure.slowest, "95 % CI "), _share(exposure.all)
    return (
        f"{slowest} of {slowest_words(attribution)} overlapped {called}, compared with {every} of "
        f"all requests (resolution ±{resolution})."
    )


def slowest_words(attribution: AttributionResult) -> str:
    """Which requests count as the slowest."""
    count, ratio = attribution.slowest, attribution.slowest_ratio
    if ratio is not None and 0.0099 <= ratio <= 0.0101:
        return "the slowest 1 % of requests"
    share = words.format_ratio(ratio)
    return f"the {words.format_count(count)} slowest requests ({share} of all)"


def _share(share: ShareInterval, name: str = "") -> str:
    value = words.format_ratio(share.value)
    if share.low is None or share.high is None:
        return value
    low, high = words.format_ratio(share.low), words.format_ratio(share.high)
    return value if low == high else f"{value} [{name}{low}, {high}]"
