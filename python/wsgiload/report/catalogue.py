"""The catalogue entry of one server, and the table of check results, for the terminal and as
Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wsgiload.catalogue.names import Catalogue, ServerVariant

if TYPE_CHECKING:
    from wsgiload.catalogue.contract import Variant
    from wsgiload.serving.check import CheckResult
    from wsgiload.serving.concurrency import Concurrency

_SIGNS = {
    True: Text("yes", style="green"),
    False: Text("NO", style="bold red"),
    None: Text("–", style="dim"),
}
FULL_WIDTH = 200
# The requirements for every server, each with the result of its check.
_CHECKS: tuple[tuple[str, Callable[[CheckResult], bool | None]], ...] = (
    ("correct body", lambda result: result.right_body),
    ("keep-alive as declared", lambda result: result.keepalive_as_claimed),
    ("framing as declared", lambda result: result.framing_as_claimed),
    ("1 MiB echoed", lambda result: result.echo),
    ("404, 500", lambda result: result.errors_passed),
    ("PEP 3333", lambda result: result.conforms),
    ("32 KiB head", lambda result: result.large_head),
    ("X-Forwarded-Proto trusted", lambda result: result.forwarded),
    ("no log output", lambda result: result.quiet),
    ("no extra processes", lambda result: result.within_budget),
    ("clean stop", lambda result: result.clean_stop),
)


def print_server(entry: ServerVariant, console: Console) -> None:
    """Print the full catalogue entry of one variant."""
    server, variant = entry.server, entry.variant
    console.print(
        Text(entry.id, style="bold"), Text(f"{server.summary}; {variant.summary}"), sep="  "
    )
    needs = [needed.package for needed in entry.needs]
    stock = variant.keeps_connections("stock")
    facts = {
        "homepage": server.homepage,
        "requirements": ", ".join(server.requirements) or "none",
        "Python": (server.pythons if server.serves_apps else "none")
        + (" (legacy)" if server.legacy else ""),
        "interface": variant.interface.upper() if server.serves_apps else "none",
        "keep-alive": _yes(variant.keepalive)
        + ("" if stock == variant.keepalive else f" (stock: {_yes(stock)})"),
        "framing": f"{variant.framing} (if the app sets no Content-Length)",
        "request head": _head_words(variant),
        "forwarded": _forwarding_words(entry),
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


def _head_words(variant: Variant) -> str:
    return "at least 32 KiB" if variant.head_limit is None else variant.head_limit


def _forwarding_words(entry: ServerVariant) -> str:
    if not entry.server.serves_apps:
        return "not applicable"
    known = entry.variant.no_trusted_proxies
    return "X-Forwarded-* trusted from this host" if known is None else f"not trusted: {known}"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def print_checks(results: Iterable[CheckResult], console: Console) -> None:
    """Print one row per server with the properties measured on it, then a sentence per failure.

    On a narrow terminal, passed checks are only counted; a file or a pipe gets all columns.
    """
    results, width = list(results), console.width
    console.width = width if console.is_terminal else max(width, FULL_WIDTH)
    console.print(_checks_table(results, is_wide=console.width >= FULL_WIDTH))
    for sentence in _complaints(results):
        console.print(sentence, style="red", highlight=False, markup=False, soft_wrap=True)
    console.width = width


def _checks_table(results: Iterable[CheckResult], *, is_wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    checks = [name for name, _ in _CHECKS] if is_wide else ["passed"]
    for heading in ("server", "profile", "version", *checks, "framing", "keep-alive"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "passed")
    for heading in ("backlog", "workers", "processes", "startup (s)", "shutdown (s)"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(*_checks_row(result, is_wide=is_wide))
    return table


def _checks_row(result: CheckResult, *, is_wide: bool) -> list[str | Text]:
    passed = [check(result) for _, check in _CHECKS]
    counted = Text(f"{passed.count(True)} of {len(passed) - passed.count(None)}")
    numbers = (
        result.backlog,
        result.workers_met,
        result.processes,
        result.ready_s,
        result.stop_s,
    )
    return [
        Text(_name(result), style="" if result.passed else "red"),
        result.profile,
        result.version or "–",
        *([_SIGNS[sign] for sign in passed] if is_wide else [counted]),
        result.framing or "–",
        {True: "yes", False: "no", None: "–"}[result.keepalive],
        *(_number(number) for number in numbers),
    ]


def _name(result: CheckResult) -> str:
    return result.server + (" (legacy)" if result.legacy else "")


def _complaints(results: Iterable[CheckResult]) -> list[str]:
    complaints = []
    for result in results:
        failures = [] if result.failure is None else [result.failure]
        reasons = [*result.complaints, *failures]
        complaints += [f"{result.server}: {reason}" for reason in reasons]
    return complaints


def markdown_catalogue(catalogue: Catalogue, results: Sequence[CheckResult]) -> str:
    """docs/servers.md: the results of the checks, and the servers that no longer run."""
    headings = ["server", "version", "Python", "framing", "keep-alive", "concurrent requests"]
    lines = [MARKDOWN_HEAD, _line(headings), _line(["---"] * len(headings))]
    lines += [_line(_markdown_row(result)) for result in results]

    complaints = _complaints(results)
    if complaints:
        lines += ["", "Failed checks:", "", *(f"- {sentence}" for sentence in complaints)]

    deviating = [entry for entry in catalogue.variants() if entry.variant.deviation is not None]
    lines += ["", "## Known deviations from PEP 3333 and ASGI", ""]
    lines += [f"- `{entry.id}`: {entry.variant.deviation}." for entry in deviating]

    lines += _by_reason(
        "Request heads or header fields limited to less than 32 KiB",
        catalogue,
        lambda one: one.head_limit,
    )
    lines += _by_reason(
        "Responses of several writes delayed by 40 ms (Nagle's algorithm)",
        catalogue,
        lambda one: one.delays_writes,
    )
    lines += _by_reason(
        "`X-Forwarded-Proto` not trusted", catalogue, lambda one: one.no_trusted_proxies
    )

    refused = [entry for entry in catalogue.variants() if entry.reason is not None]
    lines += ["", "## Not supported", ""]
    lines += [f"- `{entry.id}`: {entry.reason}." for entry in refused]
    return "\n".join(lines) + "\n"


def _by_reason(
    heading: str, catalogue: Catalogue, reason_of: Callable[[Variant], str | None]
) -> list[str]:
    """A section with one line per reason, each with all of its servers."""
    names: dict[str, list[str]] = {}
    for entry in catalogue.variants():
        reason = reason_of(entry.variant)
        if reason is not None:
            names.setdefault(reason, []).append(f"`{entry.id}`")
    lines = [f"- {', '.join(those)}: {reason}." for reason, those in names.items()]
    return ["", f"## {heading}", "", *lines] if lines else []


def _markdown_row(result: CheckResult) -> list[str]:
    return [
        _name(result),
        result.version or "–",
        result.python or "–",
        result.framing or "–",
        {True: "yes", False: "no", None: "–"}[result.keepalive],
        _concurrent_requests(result.capacity),
    ]


MARKDOWN_HEAD = (
    "# Servers\n\n"
    "Generated by `wsgiload servers check --all --markdown docs/servers.md`; do not edit. Measured "
    "on running servers in the [tuned profile](terminology.md#what-is-run) with two workers and "
    "two threads per worker, if the server supports these. `wsgiload servers show NAME` explains "
    "each setting. A dash means that nothing applies or was measured; *legacy* servers are no "
    "longer maintained, or need an unmaintained Python.\n\n"
    "Each server passed the [check](adding-a-server.md#3-check-it), except for what is listed "
    "below. *Framing* is how a body is sent if the app sets no "
    "Content-Length; `close` ends it with the connection. *Concurrent requests* is how many of 150 "
    "simultaneous requests the app handled at once.\n"
)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _concurrent_requests(concurrency: Concurrency | None) -> str:
    if concurrency is None or concurrency.requests_at_once is None:
        return "–"
    most, probed = concurrency.requests_at_once, concurrency.probed
    return f"≥ {probed}" if most >= probed else str(most)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,g}"
