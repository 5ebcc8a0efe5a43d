"""The CSV files of Locust: ``…_stats.csv``, ``…_stats_history.csv`` with its users, and
``…_requests.csv`` and ``…_distribution.csv`` of old versions; and the tables that it prints."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence

from wsgiload.audit import text
from wsgiload.audit.run import ALL_ERRORS, AuditTool, Part
from wsgiload.documents.audit import Figures
from wsgiload.errors import UsageError
from wsgiload.units import NS_PER_S

_MILLISECOND_NS = 1_000_000
# Column names of old versions.
_OLD = {
    "# requests": "Request Count",
    "# failures": "Failure Count",
    "Average response time": "Average Response Time",
    "Min response time": "Min Response Time",
    "Max response time": "Max Response Time",
    "Method": "Type",
}
_TOTALS = ("Aggregated", "Total", "None Total", "None Aggregated")
_HEADS = ("Type,Name,", "Method,Name,", "Name,# requests,")
_UNKNOWN = ("", "N/A", "None")
_NEEDED = ("Name", "Request Count", "Failure Count", "Average Response Time", "Requests/s")
_NEEDED_OF_HISTORY = ("Timestamp", "Name", "User Count", "Total Request Count")

# Old versions print the median last, after a bar, and no type.
_PRINTED_HEAD = r"^ *(?:Type +)?Name +# reqs +# fails +.*Avg +Min +Max .*$"
_PRINTED_ROW = (
    r"^ *(?P<name>\S.*?) +(?P<requests>\d+) +(?P<failures>\d+)\([\d.]+%\) +\|? *(?P<mean>\d+) +"
    r"(?P<min>\d+) +(?P<max>\d+) +\|? *(?P<median>\d+) +\|? *(?P<rate>[\d.]+)(?: |$)"
)

Row = Mapping[str, str]


def _head(content: str) -> str:
    return content.lstrip("\ufeff").partition("\n")[0].replace('"', "")


def _is_history(content: str) -> bool:
    return _head(content).startswith("Timestamp,User Count,Type,Name")


def _is_locust(content: str) -> bool:
    head = _head(content)
    is_stats = head.startswith(_HEADS) and ("Request Count" in head or "# requests" in head)
    return is_stats or _is_history(content) or text.find(_PRINTED_HEAD, content) is not None


def _parse(content: str) -> Sequence[Part]:
    if text.find(_PRINTED_HEAD, content):
        return _without_copy(_of_output(content))
    rows = _rows(content.lstrip("\ufeff"))
    if _is_history(content):
        return [_of_history(rows)]
    if _head(content).startswith(_HEADS[2]):
        parts = [_of_distribution(row) for row in rows]
    else:
        _require(rows, _NEEDED)
        parts = [_of_stats(row) for row in rows]
    if not any(part.is_total for part in parts):
        text.cut_off(content, "'Aggregated'")
    return _without_copy(parts)


def _without_copy(parts: Sequence[Part]) -> Sequence[Part]:
    """With a single URL, its row and the total are equal."""
    return parts if len(parts) > 2 else [part for part in parts if part.is_total]


def _of_output(content: str) -> list[Part]:
    """The last table, which covers the whole run, with the percentiles below it."""
    table = content[[match.end() for match in re.finditer(_PRINTED_HEAD, content, re.M)][-1] :]
    stats, _, percentiles = table.partition("Response time percentiles")
    quantiles = {}
    names = re.findall(rf"({text.NUMBER})%", percentiles.partition("# reqs")[0])
    for label, values in re.findall(r"^ *(\S.*?|)\s{2,}((?:\d+ +)+)\d+ *$", percentiles, re.M):
        row = dict(zip(names, values.split(), strict=False))
        quantiles[" ".join(label.split())] = {f"{name}%": row[name] for name in row}
    parts = []
    for found in re.finditer(_PRINTED_ROW, stats, re.M):
        label = " ".join(found["name"].split())
        row = {
            "Name": label,
            "Request Count": found["requests"],
            "Failure Count": found["failures"],
            "Average Response Time": found["mean"],
            "Min Response Time": found["min"],
            "Max Response Time": found["max"],
            "Requests/s": found["rate"],
        }
        parts.append(_of_stats({**row, **quantiles.get(label, {})}))
    if not any(part.is_total for part in parts):
        text.cut_off(content, "'Aggregated'")
    return parts


def _of_distribution(row: Row) -> Part:
    """Quantiles without throughput."""
    requests = round(_number(row["Request Count"]) or 0)
    is_total = row["Name"] in _TOTALS
    figures = Figures(
        requests=requests,
        quantiles_ns=_quantiles(row) if requests else {},
        resolution_ns=_MILLISECOND_NS,
    )
    return Part(figures, "all requests" if is_total else text.quoted(row["Name"]), is_total)


def _rows(content: str) -> list[Row]:
    head, *lines = csv.reader(content.splitlines())
    names = [_OLD.get(name, name) for name in head]
    filled = [line for line in lines if line]
    if any(len(line) != len(names) for line in filled):
        text.cut_off(content, f"all {len(names)} columns")
    return [dict(zip(names, line, strict=True)) for line in filled]


def _require(rows: Sequence[Row], names: Sequence[str]) -> None:
    if not rows:
        raise UsageError("it has a header but no rows", "repeat the run")
    missing = [name for name in names if name not in rows[0]]
    if missing:
        raise UsageError(f"the column {missing[0]!r} is missing", "export the file again")


def _of_stats(row: Row) -> Part:
    requests, rate = _number(row["Request Count"]) or 0, _number(row["Requests/s"])
    figures = Figures(
        achieved_per_s=rate,
        duration_ns=round(requests / rate * NS_PER_S) if rate else None,
        requests=round(requests),
        errors=text.present({"status": round(_number(row["Failure Count"]) or 0)}),
        min_ns=_ns(row.get("Min Response Time", "")) if requests else None,
        mean_ns=_ns(row["Average Response Time"]) if requests else None,
        max_ns=_ns(row.get("Max Response Time", "")) if requests else None,
        quantiles_ns=_quantiles(row) if requests else {},
        resolution_ns=_MILLISECOND_NS,
    )
    name = row["Name"]
    is_total = name in _TOTALS
    label = "all requests" if is_total else text.quoted(f"{row.get('Type', '')} {name}".strip())
    return Part(figures, label, is_total)


def _quantiles(row: Row) -> dict[str, int]:
    quantiles = {}
    for name, value in row.items():
        is_percent = name.endswith("%") and name[:-1].replace(".", "", 1).isdecimal()
        if is_percent and float(name[:-1]) < 100 and (value_ns := _ns(value)) is not None:
            quantiles[f"{float(name[:-1]) / 100:.10g}"] = value_ns
    return quantiles


def _of_history(rows: Sequence[Row]) -> Part:
    """The whole run, from its last row; the percentiles of a row only cover a few seconds."""
    _require(rows, _NEEDED_OF_HISTORY)
    totals = [row for row in rows if row["Name"] in _TOTALS and _number(row["User Count"])]
    if not totals:
        raise UsageError("no row has any users", "use the file ending in _stats.csv")
    last = totals[-1]
    users = max(_number(row["User Count"]) or 0 for row in totals)
    took_s = (_number(last["Timestamp"]) or 0) - (_number(totals[0]["Timestamp"]) or 0)
    requests = _number(last["Total Request Count"]) or 0

    return Part(
        Figures(
            connections=round(users),
            achieved_per_s=requests / took_s if took_s > 0 else None,
            duration_ns=round(took_s * NS_PER_S) if took_s > 0 else None,
            requests=round(requests),
            errors=text.present(
                {"status": round(_number(last.get("Total Failure Count", "")) or 0)}
            ),
            mean_ns=_ns(last.get("Total Average Response Time", "")) if requests else None,
            max_ns=_ns(last.get("Total Max Response Time", "")) if requests else None,
        )
    )


def _number(content: str) -> float | None:
    if content in _UNKNOWN:
        return None
    try:
        value = float(content)
    except ValueError:
        raise UsageError(f"{text.quoted(content)!r} is not a number") from None
    if not 0 <= value < 1e15:
        raise UsageError(f"{text.quoted(content)!r} is not a value that Locust writes")
    return value


def _ns(milliseconds: str) -> int | None:
    value = _number(milliseconds)
    return None if value is None else round(value * _MILLISECOND_NS)


LOCUST = AuditTool("locust", _is_locust, _parse, ALL_ERRORS, pauses=True)
