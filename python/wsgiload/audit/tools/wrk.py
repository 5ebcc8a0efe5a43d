"""The text output of wrk, and of wrk2, which adds a spectrum."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from wsgiload.audit import text
from wsgiload.audit.run import ERROR_RESPONSES, AuditTool, Part
from wsgiload.documents.audit import ErrorKind, Figures

_START = r"^Running .+ (?:test|tests) @ "
_HAS_START = text.has_line(_START)
_CONNECTIONS = r"^\s*\d+ threads? and (\d+) connections?"
_LATENCY = rf"^\s*Latency\s+({text.DURATION})\s+({text.DURATION})\s+({text.DURATION})\s"
_QUANTILE = re.compile(rf"^\s*(\d+(?:\.\d+)?)%\s+({text.DURATION})\s*$", re.MULTILINE)
_TOTAL = rf"^\s*(\d+) requests in ({text.DURATION}), "
_SOCKET_ERRORS = r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)"
_STATUS_ERRORS = r"Non-2xx or 3xx responses: (\d+)"
_RATE = rf"^Requests/sec:\s+({text.NUMBER})"
_COUNTED = r"^#\[Max\s+=.*Total count\s+=\s+(\d+)\]"
_WRK2_ONLY = re.compile(r"Thread calibration: |Detailed Percentile spectrum|HdrHistogram")
_UNABLE = re.compile(r"^unable to (?:connect|resolve|create)", re.MULTILINE)
_SOCKET_KINDS: tuple[ErrorKind, ...] = ("connect", "read", "write", "timeout")


def _is_wrk2(content: str) -> bool:
    return _HAS_START(content) and bool(_WRK2_ONLY.search(content))


def _is_wrk(content: str) -> bool:
    return (_HAS_START(content) or bool(_UNABLE.match(content))) and not _WRK2_ONLY.search(content)


def _parse(content: str, *, is_open: bool) -> Sequence[Part]:
    if _UNABLE.match(content):
        return [Part(Figures(load="closed", requests=0, keepalive=True))]
    return text.each_run(_START, partial(_figures, is_open=is_open))(content)


def _figures(piece: str, *, is_open: bool) -> Figures:
    connections = text.required(_CONNECTIONS, piece, "the connections")
    latency = text.required(_LATENCY, piece, "'Latency'")
    total = text.required(_TOTAL, piece, "'requests in'")
    rate = text.required(_RATE, piece, "'Requests/sec'")
    text.required(r"^Transfer/sec:\s+\S+", piece, "'Transfer/sec'")

    requests = text.count(total[1])
    mean, deviation, longest = (text.duration_ns(one) for one in latency.groups())
    return Figures(
        load="open" if is_open else "closed",
        connections=text.count(connections[1]) or None,
        achieved_per_s=float(rate[1]),
        duration_ns=text.duration_ns(total[2]),
        requests=requests,
        timed_requests=text.find_count(_COUNTED, piece),
        errors=_errors(piece),
        keepalive=True,
        mean_ns=mean if requests else None,
        deviation_ns=deviation if requests else None,
        max_ns=longest if requests else None,
        quantiles_ns=_quantiles(piece) if requests else {},
    )


def _errors(piece: str) -> dict[ErrorKind, int]:
    sockets = text.find(_SOCKET_ERRORS, piece)
    numbers = [text.count(one) for one in sockets.groups()] if sockets else [0] * 4
    status = text.find_count(_STATUS_ERRORS, piece) or 0
    return text.present({**dict(zip(_SOCKET_KINDS, numbers, strict=True)), "status": status})


def _quantiles(piece: str) -> dict[str, int]:
    """The first distribution; with ``-U``, a second, uncorrected one follows."""
    quantiles: dict[str, int] = {}
    for percent, value in _QUANTILE.findall(piece):
        key = f"{float(percent) / 100:.10g}"
        if float(percent) < 100:
            quantiles.setdefault(key, text.duration_ns(value))
    return quantiles


WRK = AuditTool(
    "wrk",
    _is_wrk,
    partial(_parse, is_open=False),
    ERROR_RESPONSES,
    corrects_omission=True,
    keeps_failed_connections=True,
)
WRK2 = AuditTool(
    "wrk2", _is_wrk2, partial(_parse, is_open=True), ERROR_RESPONSES, keeps_failed_connections=True
)
