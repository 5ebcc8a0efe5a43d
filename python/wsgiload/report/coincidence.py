"""What coincided with the load of a cell, in words. Pure.

The words never name a reason for a latency: what was observed coincided. Only an intervention,
which took the limit away and put it back at random, may say what that changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wsgiload.report import words
from wsgiload.report.cells import Cell, lookup

NAMES = {
    "oom_kill": "OOM kill",
    "throttling": "throttling",
    "contention": "CPU contention",
    "pause": "pause inside",
    "backlog_overflow": "full accept queue",
    "memory_pressure": "memory pressure",
    "worker_imbalance": "one busy worker",
}
# Which stretches of time belong to a fingerprint, and what they are called.
_SIGNALS = {
    "throttling": ("throttled", "a throttled period"),
    "contention": ("without_cpu", "such a time"),
    "pause": ("paused", "such a pause"),
    "memory_pressure": ("short_of_memory", "such a time"),
}


def names(cell: Cell) -> str:
    """The fingerprints of a cell in a few words, for a column of a table."""
    if lookup(cell.raw, "attribution") is None:
        return words.MISSING
    found = [NAMES[str(one["name"])] for one in lookup(cell.raw, "attribution", "fingerprints")]
    return ", ".join(found) or "nothing found"


def fingerprints(cell: Cell) -> list[Mapping[str, Any]]:
    """The fingerprints of a cell."""
    return list(lookup(cell.raw, "attribution", "fingerprints") or ())


def sentence(cell: Cell, fingerprint: Mapping[str, Any]) -> str:
    """One fingerprint in words, with how many requests overlapped it where that is known."""
    said = f"This load coincided with: {fingerprint['sentence']}."
    signal, called = _SIGNALS.get(str(fingerprint["name"]), ("", ""))
    exposures = lookup(cell.raw, "attribution", "exposures") or ()
    found = next((one for one in exposures if one["signal"] == signal), None)
    return f"{said} {exposure_words(cell, found, called)}" if found is not None else said


def interventions(summary: Mapping[str, Any]) -> Iterator[str]:
    """What lifting a limit changed, server by server."""
    for trial in summary.get("interventions") or ():
        rate, connections = trial["rate"], trial["connections"]
        load = (
            words.format_per_s(rate)
            if rate is not None
            else words.plural(connections, "connection")
        )
        yield f"{trial['server']} at {load}: {' '.join(trial['sentences'])}"


def exposure_words(cell: Cell, exposure: Mapping[str, Any], called: str) -> str:
    """ "92.0 % [88.1 %, 95.3 %] of the slowest 1 % of the requests overlapped a throttled period,
    against …"."""
    slowest, every = exposure["slowest"], exposure["all"]
    resolution_ns = lookup(cell.raw, "attribution", "resolution_ns")
    return (
        f"{_share(slowest)} of {slowest_words(cell)} overlapped {called}, against "
        f"{_share(every)} of all "
        f"(told apart to ±{words.format_duration_ns(resolution_ns)})."
    )


def slowest_words(cell: Cell) -> str:
    """Which requests count as the slowest."""
    count, ratio = (
        lookup(cell.raw, "attribution", "slowest"),
        lookup(cell.raw, "attribution", "slowest_ratio"),
    )
    if ratio is not None and 0.0099 <= ratio <= 0.0101:
        return "the slowest 1 % of the requests"
    return f"the {words.format_count(count)} slowest requests ({words.format_ratio(ratio)} of them)"


def _share(share: Mapping[str, Any]) -> str:
    value = words.format_ratio(share["value"])
    if share["low"] is None or share["high"] is None:
        return value
    return f"{value} [{words.format_ratio(share['low'])}, {words.format_ratio(share['high'])}]"
