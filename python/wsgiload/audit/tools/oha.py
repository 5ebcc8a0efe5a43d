"""The JSON of oha (``--output-format json``), which contains neither its connections nor its
rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from wsgiload.audit import text
from wsgiload.audit.run import AuditTool, Part
from wsgiload.documents.audit import ErrorKind, Figures
from wsgiload.units import NS_PER_S

# Requests in flight at the end of the run.
_UNFINISHED = "aborted due to deadline"


class _Summary(msgspec.Struct):
    total: float
    slowest: float | None = None
    fastest: float | None = None
    average: float | None = None


class _Result(msgspec.Struct, rename="camel"):
    summary: _Summary
    latency_percentiles: dict[str, float | None]
    status_code_distribution: dict[str, int] = {}
    error_distribution: dict[str, int] = {}


def _is_oha(content: str) -> bool:
    return content.lstrip().startswith("{") and '"latencyPercentiles"' in content


def _parse(content: str) -> Sequence[Part]:
    result = text.decode(content, _Result, "oha")
    requests = sum(result.status_code_distribution.values())
    took_s = result.summary.total
    return [
        Part(
            Figures(
                load="closed",
                achieved_per_s=requests / took_s if took_s > 0 else None,
                duration_ns=_ns(took_s),
                requests=requests,
                errors=_errors(result),
                min_ns=_ns(result.summary.fastest),
                mean_ns=_ns(result.summary.average),
                max_ns=_ns(result.summary.slowest),
                quantiles_ns=_quantiles(result.latency_percentiles),
            )
        )
    ]


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None or seconds < 0 else round(seconds * NS_PER_S)


def _errors(result: _Result) -> dict[ErrorKind, int]:
    errors: Counter[ErrorKind] = Counter()
    for code, number in result.status_code_distribution.items():
        errors["status"] += number if code >= "400" else 0
    for message, number in result.error_distribution.items():
        if message != _UNFINISHED:
            errors[text.kind_of_error(message)] += number
    return text.present(errors)


def _quantiles(percentiles: dict[str, float | None]) -> dict[str, int]:
    return {
        f"{float(name.removeprefix('p')) / 100:.10g}": round(value * NS_PER_S)
        for name, value in percentiles.items()
        if value is not None and name.removeprefix("p").replace(".", "", 1).isdecimal()
    }


OHA = AuditTool("oha", _is_oha, _parse)
