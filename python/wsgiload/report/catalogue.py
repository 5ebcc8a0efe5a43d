"""What is known of servers, for the terminal: one in full, and the table of what was checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wsgiload.catalogue import ServerVariant

_SIGNS = {True: Text("yes", style="green"), False: Text("NO", style="bold red"), None: Text("–", style="dim")}


def print_server(found: ServerVariant, console: Console) -> None:
    """Everything the catalogue says of one variant."""
    server, variant = found.server, found.variant
    console.print(Text(found.id, style="bold"), Text(f"{server.summary}; {variant.summary}"), sep="  ")
    facts = {
        "homepage": server.homepage,
        "requirements": ", ".join(server.requirements) or "standard library",
        "Python": server.pythons,
        "keep-alive": "yes" if variant.keepalive else "no",
        "needs": ", ".join(server.system_packages) if server.needs_compiler else "no compiler",
    }
    for name, value in facts.items():
        console.print(f"  {name + ':':14}{value}", highlight=False, markup=False, soft_wrap=True)
    for note in variant.notes:
        console.print(f"  · {note}", highlight=False, markup=False, soft_wrap=True)
    console.print()


def print_checks(rows: Iterable[Mapping[str, Any]], console: Console) -> None:
    """Server × property, each measured on a launched server."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("server", "version", "right body", "keep-alive", "as claimed", "backlog", "clean stop"):
        table.add_column(heading)
    table.add_column("s to ready", justify="right")
    table.add_column("s to stop", justify="right")
    failures = []
    for row in rows:
        if row["failure"] is not None:
            failures.append(f"{row['server']}: {row['failure']}")
        signs = [row["right_body"], row["keepalive"], row["keepalive_as_claimed"]]
        table.add_row(
            Text(row["server"], style="" if row["passed"] else "red"),
            row["version"] or "–",
            *(_SIGNS[sign] if sign is not False or place != 1 else Text("no") for place, sign in enumerate(signs)),
            _number(row["backlog"]),
            _SIGNS[row["clean_stop"]],
            _number(row["ready_s"]),
            _number(row["stop_s"]),
        )
    console.print(table)
    for failure in failures:
        console.print(failure, style="red", highlight=False, markup=False, soft_wrap=True)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"
