"""Quantiles with too few requests beyond them."""

from __future__ import annotations

from wsgiload.analysis.absence import MIN_BEYOND, enough_requests, min_requests
from wsgiload.audit.run import Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding
from wsgiload.report.words import (
    format_count,
    quantile_name,
)

# Some tools always print higher quantiles, but these are rarely published.
MAX_QUANTILE = 0.99
TOO_FEW_REQUESTS = Finding(
    name="too-few-requests",
    examines="other tools' results: the number of requests beyond the highest reported quantile "
    "from p50 to p99",
    premise=f"Fewer than {MIN_BEYOND} requests lie beyond the quantile, so another run may give a "
    "very different value.",
    fix="send more requests, or quote a lower quantile",
)


def too_few_requests(run: Run) -> AuditAlarm | None:
    """The highest quantile up to p99 is based on too few requests."""
    figures = run.figures
    count = figures.requests if figures.timed_requests is None else figures.timed_requests
    printed = sorted(
        float(key) for key in figures.quantiles_ns if 0.5 <= float(key) <= MAX_QUANTILE
    )
    if not printed or not count or not figures.requests or enough_requests(count, printed[-1]):
        return None

    highest = printed[-1]
    reliable = [quantile for quantile in printed if enough_requests(count, quantile)]
    alternative = f", or quote only {quantile_name(reliable[-1])} and lower" if reliable else ""
    beyond = count * (1 - highest)
    return alarm(
        TOO_FEW_REQUESTS,
        f"{quantile_name(highest)} is based on too few requests: a repeated run may give a very "
        "different value",
        arithmetic=f"{format_count(count)} requests × {1 - highest:.10g} = {beyond:.3g} beyond "
        f"{quantile_name(highest)} (at least {MIN_BEYOND})",
        fix=f"send at least {format_count(min_requests(highest))} requests{alternative}",
        value=beyond,
        limit=MIN_BEYOND,
    )
