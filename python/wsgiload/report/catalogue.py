"""What is known of servers: one in full, and the table of what was checked, for the terminal and as
Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wsgiload.catalogue.names import Catalogue, ServerVariant

Row = Mapping[str, Any]

_SIGNS = {
    True: Text("yes", style="green"),
    False: Text("NO", style="bold red"),
    None: Text("–", style="dim"),
}
FULL_WIDTH = 200
_WORDS = {True: "yes", False: "**no**", None: "–"}
# Proven or not, of what a server has to do.
_PROOFS = (
    ("right body", "right_body"),
    ("keep-alive as claimed", "keepalive_as_claimed"),
    ("framing as claimed", "framing_as_claimed"),
    ("1 MiB echoed", "echo"),
    ("404, 500", "errors_passed"),
    ("PEP 3333", "conforms"),
    ("log silent", "quiet"),
    ("within budget", "within_budget"),
    ("clean stop", "clean_stop"),
)


def print_server(found: ServerVariant, console: Console) -> None:
    """Everything the catalogue says of one variant."""
    server, variant = found.server, found.variant
    console.print(
        Text(found.id, style="bold"), Text(f"{server.summary}; {variant.summary}"), sep="  "
    )
    needs = [needed.package for needed in found.needs]
    stock = variant.keeps_connections("stock")
    facts = {
        "homepage": server.homepage,
        "requirements": ", ".join(server.requirements) or "none",
        "Python": (server.pythons if server.serves_wsgi else "none")
        + (" (legacy)" if server.legacy else ""),
        "keep-alive": _yes(variant.keepalive)
        + ("" if stock == variant.keepalive else f", in stock {_yes(stock)}"),
        "framing": f"{variant.framing}, of a body without Content-Length",
        "Unix socket": _yes(variant.unix_socket),
        "needs": ", ".join(needs)
        or ("a C compiler" if server.needs_compiler else "no system packages"),
    }
    for name, value in facts.items():
        console.print(f"  {name + ':':14}{value}", highlight=False, markup=False, soft_wrap=True)
    for note in variant.notes:
        console.print(f"  · {note}", highlight=False, markup=False, soft_wrap=True)
    for note in variant.stock_notes:
        console.print(f"  · stock: {note}", highlight=False, markup=False, soft_wrap=True)
    console.print()


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def print_checks(rows: Iterable[Row], console: Console) -> None:
    """Server × property, each measured on a launched server; then what does not hold, in words.

    On a narrow terminal the proofs are counted instead of listed; a file or a pipe has room for
    all.
    """
    rows, width = list(rows), console.width
    console.width = width if console.is_terminal else max(width, FULL_WIDTH)
    console.print(_checks_table(rows, is_wide=console.width >= FULL_WIDTH))
    for sentence in _complaints(rows):
        console.print(sentence, style="red", highlight=False, markup=False, soft_wrap=True)
    console.width = width


def _checks_table(rows: Iterable[Row], *, is_wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    proofs = [name for name, _ in _PROOFS] if is_wide else ["proven"]
    for heading in ("server", "profile", "version", *proofs, "framing", "keep-alive"):
        table.add_column(heading, overflow="fold")
    for heading in ("backlog", "workers", "processes", "s to ready", "s to stop"):
        table.add_column(heading, justify="right")
    for row in rows:
        signs = [row[key] for _, key in _PROOFS]
        counted = Text(f"{signs.count(True)} of {len(signs) - signs.count(None)}")
        table.add_row(
            Text(
                row["server"] + (" (legacy)" if row["legacy"] else ""),
                style="" if row["passed"] else "red",
            ),
            row["profile"],
            row["version"] or "–",
            *([_SIGNS[sign] for sign in signs] if is_wide else [counted]),
            row["framing"] or "–",
            {True: "yes", False: "no", None: "–"}[row["keepalive"]],
            *(
                _number(row[key])
                for key in ("backlog", "workers_met", "processes", "ready_s", "stop_s")
            ),
        )
    return table


def _complaints(rows: Iterable[Row]) -> list[str]:
    said = []
    for row in rows:
        reasons = [*row["complaints"], *([row["failure"]] if row["failure"] is not None else [])]
        said += [f"{row['server']}: {reason}" for reason in reasons]
    return said


def markdown_catalogue(catalogue: Catalogue, rows: Sequence[Row]) -> str:
    """docs/servers.md: what a check of the catalogue found, and what cannot be run any more."""
    headings = [
        "server",
        "version",
        "Python",
        *(name for name, _ in _PROOFS),
        "backlog",
        "framing",
        "keep-alive",
        "at once",
    ]
    lines = [MARKDOWN_HEAD, _line(headings), _line(["---"] * len(headings))]
    for row in rows:
        capacity = row["capacity"] or {}
        lines.append(
            _line(
                [
                    row["server"] + (" (legacy)" if row["legacy"] else ""),
                    row["version"] or "–",
                    row["python"] or "–",
                    *(_WORDS[row[key]] for _, key in _PROOFS),
                    _number(row["backlog"]),
                    row["framing"] or "–",
                    _WORDS[row["keepalive"]].strip("*"),
                    _at_once(capacity),
                ]
            )
        )
    complaints = _complaints(rows)
    if complaints:
        lines += ["", "Failed checks:", "", *(f"- {sentence}" for sentence in complaints)]
    known = [found for found in catalogue.variants() if found.variant.deviation is not None]
    lines += ["", "## Known deviations from PEP 3333", ""]
    lines += [f"- `{found.id}`: {found.variant.deviation}." for found in known]
    refused = [found for found in catalogue.variants() if found.reason is not None]
    lines += [
        "",
        "## Not supported",
        "",
        *(f"- `{found.id}`: {found.reason}." for found in refused),
    ]
    return "\n".join(lines) + "\n"


MARKDOWN_HEAD = (
    "# Servers\n\n"
    "Made by `wsgiload servers check --all --markdown docs/servers.md`; do not edit. Each "
    "property was measured on a "
    "really launched server, tuned to two workers with two threads each, of the version that "
    "the table names. "
    "“Concurrent requests” is how many of 150 simultaneous requests were inside the app at the "
    "same time. "
    "`wsgiload servers show NAME` explains each setting.\n"
)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _at_once(capacity: Mapping[str, Any]) -> str:
    most, probed = capacity.get("requests_at_once"), capacity.get("probed")
    if most is None:
        return "–"
    return f"≥ {probed}" if most >= probed else str(most)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"
