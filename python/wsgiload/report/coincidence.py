"""Events that coincided with the load of a cell, in words. Pure.

A coincidence never states a cause. Only an intervention, which lifts a limit in random order, can
show an effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from wsgiload.attribution.fingerprints import FINGERPRINTS
from wsgiload.documents.attribution_result import (
    AttributionResult,
    ExposureResult,
    FingerprintResult,
    ShareInterval,
)
from wsgiload.documents.summary import Summary
from wsgiload.report import words
from wsgiload.report.cells import Cell


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
    attribution = cell.result.attribution
    if attribution is None:
        return coincided
    exposure = next((one for one in attribution.exposures if one.event == kind.event), None)
    if exposure is None or kind.span is None:
        return coincided
    return f"{coincided} {exposure_words(attribution, exposure, kind.span)}"


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
