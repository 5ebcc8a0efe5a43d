"""Percentiles that are means of percentiles."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.audit.run import Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding
from wsgiload.report.words import format_duration_ns, plural, quantile_name

MIN_QUANTILES = 3
# If the parts differ less, their mean proves nothing.
MIN_SPREAD = 0.2
# The tolerance for rounding, in steps of the tool's resolution, or relative to the mean.
TOLERANCE_STEPS = 0.6
MIN_TOLERANCE = 0.001
AVERAGED_PERCENTILES = Finding(
    name="averaged-percentiles",
    examines="other tools' results: the percentiles of an aggregated result, compared with those "
    "of the individual results",
    premise=f"At least {MIN_QUANTILES} percentiles equal the mean of the individual percentiles, "
    "unweighted or weighted by request count. A mean of percentiles is not a percentile.",
    fix="merge the histograms or the individual response times, then compute the percentile "
    "(`wsgiload.Histogram` merges with +)",
)


def averaged_percentiles(total: Run, parts: Sequence[Run]) -> AuditAlarm | None:
    """All quantiles of the aggregate are the plain or weighted means of its parts' quantiles."""
    shared = set(total.figures.quantiles_ns)
    for part in parts:
        shared &= set(part.figures.quantiles_ns)
    if len(parts) < 2 or not all(part.figures.requests for part in parts):
        return None

    differing = [key for key in sorted(shared, key=float) if _spread(key, parts) >= MIN_SPREAD]
    if len(differing) < MIN_QUANTILES:
        return None
    plain, weighted = [1.0] * len(parts), [float(part.figures.requests or 0) for part in parts]
    for weights, word in ((plain, "plain"), (weighted, "weighted")):
        if all(_is_mean(total, key, parts, weights) for key in differing):
            return _alarm(total, differing[-1], parts, word)
    return None


def _values(key: str, parts: Sequence[Run]) -> list[int]:
    return [part.figures.quantiles_ns[key] for part in parts]


def _spread(key: str, parts: Sequence[Run]) -> float:
    values = _values(key, parts)
    return max(values) / max(1, min(values)) - 1


def _mean(key: str, parts: Sequence[Run], weights: Sequence[float]) -> float:
    values = zip(_values(key, parts), weights, strict=True)
    return sum(value * weight for value, weight in values) / sum(weights)


def _is_mean(total: Run, key: str, parts: Sequence[Run], weights: Sequence[float]) -> bool:
    mean_ns, shown_ns = _mean(key, parts, weights), total.figures.quantiles_ns[key]
    step_ns = total.figures.resolution_ns or 0
    return abs(mean_ns - shown_ns) <= max(TOLERANCE_STEPS * step_ns, MIN_TOLERANCE * mean_ns)


def _alarm(total: Run, key: str, parts: Sequence[Run], word: str) -> AuditAlarm:
    name, shown_ns = quantile_name(float(key)), total.figures.quantiles_ns[key]
    values = " + ".join(format_duration_ns(value) for value in _values(key, parts)[:4])
    more = " + …" if len(parts) > 4 else ""
    return alarm(
        AVERAGED_PERCENTILES,
        "the percentiles of the total are means of its parts' percentiles, which is wrong: they "
        "can be far off in either direction",
        arithmetic=f"{word} mean of {plural(len(parts), 'part')}: ({values}{more}) / {len(parts)} "
        f"= {format_duration_ns(shown_ns)}, the {name} of the total"
        if word == "plain"
        else f"mean of {plural(len(parts), 'part')}, weighted by requests ({values}{more}): "
        f"{format_duration_ns(shown_ns)}, the {name} of the total",
        value=shown_ns / 1e6,
        limit=max(_values(key, parts)) / 1e6,
    )
