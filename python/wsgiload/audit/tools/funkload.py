"""The report of FunkLoad (``index.rst``): one run per cycle, with its pages, or with its requests
if it has no pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wsgiload.audit import text
from wsgiload.audit.run import ALL_ERRORS, AuditTool, Part
from wsgiload.documents.audit import Figures
from wsgiload.errors import UsageError

_STEP_NS = 1_000_000
_TITLE = r"^FunkLoad_? bench report"
_DURATION = rf"^\* Cycle duration: ({text.NUMBER})s"
# The columns with the throughput of all pages and of all requests.
_RATES = ("SPPS", "RPS")
_QUANTILES = {"P10": "0.1", "MED": "0.5", "P90": "0.9", "P95": "0.95"}
_RULE = re.compile(r"\s*=+(?:\s+=+)+\s*")

Row = Mapping[str, str]


def _parse(content: str) -> Sequence[Part]:
    duration = text.required(_DURATION, content, "'Cycle duration'")
    lines = content.split("\n")
    for rate in _RATES:
        rows = _table(lines, rate, content)
        if rows:
            return [_part(row, rate, text.seconds_ns(duration[1])) for row in rows]
    text.cut_off(content, "the table 'Page stats'")


def _table(lines: Sequence[str], rate: str, content: str) -> list[Row]:
    """The rows below the heading with this column, up to the closing rule."""
    begin = next((place for place, line in enumerate(lines) if _is_heading(line, rate)), None)
    if begin is None:
        return []
    names = lines[begin].split()
    rows: list[Row] = []
    for line in lines[begin + 2 :]:
        if _RULE.fullmatch(line):
            return rows
        values = line.split()
        if len(values) != len(names):
            break
        rows.append(dict(zip(names, values, strict=True)))
    text.cut_off(content, f"the end of the table with {rate}")


def _is_heading(line: str, rate: str) -> bool:
    words = line.split()
    return words[:1] == ["CUs"] and rate in words and "AVG" in words


def _part(row: Row, rate: str, duration_ns: int) -> Part:
    requests, good = text.count(row["TOTAL"]), text.count(row["SUCCESS"])
    users = text.count(row["CUs"])
    figures = Figures(
        load="closed",
        connections=users or None,
        achieved_per_s=_number(row[rate]),
        duration_ns=duration_ns,
        requests=requests,
        errors=text.present({"other": requests - good}),
        min_ns=_ns(row["MIN"]) if requests else None,
        mean_ns=_ns(row["AVG"]) if requests else None,
        max_ns=_ns(row["MAX"]) if requests else None,
        quantiles_ns=_quantiles(row) if requests else {},
        resolution_ns=_STEP_NS,
    )
    return Part(figures, f"{users:,} users")


def _quantiles(row: Row) -> dict[str, int]:
    """FunkLoad writes -1 for an unknown quantile."""
    return {
        key: _ns(row[name])
        for name, key in _QUANTILES.items()
        if name in row and not row[name].startswith("-")
    }


def _number(content: str) -> float:
    try:
        return max(0.0, float(content))
    except ValueError:
        raise UsageError(f"{text.quoted(content)!r} is not a number") from None


def _ns(seconds: str) -> int:
    return round(_number(seconds) * 1e9)


FUNKLOAD = AuditTool("funkload", text.has_line(_TITLE), _parse, ALL_ERRORS, pauses=True)
