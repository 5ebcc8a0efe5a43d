"""The text output of hey, which contains neither its connections nor its rate."""

from __future__ import annotations

import re
from collections import Counter

from wsgiload.audit import text
from wsgiload.audit.run import AuditTool
from wsgiload.documents.audit import ErrorKind, Figures

# Four decimal places of a second.
_STEP_NS = 100_000
# hey keeps the times of at most this many responses.
MAX_TIMES = 1_000_000
_START = r"^Summary:\s*\n\s+Total:\s+"
_QUANTILE = re.compile(rf"^\s*(\d+)%+ in ({text.NUMBER}) secs", re.MULTILINE)
_STATUS = re.compile(r"^\s*\[(\d{3})\]\s+(\d+) responses", re.MULTILINE)
_ERROR = re.compile(r"^\s*\[(\d+)\]\s+(.*)$", re.MULTILINE)
_ERRORS_TITLE = "Error distribution:"


def _figures(piece: str) -> Figures:
    took = text.required(rf"^\s+Total:\s+({text.NUMBER}) secs", piece, "'Total'")
    responses, _, broken = piece.partition(_ERRORS_TITLE)
    if not broken:
        text.required(r"^Status code distribution:", piece, "'Status code distribution'")
    statuses = {code: text.count(number) for code, number in _STATUS.findall(responses)}

    requests, took_ns = sum(statuses.values()), text.seconds_ns(took[1])
    return Figures(
        load="closed",
        achieved_per_s=requests * 1e9 / took_ns if took_ns else None,
        duration_ns=took_ns,
        requests=requests,
        timed_requests=min(requests, MAX_TIMES),
        errors=_errors(statuses, broken),
        min_ns=_seconds("Fastest", piece) if requests else None,
        mean_ns=_seconds("Average", piece) if requests else None,
        max_ns=_seconds("Slowest", piece) if requests else None,
        transfer_ns=_transfer_ns(piece) if requests else None,
        quantiles_ns={
            f"{int(percent) / 100:.10g}": text.seconds_ns(value)
            for percent, value in _QUANTILE.findall(piece)
            if requests
        },
        resolution_ns=_STEP_NS,
        mean_resolution_ns=_STEP_NS,
    )


def _seconds(name: str, piece: str) -> int | None:
    match = text.find(rf"^\s+{name}:\s+({text.NUMBER}) secs", piece)
    return None if match is None else text.seconds_ns(match[1])


def _transfer_ns(piece: str) -> int | None:
    match = text.find(rf"^\s+resp read:\s+({text.NUMBER}) secs", piece)
    return None if match is None else text.seconds_ns(match[1])


def _errors(statuses: dict[str, int], broken: str) -> dict[ErrorKind, int]:
    errors: Counter[ErrorKind] = Counter()
    errors["status"] = sum(number for code, number in statuses.items() if code >= "400")
    for number, message in _ERROR.findall(broken):
        errors[text.kind_of_error(message)] += text.count(number)
    return text.present(errors)


HEY = AuditTool("hey", text.has_line(_START), text.each_run(_START, _figures))
