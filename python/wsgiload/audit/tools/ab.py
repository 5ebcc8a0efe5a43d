"""The text output of ab (ApacheBench)."""

from __future__ import annotations

import re

import msgspec

from wsgiload.audit import text
from wsgiload.audit.run import AuditTool
from wsgiload.documents.audit import ErrorKind, Figures

_MILLISECOND_NS = 1_000_000
_START = r"^This is ApacheBench"
_TOTAL = rf"^Total:\s+(\d+)\s+({text.NUMBER})\s+({text.NUMBER})\s+({text.NUMBER})\s+(\d+)\s*$"
_QUANTILE = re.compile(r"^\s+(\d+)%\s+(\d+)(?:\s|$)", re.MULTILINE)
_FAILURES = r"\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)"
_FAILURE_KINDS: tuple[ErrorKind, ...] = ("connect", "read", "body", "other")
_GAVE_UP = re.compile(
    r"^(?:apr_\w+: .+|Test aborted after .+|Total of \d+ requests completed)", re.MULTILINE
)


def _figures(piece: str) -> Figures:
    if _GAVE_UP.search(piece) and "Time taken for tests:" not in piece:
        return Figures(load="closed", requests=0)

    connections = text.required(r"^Concurrency Level:\s+(\d+)", piece, "'Concurrency Level'")
    took = text.required(rf"^Time taken for tests:\s+({text.NUMBER}) ", piece, "'Time taken'")
    complete = text.required(r"^Complete requests:\s+(\d+)", piece, "'Complete requests'")
    text.required(r"^Transfer rate:\s+", piece, "'Transfer rate'")

    requests, took_ns = text.count(complete[1]), text.seconds_ns(took[1])
    reused = text.find_count(r"^Keep-Alive requests:\s+(\d+)", piece)
    return msgspec.structs.replace(
        _times(piece),
        load="closed",
        connections=text.count(connections[1]) or None,
        achieved_per_s=requests * 1e9 / took_ns if took_ns else None,
        duration_ns=took_ns,
        requests=requests,
        errors=_errors(piece),
        keepalive=reused is not None,
        reused=reused,
        resolution_ns=_MILLISECOND_NS,
        mean_resolution_ns=_MILLISECOND_NS,
    )


def _errors(piece: str) -> dict[ErrorKind, int]:
    match = text.find(_FAILURES, piece)
    numbers = [text.count(one) for one in match.groups()] if match else [0] * 4
    errors = dict(zip(_FAILURE_KINDS, numbers, strict=True))
    errors["write"] = text.find_count(r"^Write errors:\s+(\d+)", piece) or 0
    errors["status"] = text.find_count(r"^Non-2xx responses:\s+(\d+)", piece) or 0
    return text.present(errors)


def _times(piece: str) -> Figures:
    total = text.find(_TOTAL, piece)
    if total is None:
        return Figures()
    least, mean, deviation, _, longest = (text.milliseconds_ns(one) for one in total.groups())
    return Figures(
        min_ns=least,
        mean_ns=mean,
        deviation_ns=deviation,
        max_ns=longest,
        transfer_ns=_transfer_ns(piece),
        quantiles_ns={
            f"{int(percent) / 100:.10g}": text.milliseconds_ns(value)
            for percent, value in _QUANTILE.findall(piece)
            if int(percent) < 100
        },
    )


def _transfer_ns(piece: str) -> int | None:
    """The time from the first to the last byte, in whole milliseconds."""
    means = [text.find(rf"^{row}:\s+\d+\s+(\d+) ", piece) for row in ("Processing", "Waiting")]
    if None in means:
        return None
    last, first = (text.milliseconds_ns(one[1]) for one in means if one is not None)
    return max(0, last - first)


AB = AuditTool("ab", text.has_line(_START), text.each_run(_START, _figures))
