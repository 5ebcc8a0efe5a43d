"""The JSON (``--output-format json``) and the text of oha, which contain neither its connections
nor its rate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from wsgiload.audit import text
from wsgiload.audit.run import AuditTool, Part
from wsgiload.documents.audit import ErrorKind, Figures
from wsgiload.units import NS_PER_S

_START = r"^Summary:\s*\n\s+Success rate:\s+"
_TIME = rf"({text.NUMBER}) ?(ns|us|µs|ms|secs?)\b"
_QUANTILE = re.compile(rf"^\s*({text.NUMBER})%+ in {_TIME}", re.MULTILINE)
_COUNTED = re.compile(r"^\s*\[(\d+)\] (.*)$", re.MULTILINE)
_ERRORS_TITLE = "Error distribution:"
# Four decimal places of a second, as old versions print.
_STEP_NS = 100_000
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


def _is_json(content: str) -> bool:
    return content.lstrip().startswith("{") and '"latencyPercentiles"' in content


def _is_oha(content: str) -> bool:
    return _is_json(content) or _has_text(content)


def _parse(content: str) -> Sequence[Part]:
    if not _is_json(content):
        return _parse_text(content)
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
                errors=_errors(result.status_code_distribution, result.error_distribution),
                min_ns=_ns(result.summary.fastest),
                mean_ns=_ns(result.summary.average),
                max_ns=_ns(result.summary.slowest),
                quantiles_ns=_quantiles(result.latency_percentiles),
            )
        )
    ]


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None or seconds < 0 else round(seconds * NS_PER_S)


def _errors(statuses: Mapping[str, int], messages: Mapping[str, int]) -> dict[ErrorKind, int]:
    errors: Counter[ErrorKind] = Counter()
    for code, number in statuses.items():
        errors["status"] += number if code >= "400" else 0
    for message, number in messages.items():
        if message != _UNFINISHED:
            errors[text.kind_of_error(message)] += number
    return text.present(errors)


def _of_text(piece: str) -> Figures:
    took_ns = _required_ns("Total", piece)
    responses, _, broken = piece.partition(_ERRORS_TITLE)
    responses = responses.partition("Status code distribution:")[2]
    if not responses and not broken:
        text.cut_off(piece, "'Status code distribution'")
    statuses = {code: text.count(rest.split()[0]) for code, rest in _COUNTED.findall(responses)}
    messages = {message: text.count(number) for number, message in _COUNTED.findall(broken)}
    requests = sum(statuses.values())
    is_coarse = "sec" in text.required(rf"^\s+Slowest:\s+{_TIME}", piece, "'Slowest'")[2]
    step_ns = _STEP_NS if is_coarse else None
    return Figures(
        load="closed",
        achieved_per_s=requests * NS_PER_S / took_ns if took_ns else None,
        duration_ns=took_ns,
        requests=requests,
        errors=_errors(statuses, messages),
        min_ns=_required_ns("Fastest", piece) if requests else None,
        mean_ns=_required_ns("Average", piece) if requests else None,
        max_ns=_required_ns("Slowest", piece) if requests else None,
        quantiles_ns={
            f"{float(percent) / 100:.10g}": _time_ns(value, unit)
            for percent, value, unit in _QUANTILE.findall(piece)
            if requests and float(percent) < 100
        },
        resolution_ns=step_ns,
        mean_resolution_ns=step_ns,
    )


def _required_ns(name: str, piece: str) -> int:
    match = text.required(rf"^\s+{name}:\s+{_TIME}", piece, f"{name!r}")
    return _time_ns(match[1], match[2])


def _time_ns(value: str, unit: str) -> int:
    return text.duration_ns(f"{value}{'s' if unit.startswith('sec') else unit}")


_parse_text = text.each_run(_START, _of_text)
_has_text = text.has_line(_START)


def _quantiles(percentiles: dict[str, float | None]) -> dict[str, int]:
    return {
        f"{float(name.removeprefix('p')) / 100:.10g}": round(value * NS_PER_S)
        for name, value in percentiles.items()
        if value is not None and name.removeprefix("p").replace(".", "", 1).isdecimal()
    }


OHA = AuditTool("oha", _is_oha, _parse)
