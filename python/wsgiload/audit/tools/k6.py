"""The summary of k6: its text, the JSON of ``--summary-export``, or the data of
``handleSummary``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from wsgiload.audit import text
from wsgiload.audit.run import ALL_ERRORS, AuditTool, Part
from wsgiload.documents.audit import Figures

_QUANTILE = re.compile(r"p\((\d+(?:\.\d+)?)\)")
_LINE = re.compile(r"^\s*(\w+)\.+: *(\S.*)$", re.MULTILINE)
_PAIR = re.compile(rf"([\w()]+) ?= ?({text.DURATION}|{text.NUMBER})")
_COUNT_AND_RATE = re.compile(rf"(\d+)\s+({text.NUMBER})/s")
_SHARE = re.compile(rf"({text.NUMBER})%")
# The numbers of a metric by name; in one format, they are in an object inside the metric.
Numbers = dict[str, float]


class _State(msgspec.Struct, rename="camel"):
    test_run_duration_ms: float | None = None


class _Result(msgspec.Struct):
    metrics: dict[str, dict[str, object]]
    state: _State = msgspec.field(default_factory=_State)


def _is_json(content: str) -> bool:
    is_json = content.lstrip().startswith("{") and '"metrics"' in content
    return is_json and ('"http_reqs"' in content or '"http_req_duration"' in content)


def _is_k6(content: str) -> bool:
    return _is_json(content) or text.find(r"^\s*http_req(?:s|_duration)\.+:", content) is not None


def _of_text(content: str) -> _Result:
    """The metrics of the text, in the units of the JSON."""
    metrics: dict[str, dict[str, object]] = {}
    for name, line in _LINE.findall(content):
        numbers: dict[str, object] = {
            key: text.duration_ns(value) / 1e6 if value[-1].isalpha() else float(value)
            for key, value in _PAIR.findall(line)
        }
        plain = _COUNT_AND_RATE.match(line)
        if name == "http_req_failed" and (share := _SHARE.match(line)):
            numbers["rate"] = float(share[1]) / 100
        elif plain is not None:
            numbers |= {"count": float(plain[1]), "rate": float(plain[2])}
        elif name == "vus_max" and not numbers:
            numbers["max"] = float(line.split()[0])
        # A line per group or tag may follow the whole metric.
        metrics.setdefault(name, numbers)
    if "http_reqs" not in metrics or "http_req_duration" not in metrics:
        text.cut_off(content, "'http_reqs'")
    return _Result(metrics)


def _parse(content: str) -> Sequence[Part]:
    is_json = _is_json(content)
    result = text.decode(content, _Result, "k6") if is_json else _of_text(content)
    reqs, times = _numbers(result, "http_reqs"), _numbers(result, "http_req_duration")
    users, dropped = _numbers(result, "vus_max"), _numbers(result, "dropped_iterations")
    requests = round(reqs.get("count", 0))

    figures = Figures(
        load="open" if dropped else None,
        connections=round(users.get("max", 0)) or None,
        achieved_per_s=reqs.get("rate"),
        duration_ns=_duration_ns(result, reqs),
        requests=requests,
        errors=text.present({"status": _failed(result, requests)}),
        dropped=round(dropped["count"]) if "count" in dropped else None,
        min_ns=_ns(times.get("min")) if requests else None,
        mean_ns=_ns(times.get("avg")) if requests else None,
        max_ns=_ns(times.get("max")) if requests else None,
        transfer_ns=_ns(_numbers(result, "http_req_receiving").get("avg")) if requests else None,
        quantiles_ns=_quantiles(times) if requests else {},
    )
    return [Part(figures)]


def _numbers(result: _Result, name: str) -> Numbers:
    metric = result.metrics.get(name, {})
    inner = metric.get("values")
    values = inner if isinstance(inner, dict) else metric
    return {
        str(key): float(value)
        for key, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    }


def _failed(result: _Result, requests: int) -> int:
    """The metric counts whether requests failed, so ``passes`` are the failed ones."""
    failed = _numbers(result, "http_req_failed")
    if "passes" in failed:
        return round(failed["passes"])
    return round(failed.get("rate", failed.get("value", 0.0)) * requests)


def _duration_ns(result: _Result, reqs: Numbers) -> int | None:
    if result.state.test_run_duration_ms is not None:
        return _ns(result.state.test_run_duration_ms)
    rate = reqs.get("rate")
    return _ns(reqs["count"] / rate * 1e3) if rate and "count" in reqs else None


def _ns(milliseconds: float | None) -> int | None:
    return None if milliseconds is None or milliseconds < 0 else round(milliseconds * 1e6)


def _quantiles(times: Numbers) -> dict[str, int]:
    """Both formats use milliseconds."""
    quantiles = {"0.5": times["med"]} if "med" in times else {}
    for name, value in times.items():
        percent = _QUANTILE.fullmatch(name)
        if percent and float(percent[1]) < 100:
            quantiles[f"{float(percent[1]) / 100:.10g}"] = value
    return {key: round(value * 1e6) for key, value in sorted(quantiles.items())}


K6 = AuditTool("k6", _is_k6, _parse, ALL_ERRORS, pauses=True)
