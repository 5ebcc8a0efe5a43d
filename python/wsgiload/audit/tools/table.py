"""A summary table in CSV: rows are servers, columns are numbers of connections, cells are requests
per second. Below other titles, its other quantities are not read."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from wsgiload.audit import text
from wsgiload.audit.run import AuditTool, Part
from wsgiload.documents.audit import Figures
from wsgiload.errors import UsageError

_TITLE = re.compile(r"req|rps|throughput", re.IGNORECASE)
_HEAD = r"^\"?(?:server|name|framework)\"?(?:,\"?\d+\"?)+$"


def part_name(server: str, level: int) -> str:
    """The name of a cell's result."""
    return f"{server} at {level}"


def _parse(content: str) -> Sequence[Part]:
    rows = list(csv.reader(content.splitlines()))
    head = next(place for place, row in enumerate(rows) if re.match(_HEAD, ",".join(row), re.I))
    title = " ".join(rows[head - 1]) if head else ""
    if title.strip() and not _TITLE.search(title):
        raise UsageError("its first table has no requests per second", "save one that has")
    levels = [text.count(one) for one in rows[head][1:]]
    parts: list[Part] = []
    for row in rows[head + 1 :]:
        if len(row) != len(levels) + 1:
            break
        for level, cell in zip(levels, row[1:], strict=True):
            if cell.strip():  # an empty cell is a missing result, not 0
                if not re.fullmatch(text.NUMBER, cell.strip()):
                    raise UsageError(f"{text.quoted(cell)!r} is not a number")
                figures = Figures(connections=level or None, achieved_per_s=float(cell))
                parts.append(Part(figures, part_name(text.quoted(row[0]), level)))
    return parts


TABLE = AuditTool(
    "summary table", lambda content: re.search(_HEAD, content, re.M | re.I) is not None, _parse
)
