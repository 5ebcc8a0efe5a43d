"""The checks ``app-calls`` and ``kernel-drops``, which compare the generator's report with external
counters. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from wsgiload.documents.load_report import LoadReport, NotChecked
from wsgiload.findings.finding import Finding, Fired
from wsgiload.loads.thresholds import ORCHESTRATOR_THRESHOLDS
from wsgiload.sampling.external_counters import ExternalReading, TcpCounts
from wsgiload.units import NS_PER_S

Limits = Mapping[str, float]

NO_COUNT = (
    "the app did not count its requests; only the bundled apps do, if the server passes on its "
    "environment and may write files"
)
WRONG_STATUSES = "some responses had an unexpected status and may not come from the app"


APP_CALLS = Finding(
    name="app-calls",
    examines="the calls counted by a bundled app, compared with the requests and responses counted "
    "by the generator",
    premise="The counts differ by more than `warn` or `invalid` (shares of the requests sent), so "
    "at least one of them is wrong.",
    consequence="the app's call count does not match the number of requests, so some responses may "
    "not come from the app",
    fix="file a bug and attach the run directory",
    blame="client",
    thresholds=dict(ORCHESTRATOR_THRESHOLDS["app-calls"]),
)


def requests_seen(load: LoadReport, calls: int | None, limits: Limits) -> Fired | NotChecked | None:
    """``app-calls``: the app was called at least once per response and at most once per sent
    request.

    Counts the whole load, including warm-up and cool-down. If every request got its response, both
    bounds are equal.
    """
    responses = total_responses(load)
    sent = max_sent_requests(load)
    if calls is None:
        return NotChecked(check=APP_CALLS.name, reason=NO_COUNT)
    if responses is None or sent is None:
        return NotChecked(check=APP_CALLS.name, reason="no request got a response")
    if load.outcomes.http_status:
        return NotChecked(check=APP_CALLS.name, reason=WRONG_STATUSES)

    difference = max(responses - calls, calls - sent, 0)
    share = difference / sent
    if share <= limits["warn"]:
        return None
    level: Literal["warn", "invalid"] = "invalid" if share > limits["invalid"] else "warn"
    message = (
        f"the app counted {calls:,} calls, but the generator sent at most {sent:,} requests and "
        f"got {responses:,} responses"
    )
    return APP_CALLS.fired(message, share, limits[level], level=level)


def total_responses(load: LoadReport) -> int | None:
    """Complete responses of the whole load, from the generator's CPU time in total and per
    response."""
    client = load.client
    if client is None or not client.cpu_per_request_ns or not client.cpu_seconds:
        return None
    return round(client.cpu_seconds * NS_PER_S / client.cpu_per_request_ns)


def max_sent_requests(load: LoadReport) -> int | None:
    """Requests of the whole load that may have reached the app: the first of each connection and
    all reused ones. None if connections were not recorded."""
    connections = load.connections
    if connections is None or connections.reused is None:
        return None
    return connections.opened + connections.reused


# The client's kernel repeats an attempt after 1 s; its timer may be a little early.
FIRST_REPEAT_NS = 900_000_000

KERNEL_DROPS = Finding(
    name="kernel-drops",
    examines="the kernel's counters of accept queue overflows and drops during the load",
    premise="A counter exceeds `warn`: a listening socket of this host dropped connection "
    "attempts. The client's kernel repeats them after 1, 3 and 7 s, so the affected requests are "
    "among the slowest. At least one connection of the load took that long, or a request got no "
    "response in time: otherwise, the drops belong to other connections.",
    sighting="this host dropped connections in",
    consequence="the slowest response times include 1, 3 or 7 s of a second attempt",
    fix="raise the server's listen backlog, or lower the rate",
    thresholds=dict(ORCHESTRATOR_THRESHOLDS["kernel-drops"]),
)


def connections_dropped(tcp: TcpCounts, limits: Limits) -> Fired | NotChecked | None:
    """``kernel-drops``: the kernel dropped connections during the load, at the listening sockets of
    this or another server.

    The counter covers the whole network namespace. Clients retry a connection after 1, 3 and 7 s
    (RFC 6298).
    """
    counts = {
        "accept queue overflows": tcp.listen_overflows,
        "connections dropped by listening sockets": tcp.listen_drops,
        "drops at full request queues": tcp.request_queue_full_drops,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    if not known:
        reason = "the kernel's TCP counters cannot be read"
        return NotChecked(check=KERNEL_DROPS.name, reason=reason)

    max_count = max(known.values())
    if max_count <= limits["warn"]:
        return None
    counters = ", ".join(f"{count:,} {name}" for name, count in known.items() if count)
    message = (
        f"this host dropped connections during the load ({counters}), so SYN retransmissions add "
        "1, 3 or 7 s to the slowest response times"
    )
    return KERNEL_DROPS.fired(message, max_count, limits["warn"])


def retransmissions(tcp: TcpCounts) -> str | None:
    """Retransmissions as an annotation. Other connections of the host lose segments, too, so the
    verdict does not depend on them.

    Linux retransmits an unacknowledged segment after 0.2 s, or earlier if later segments show the
    loss. ``external_counts`` contains the number; the sentence is the same for every cell.
    """
    if not tcp.retransmitted_segments:
        return None
    return (
        "this host retransmitted TCP segments during the load (see `external_counts`), which may "
        "have delayed responses by 0.2 s or more"
    )


def check_external_counts(
    load: LoadReport, counts: ExternalReading | None, thresholds: Mapping[str, Limits]
) -> list[Fired | NotChecked]:
    """The results of ``app-calls`` and ``kernel-drops``; empty without external counters."""
    if counts is None:
        return []
    drops = connections_dropped(counts.tcp, thresholds[KERNEL_DROPS.name])
    results = (
        requests_seen(load, counts.requests_seen, thresholds[APP_CALLS.name]),
        None if isinstance(drops, Fired) and not _may_be_affected(load) else drops,
    )
    return [result for result in results if result is not None]


def _may_be_affected(load: LoadReport) -> bool:
    """Whether a connection of the load was as late as a repeated attempt, or a request got no
    response in time."""
    connects, outcomes = load.connect_time_ns, load.outcomes
    if connects is not None and (connects.max or 0) >= FIRST_REPEAT_NS:
        return True
    return bool(outcomes.connect_timeout or outcomes.timeout or outcomes.unfinished)
