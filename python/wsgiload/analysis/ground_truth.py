"""Checks C17 and C18: the generator's account of a load against those of others. Pure.

Source of both: the verdict table of the method (docs/checks.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wsgiload.documents.codec import plain_reason
from wsgiload.sampling.external_counters import OutsideCounts, TcpCounts

Json = Mapping[str, Any]
Blame = Literal["client", "server"]
Limits = Mapping[str, float]

NO_COUNT = (
    "the app did not count its requests: the bundled apps do, where the server passes "
    "on its environment and may write"
)
WRONG_STATUSES = "some responses had another status and may not come from the app"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: whose doing, how grave, in words."""

    check: str
    blame: Blame
    level: Literal["warn", "invalid"]
    message: str
    value: float
    limit: float

    def reason(self) -> dict[str, Any]:
        """As a verdict lists it."""
        return plain_reason(self.check, self.level, self.message, self.value, self.limit)


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A check that could not look."""

    check: str
    reason: str

    def to_dict(self) -> dict[str, str]:
        """An entry of ``not_checked``."""
        return {"check": self.check, "reason": self.reason}


def requests_seen(load: Json, seen: int | None, limits: Limits) -> Finding | NotChecked | None:
    """C17: the app was called at least as often as it answered, and at most as often as it was sent
    a request.

    Over the whole load, warm-up and cool-down included. Where every request was answered both
    bounds are one number.
    """
    answered = answered_in_all(load)
    if seen is None or answered is None:
        return NotChecked("app-calls", NO_COUNT if seen is None else "no request was answered")
    if load["outcomes"]["http_status"]:
        return NotChecked("app-calls", WRONG_STATUSES)
    sent = sent_at_most(load)
    difference = max(answered - seen, seen - sent, 0)
    share = difference / sent
    if share <= limits["warn"]:
        return None
    level: Literal["warn", "invalid"] = "invalid" if share > limits["invalid"] else "warn"
    message = (
        f"the app was called {seen:,} times, the generator sent it {sent:,} requests at most "
        f"and had {answered:,} "
        "answers: the two accounts differ"
    )
    return Finding("app-calls", "client", level, message, share, limits[level])


def answered_in_all(load: Json) -> int | None:
    """Complete answers of the whole load; the report has the generator's CPU time in all and for
    each of them."""
    client = load["client"]
    if not client["cpu_per_request_ns"] or not client["cpu_seconds"]:
        return None
    return round(float(client["cpu_seconds"]) * 1e9 / float(client["cpu_per_request_ns"]))


def sent_at_most(load: Json) -> int:
    """Requests of the whole load that may have reached the app: the first of each connection, and
    all after it."""
    connections = load["connections"]
    return int(connections["opened"]) + int(connections["reused"])


def connections_dropped(tcp: TcpCounts, limits: Limits) -> Finding | NotChecked | None:
    """C18: the kernel turned connections away while the load ran, at this server's listening
    sockets or at another's.

    It counts for its whole network namespace. A connection attempt is repeated after 1, 3 and 7 s
    (RFC 6298).
    """
    counts = {
        "overflows of accept queues": tcp.listen_overflows,
        "connections dropped by listening sockets": tcp.listen_drops,
        "drops at full request queues": tcp.request_queue_full_drops,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    if not known:
        return NotChecked("kernel-drops", "the kernel's TCP counters cannot be read")
    most = max(known.values())
    if most <= limits["warn"]:
        return None
    said = ", ".join(f"{count:,} {name}" for name, count in known.items() if count)
    message = (
        f"kernel counters of this host during the load: {said}; retries add 1, 3 or 7 s "
        "to the slowest times"
    )
    return Finding("kernel-drops", "server", "warn", message, most, limits["warn"])


def retransmissions(tcp: TcpCounts) -> str | None:
    """``kernel-drops`` as an annotation: a host's other connections lose segments, too, so that the
    verdict does not hang on it.

    A segment that is not acknowledged is sent again after 0.2 s (Linux), or sooner where later ones
    show the loss. How many there were is in ``external_counts`` and not in the sentence, which is
    the same for every cell.
    """
    if not tcp.retransmitted_segments:
        return None
    return (
        "TCP retransmissions on this host during the load (see `external_counts`); one of this "
        "load would delay a response by 0.2 s or more"
    )


def check_outside(
    load: Json, counts: OutsideCounts | None, thresholds: Mapping[str, Limits]
) -> list[Finding | NotChecked]:
    """What ``app-calls`` and ``kernel-drops`` say of a load; nothing of one that was not
    watched."""
    if counts is None:
        return []
    looked = (
        requests_seen(load, counts.requests_seen, thresholds["app-calls"]),
        connections_dropped(counts.tcp, thresholds["kernel-drops"]),
    )
    return [found for found in looked if found is not None]
