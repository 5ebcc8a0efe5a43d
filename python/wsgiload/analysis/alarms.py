"""Alarms: patterns that have led to wrong conclusions in published comparisons. Pure.

Each alarm is a function with a name, a limit, a message and the kind of publication that it would
have prevented. The generator's checks of itself are not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from wsgiload.analysis.aggregate import server_of
from wsgiload.analysis.alarm import Alarm
from wsgiload.analysis.limiting_variable import limiting_variables
from wsgiload.analysis.ranking import level_words
from wsgiload.analysis.response_alarms import wrong_responses
from wsgiload.analysis.service_alarms import IDLE_SHARE, bottleneck_and_fix, busy_service
from wsgiload.analysis.tail_alarms import delayed_acknowledgement, hidden_stalls
from wsgiload.doctor.machine import MAX_TRACKED_SHARE
from wsgiload.documents.cell_result import CellResult, ServiceUse
from wsgiload.documents.load_report import LoadReport
from wsgiload.sampling.memory_growth import MIN_GROWTH_BYTES, MemoryGrowth
from wsgiload.serving.cache_probe import CacheProbe
from wsgiload.units import NS_PER_S, duration_words

# littles-law: N = X (R + Z) holds in a closed loop that serves every user.
MIN_RESPONSE_LAW, MAX_RESPONSE_LAW = 0.9, 1.1
# uneven-connections: one user is served this many times as often as the average, or the least
# served user hardly at all.
MAX_UNFAIRNESS = 5.0
MIN_PER_CONNECTION = 10
# network-resources: share of the free ports.
MAX_PORT_SHARE = 0.7
# Message of the probe before the load; the alarm has the same message for all servers.
NO_KEEPALIVE = "has no keep-alive: it closes the connection after each response"
# no-keepalive: connections per request; 1 without any reuse.
MAX_CONNECTIONS_PER_REQUEST = 0.95
MIN_REQUESTS = 20
WITHOUT_KEEPALIVE = "servers without keep-alive compared with servers that have it"
# idle-server and rate-not-reached: fewer missing responses may only have been in flight at the end.
MIN_MISSING = 10
# idle-server: a server that falls behind while half of its CPU is unused waits for something.
FELL_BEHIND = 0.95
# cached-response: a new URL takes at least this many times as long as the measured one, and at
# least this much longer.
MIN_CACHE_FACTOR, MIN_CACHE_GAIN_NS = 3.0, 1_000_000
# rate-not-reached: share of the offered rate.
MIN_ACHIEVED = 0.99
# run-spread: coefficient of variation between runs.
MAX_BETWEEN_RUNS = 0.1
# flat-throughput: throughput varies by less than this while the number of users at least doubles.
FLAT_WITHIN, MIN_SPREAD = 0.05, 2.0
MIN_LEVELS = 3


@dataclass(frozen=True, slots=True)
class ServerUse:
    """The server's resource use, and whether it closed connections that should have been kept."""

    cpu_cores_mean: float | None
    cpus: float | None
    refused_keepalive: bool = False
    memory_growth: MemoryGrowth | None = None
    memory_limit_bytes: int | None = None
    cache: CacheProbe | None = None
    services: tuple[ServiceUse, ...] = ()


def response_law(load: LoadReport) -> Alarm | None:
    """Little's law for the users of a closed loop: N = X (R + Z)."""
    closed = load.plan.load.closed
    times = load.response_time_ns
    achieved_per_s = load.rate.achieved_per_s
    if closed is None or not achieved_per_s:
        return None
    users = closed.connections * load.plan.streams
    if times is None or times.mean is None:
        return None

    accounted = achieved_per_s * (times.mean + closed.think_time_ns) / NS_PER_S
    share = accounted / users
    if MIN_RESPONSE_LAW <= share <= MAX_RESPONSE_LAW:
        return None

    if share < 1:
        limit = MIN_RESPONSE_LAW
        message = (
            f"Little's law accounts for {accounted:.0f} of {users:,} users, so the others got no "
            "response and are missing from the response times"
        )
    else:
        limit = MAX_RESPONSE_LAW
        message = (
            f"Little's law accounts for {accounted:.0f} users, but there are only {users:,}, so "
            "request times overlap"
        )
    return Alarm(
        "littles-law",
        "server",
        message,
        share,
        limit,
        "closed-loop medians based on the few connections that were served",
        "use fewer connections, or give the server more threads" if share < 1 else None,
    )


def starved_connections(load: LoadReport) -> Alarm | None:
    """Some connections carry nearly all requests, others hardly any."""
    carried = load.connections.requests_per_connection if load.connections else None
    if load.plan.load.closed is None or carried is None or load.plan.keepalive != "on":
        return None
    if carried.min is None or carried.mean is None or carried.max is None:
        return None

    unfairness = carried.max / carried.mean if carried.mean else 0.0
    is_starved = carried.min <= 1 and carried.mean >= MIN_PER_CONNECTION
    if unfairness <= MAX_UNFAIRNESS and not is_starved:
        return None

    message = (
        f"connections are served unevenly: {carried.min:,} to {carried.max:,} requests each, "
        f"{carried.mean:.1f} on average; a few connections occupy the threads and the others "
        "starve"
    )
    return Alarm(
        "uneven-connections",
        "server",
        message,
        unfairness,
        MAX_UNFAIRNESS,
        "a server with ten threads measured with 200 connections",
        "use at most as many connections as the server has threads, or an event-loop server",
    )


def dead_time(load: LoadReport) -> Alarm | None:
    """Intervals in which requests were scheduled but none got a correct response."""
    due = [interval for interval in load.intervals if interval.scheduled > 0]
    dead_s = sum(interval.length_ns for interval in due if interval.ok == 0) / NS_PER_S
    if not dead_s:
        return None

    whole_s = sum(interval.length_ns for interval in due) / NS_PER_S
    return Alarm(
        "dead-interval",
        "server",
        f"no correct response for {dead_s:g} s of {whole_s:g} s",
        dead_s,
        0,
        "mean values that include times when the server had stopped responding",
        "see the server's log; do not use mean values of this load",
    )


def client_exhausted(load: LoadReport) -> Alarm | None:
    """The generator ran short of ports or file descriptors."""
    source = "failures of the client's own kernel attributed to the server"
    errors = load.outcomes.client_error
    if errors:
        message = (
            f"{errors:,} requests failed in the client, usually because ports, file descriptors "
            "or memory ran out"
        )
        fix = "raise `ulimit -n`, or add --source-addresses"
        return Alarm("network-resources", "client", message, errors, 0, source, fix)

    connections = load.connections
    if connections is None or connections.local_ports is None or connections.peak is None:
        return None
    free = connections.local_ports.free
    share = connections.peak / free if free else 0.0
    if share <= MAX_PORT_SHARE:
        return None

    message = (
        f"{connections.peak:,} concurrent connections use most of the {free:,} available local "
        "ports"
    )
    fix = "widen net.ipv4.ip_local_port_range, or add --source-addresses"
    return Alarm("network-resources", "client", message, share, MAX_PORT_SHARE, source, fix)


def tracking_full(load: LoadReport) -> Alarm | None:
    """The kernel's conntrack table is nearly full, before or after the load."""
    tracked = load.connections.tracked if load.connections else None
    if tracked is None or not tracked.max:
        return None

    entries = max(tracked.before, tracked.after)
    share = entries / tracked.max
    if share <= MAX_TRACKED_SHARE:
        return None

    message = (
        f"the conntrack table is nearly full ({entries:,} of {tracked.max:,}); once it is full, "
        "the kernel drops new connections and the server seems slow"
    )
    return Alarm(
        "network-resources",
        "client",
        message,
        share,
        MAX_TRACKED_SHARE,
        "packets silently dropped by a full conntrack table",
        "raise net.netfilter.nf_conntrack_max, or use keep-alive",
    )


def closed_after_each(load: LoadReport) -> Alarm | None:
    """As many connections as requests although keep-alive was requested."""
    outcomes = load.outcomes
    responses = outcomes.ok + outcomes.http_status + outcomes.bad_body
    closed = load.connections.closed_by_server if load.connections else None
    if load.plan.keepalive != "on" or responses < MIN_REQUESTS:
        return None
    if load.connections is None or closed is None:
        return None

    # Connections that the client closed after a timeout do not count.
    opened = load.connections.opened
    share = min(opened, closed) / responses
    if share < MAX_CONNECTIONS_PER_REQUEST:
        return None

    message = (
        f"the server closes the connection after each response ({opened:,} connections, "
        f"{responses:,} responses), so response times include connection setup"
    )
    return Alarm(
        "no-keepalive",
        "server",
        message,
        share,
        MAX_CONNECTIONS_PER_REQUEST,
        WITHOUT_KEEPALIVE,
        "use --keepalive off to make this explicit",
    )


def refused_keepalive(use: ServerUse) -> Alarm | None:
    """``no-keepalive`` if the probe before the load detected it. The load then uses a new
    connection per request, so no request is lost."""
    if not use.refused_keepalive:
        return None
    message = (
        "the server closes the connection after each response although keep-alive was requested, "
        "so its response times include connection setup"
    )
    return Alarm(
        "no-keepalive",
        "server",
        message,
        1.0,
        MAX_CONNECTIONS_PER_REQUEST,
        WITHOUT_KEEPALIVE,
        "use --keepalive off for all servers",
    )


def idle_though_behind(load: LoadReport, use: ServerUse) -> Alarm | None:
    """The server falls behind while its CPU is mostly idle: it has too few workers or threads.
    Wrong responses count as responses, because ``wrong-responses`` reports them."""
    offered = load.rate.offered_per_s
    achieved = load.rate.achieved_per_s
    if not offered or achieved is None or not use.cpus or use.cpu_cores_mean is None:
        return None

    busy = use.cpu_cores_mean / use.cpus
    is_behind = achieved < FELL_BEHIND * offered and _missing(load) >= MIN_MISSING
    if not is_behind or busy >= IDLE_SHARE:
        return None

    bottleneck, fix = bottleneck_and_fix(use.services, use.cpu_cores_mean, use.cpus)
    message = (
        f"the server responds to only {achieved:,.0f} of {offered:,.0f} requests/s but uses only "
        f"{busy * 100:.0f} % of its CPU limit; {bottleneck}"
    )
    return Alarm(
        "idle-server",
        "server",
        message,
        busy,
        IDLE_SHARE,
        "a server with a single thread reported as slow",
        fix,
    )


def growing_memory(load: LoadReport, use: ServerUse) -> Alarm | None:
    """The server's memory kept growing, as with a leak or an unbounded cache."""
    growth = use.memory_growth
    if growth is None:
        return None

    per_s = growth.bytes_per_s
    message = (
        f"the server's memory grew by {growth.grown_bytes / (1 << 20):,.0f} MiB in "
        f"{growth.length_ns / NS_PER_S:,.0f} s and did not level off"
    )
    if load.outcomes.ok:
        message += f" ({growth.grown_bytes / load.outcomes.ok / 1024:,.1f} KiB per response)"
    if use.memory_limit_bytes is not None:
        left_s = max(0, use.memory_limit_bytes - growth.memory_bytes) / per_s
        message += f"; at this pace, it will reach its limit in {left_s:,.0f} s"
    return Alarm(
        "memory-growth",
        "server",
        message,
        growth.grown_bytes,
        MIN_GROWTH_BYTES,
        "short runs of servers that later run out of memory",
        "measure longer (--duration) and look for a leak or an unbounded cache",
    )


def cached_response(use: ServerUse) -> Alarm | None:
    """Every request was for one URL, and the app caches its response."""
    cache = use.cache
    if cache is None:
        return None

    new_ns, same_ns = cache.fastest_new_ns, cache.slowest_same_ns
    factor = new_ns / same_ns
    if factor < MIN_CACHE_FACTOR or new_ns - same_ns < MIN_CACHE_GAIN_NS:
        return None
    return Alarm(
        "cached-response",
        "method",
        "every request hit the same URL, and the app caches its response: on an idle server, this "
        f"URL takes {duration_words(same_ns)} and a new one {duration_words(new_ns)}",
        factor,
        MIN_CACHE_FACTOR,
        "the speed of a cache reported as the speed of the app",
        "measure the URLs that users request (--targets FILE)",
    )


def below_the_rate(load: LoadReport) -> Alarm | None:
    """Fewer responses per second than offered requests."""
    offered = load.rate.offered_per_s
    achieved = load.rate.achieved_per_s
    if not offered or achieved is None:
        return None

    share = achieved / offered
    if share >= MIN_ACHIEVED or _missing(load) < MIN_MISSING:
        return None

    message = (
        f"only {achieved:,.0f} of the {offered:,.0f} requests scheduled per second got a response "
        f"({share * 100:.1f} %), so the figures do not describe this rate"
    )
    return Alarm(
        "rate-not-reached",
        "server",
        message,
        share,
        MIN_ACHIEVED,
        "latencies reported for a rate that was never reached",
        "lower the rate",
    )


def _missing(load: LoadReport) -> int:
    """How many responses the achieved rate is short of the offered rate over the measurement."""
    missing_per_s = (load.rate.offered_per_s or 0.0) - (load.rate.achieved_per_s or 0.0)
    return round(missing_per_s * load.measured_ns / NS_PER_S)


def runs_differ(name: str, values: Sequence[float]) -> Alarm | None:
    """The runs of one cell vary too much for comparisons."""
    if len(values) < 2 or not fmean(values):
        return None

    variation = stdev(values) / fmean(values)
    if variation <= MAX_BETWEEN_RUNS:
        return None
    return Alarm(
        "run-spread",
        "method",
        f"{name}: throughput varies by {variation * 100:.0f} % between {len(values)} runs, so "
        "smaller differences from other servers may be chance",
        variation,
        MAX_BETWEEN_RUNS,
        "differences of 25 % between identical runs",
        "repeat on an idle machine",
    )


def flat_throughput(name: str, goodput_by_users: Sequence[tuple[int, float]]) -> Alarm | None:
    """More users do not give more responses: the server handles a fixed number of requests at
    once."""
    levels = sorted(goodput_by_users)
    if len(levels) < MIN_LEVELS or levels[-1][0] < MIN_SPREAD * levels[0][0]:
        return None

    rates = [goodput for _, goodput in levels]
    spread = max(rates) / min(rates) - 1 if min(rates) > 0 else float("inf")
    if spread > FLAT_WITHIN:
        return None

    lowest = levels[0][0]
    message = (
        f"{name}: throughput is flat at {fmean(rates):,.0f}/s from {lowest:,} to "
        f"{levels[-1][0]:,} users; a limit on threads or connections allows at most {lowest:,} "
        "requests at once"
    )
    return Alarm(
        "flat-throughput",
        "server",
        message,
        spread,
        FLAT_WITHIN,
        "throughput charts that are flat over all numbers of connections",
    )


_OF_A_LOAD: tuple[Callable[[LoadReport], Alarm | None], ...] = (
    wrong_responses,
    response_law,
    starved_connections,
    dead_time,
    client_exhausted,
    tracking_full,
    closed_after_each,
    delayed_acknowledgement,
    hidden_stalls,
    below_the_rate,
)


def alarms_of_load(load: LoadReport) -> list[Alarm]:
    """The alarms from the report of one load."""
    return [alarm for find in _OF_A_LOAD if (alarm := find(load)) is not None]


def alarms_of_cell(load: LoadReport, use: ServerUse) -> list[Alarm]:
    """The alarms from the report of one load and from the server's resource use."""
    of_server = (
        refused_keepalive(use),
        idle_though_behind(load, use),
        busy_service(use.services, use.cpu_cores_mean, use.cpus),
        growing_memory(load, use),
        cached_response(use),
    )
    return alarms_of_load(load) + [alarm for alarm in of_server if alarm is not None]


def alarms_over_cells(cells: Sequence[CellResult]) -> list[Alarm]:
    """The alarms from several cells of a summary."""
    runs: dict[str, list[float]] = {}
    levels: dict[str, dict[int, list[float]]] = {}
    for cell in cells:
        goodput_per_s = _valid_goodput(cell)
        if goodput_per_s is None:
            continue
        server = server_of(cell)
        place = f"{server} at {level_words(cell.rate, cell.connections)}"
        runs.setdefault(place, []).append(goodput_per_s)
        if cell.connections is not None:
            of_server = levels.setdefault(server, {})
            of_server.setdefault(cell.connections, []).append(goodput_per_s)

    alarms = [runs_differ(place, values) for place, values in runs.items()]
    alarms += [
        flat_throughput(server, [(users, fmean(values)) for users, values in of_server.items()])
        for server, of_server in levels.items()
    ]
    alarms += limiting_variables(cells)
    return [alarm for alarm in alarms if alarm is not None]


def _valid_goodput(cell: CellResult) -> float | None:
    """Correct responses per second; None if the cell has no valid result."""
    if cell.failure is not None or cell.verdict is None or cell.verdict.status == "invalid":
        return None
    return cell.rate_result.goodput_per_s if cell.rate_result is not None else None
