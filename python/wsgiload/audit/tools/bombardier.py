"""The text output of bombardier, which contains no rate."""

from __future__ import annotations

import re
from collections import Counter

from wsgiload.audit import text
from wsgiload.audit.run import ALL_ERRORS, AuditTool
from wsgiload.documents.audit import ErrorKind, Figures
from wsgiload.units import NS_PER_S

_START = r"^Bombarding .+ using \d+ connection"
_CONNECTIONS = r"^Bombarding .+ using (\d+) connection"
_LATENCY = rf"^\s+Latency\s+({text.DURATION})\s+({text.DURATION})\s+({text.DURATION})\s*$"
_QUANTILE = re.compile(rf"^\s+(\d+)%\s+({text.DURATION})\s*$", re.MULTILINE)
_CODES = r"1xx - (\d+), 2xx - (\d+), 3xx - (\d+), 4xx - (\d+), 5xx - (\d+)"
_ERROR = re.compile(r"^\s+(.+) - (\d+)\s*$", re.MULTILINE)


def _figures(piece: str) -> Figures:
    connections = text.required(_CONNECTIONS, piece, "the connections")
    mean_per_s = text.required(rf"^\s+Reqs/sec\s+({text.NUMBER})", piece, "'Reqs/sec'")
    mean, deviation, longest = text.required(_LATENCY, piece, "'Latency'").groups()
    codes = text.required(_CODES, piece, "'HTTP codes'")
    text.required(r"^\s+Throughput:", piece, "'Throughput'")

    statuses = [text.count(number) for number in codes.groups()]
    requests = sum(statuses)
    took = text.find(rf"^Bombarding .+ for ({text.DURATION}) using", piece)
    took_ns = None if took is None else text.duration_ns(took[1])
    return Figures(
        load="closed",
        connections=text.count(connections[1]) or None,
        achieved_per_s=requests * NS_PER_S / took_ns if took_ns else float(mean_per_s[1]),
        duration_ns=took_ns,
        requests=requests,
        errors=_errors(piece, statuses),
        mean_ns=text.duration_ns(mean) if requests else None,
        deviation_ns=text.duration_ns(deviation) if requests else None,
        max_ns=text.duration_ns(longest) if requests else None,
        quantiles_ns={
            f"{int(percent) / 100:.10g}": text.duration_ns(value)
            for percent, value in _QUANTILE.findall(piece)
            if requests
        },
    )


def _errors(piece: str, statuses: list[int]) -> dict[ErrorKind, int]:
    errors: Counter[ErrorKind] = Counter()
    errors["status"] = sum(statuses[3:])
    _, _, listed = piece.partition("  Errors:")
    for message, number in _ERROR.findall(listed.partition("  Throughput:")[0]):
        errors[text.kind_of_error(message)] += text.count(number)
    return text.present(errors)


BOMBARDIER = AuditTool(
    "bombardier", text.has_line(_START), text.each_run(_START, _figures), ALL_ERRORS
)
