"""Alarms about one load: patterns that have led to wrong conclusions in published comparisons.

The figures are correct but easily misinterpreted. The generator's checks of itself are not repeated
here. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wsgiload.doctor.machine import MAX_TRACKED_SHARE
from wsgiload.documents.cell_result import ServiceUse
from wsgiload.documents.load_report import LoadReport
from wsgiload.findings.finding import Finding, Fired, percent
from wsgiload.findings.services import IDLE_SHARE, bottleneck_and_fix, busy_service
from wsgiload.findings.tails import delayed_acknowledgement, hidden_stalls
from wsgiload.findings.wrong_responses import wrong_responses
from wsgiload.sampling.resources import MIN_GROWTH, MIN_GROWTH_BYTES, MIN_LENGTH_NS, MemoryGrowth
from wsgiload.serving.exchange import CacheProbe
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
# idle-server and rate-not-reached: fewer missing responses may only have been in flight at the end.
MIN_MISSING = 10
# idle-server: a server that falls behind while half of its CPU is unused waits for something.
FELL_BEHIND = 0.95
# cached-response: a new URL takes at least this many times as long as the measured one, and at
# least this much longer.
MIN_CACHE_FACTOR, MIN_CACHE_GAIN_NS = 3.0, 1_000_000
# rate-not-reached: share of the offered rate.
MIN_ACHIEVED = 0.99


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
    cpu_wait: float | None = None
    """Share of the measurement in which one of its tasks waited for a core."""


LITTLES_LAW = Finding(
    name="littles-law",
    examines="closed loop: throughput × (response time + think time), compared with the number of "
    "users",
    premise=f"The product is not {MIN_RESPONSE_LAW} to {MAX_RESPONSE_LAW} times the number of "
    "users: some users got no response and are missing from the response times, or requests "
    "overlap.",
    fix="compare at a rate (--rate), or use at most as many connections as the server has threads",
    misleads="the median of the few connections that were served",
)


def response_law(load: LoadReport) -> Fired | None:
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
    return LITTLES_LAW.fired(message, share, limit)


UNEVEN_CONNECTIONS = Finding(
    name="uneven-connections",
    examines="closed loop: the number of requests on each connection",
    premise=f"A connection carried more than {MAX_UNFAIRNESS:g} times the average, or at most one "
    f"request while the average is at least {MIN_PER_CONNECTION}: a few connections occupy the "
    "threads and the others starve.",
    fix="use at most as many connections as the server has threads, or an event-loop server",
    misleads="response times of a server with ten threads and 200 connections, most of which were "
    "never served",
)


def starved_connections(load: LoadReport) -> Fired | None:
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
    return UNEVEN_CONNECTIONS.fired(message, unfairness, MAX_UNFAIRNESS)


DEAD_INTERVAL = Finding(
    name="dead-interval",
    examines="correct responses in each report interval (1 s) of the measurement",
    premise="Requests were due in an interval, but none got a correct response.",
    fix="find out from the server's log why it stopped responding; do not use mean values of this "
    "load",
    misleads="mean values that include times when the server had stopped responding",
)


def dead_time(load: LoadReport) -> Fired | None:
    """Intervals in which requests were scheduled but none got a correct response."""
    due = [interval for interval in load.intervals if interval.scheduled > 0]
    dead_s = sum(interval.length_ns for interval in due if interval.ok == 0) / NS_PER_S
    if not dead_s:
        return None

    whole_s = sum(interval.length_ns for interval in due) / NS_PER_S
    message = f"no correct response for {dead_s:g} s of {whole_s:g} s"
    return DEAD_INTERVAL.fired(message, dead_s, 0)


NETWORK_RESOURCES = Finding(
    name="network-resources",
    examines="local ports, file descriptors and the kernel's connection tracking (conntrack) table",
    premise=f"The connections use more than {percent(MAX_PORT_SHARE)} of the available local "
    f"ports, the conntrack table is more than {percent(MAX_TRACKED_SHARE)} full, or a request "
    "failed for lack of ports, file descriptors or memory: the client's kernel may refuse "
    "connections.",
    fix="use --keepalive on or more --source-addresses, or raise the limit named in the message",
    misleads="connections refused by the client's own kernel, attributed to the server",
    blame="client",
)


def client_exhausted(load: LoadReport) -> Fired | None:
    """The generator ran short of ports or file descriptors."""
    errors = load.outcomes.client_error
    if errors:
        message = (
            f"{errors:,} requests failed in the client, usually because ports, file descriptors "
            "or memory ran out"
        )
        fix = "raise `ulimit -n`, or add --source-addresses"
        return NETWORK_RESOURCES.fired(message, errors, 0, fix=fix)

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
    return NETWORK_RESOURCES.fired(message, share, MAX_PORT_SHARE, fix=fix)


def tracking_full(load: LoadReport) -> Fired | None:
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
    fix = "raise net.netfilter.nf_conntrack_max, or use keep-alive"
    return NETWORK_RESOURCES.fired(message, share, MAX_TRACKED_SHARE, fix=fix)


NO_REUSE = Finding(
    name="no-keepalive",
    examines="the number of connections per response, if keep-alive was requested",
    premise=f"There are at least {MAX_CONNECTIONS_PER_REQUEST} connections per response: the "
    "server closed nearly every connection after one response.",
    consequence="response times include connection setup, because keep-alive does not work",
    fix="use --keepalive off for all servers, or enable keep-alive in the server",
    misleads="servers without keep-alive compared with servers that have it",
)


def closed_after_each(load: LoadReport) -> Fired | None:
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
    return NO_REUSE.fired(message, share, MAX_CONNECTIONS_PER_REQUEST)


def refused_keepalive(use: ServerUse) -> Fired | None:
    """``no-keepalive`` if the probe before the load detected it. The load then uses a new
    connection per request, so no request is lost."""
    if not use.refused_keepalive:
        return None
    message = (
        "the server closes the connection after each response although keep-alive was requested, "
        "so its response times include connection setup"
    )
    return NO_REUSE.fired(message, 1.0, MAX_CONNECTIONS_PER_REQUEST)


IDLE_SERVER = Finding(
    name="idle-server",
    examines="the server's CPU use while it falls behind the offered rate",
    premise=f"The server responds to less than {percent(FELL_BEHIND)} of the offered rate, at "
    f"least {MIN_MISSING} responses are missing, and it uses its CPU limit or waits for a core "
    f"for less than {percent(IDLE_SHARE)} of the time: its threads, its connections or a backend "
    "are the bottleneck.",
    fix="add workers or threads, not CPU, or speed up the backend",
    misleads="one process with one thread, presented as a slow server",
)


def idle_though_behind(load: LoadReport, use: ServerUse) -> Fired | None:
    """The server falls behind while its CPU is mostly idle: it has too few workers or threads.
    Wrong responses count as responses, because ``wrong-responses`` reports them."""
    offered = load.rate.offered_per_s
    achieved = load.rate.achieved_per_s
    if not offered or achieved is None or not use.cpus or use.cpu_cores_mean is None:
        return None

    busy = use.cpu_cores_mean / use.cpus
    is_behind = achieved < FELL_BEHIND * offered and _missing(load) >= MIN_MISSING
    if not is_behind or busy + (use.cpu_wait or 0.0) >= IDLE_SHARE:
        return None

    bottleneck, fix = bottleneck_and_fix(use.services, use.cpu_cores_mean, use.cpus)
    message = (
        f"the server responds to only {achieved:,.0f} of {offered:,.0f} requests/s but uses only "
        f"{busy * 100:.0f} % of its CPU limit; {bottleneck}"
    )
    return IDLE_SERVER.fired(message, busy, IDLE_SHARE, fix=fix)


MEMORY_GROWTH = Finding(
    name="memory-growth",
    examines="the memory of the server's processes before and after the load, and of its cgroup "
    "during the load",
    premise=f"Memory grew by at least {MIN_GROWTH_BYTES >> 20} MiB and {percent(MIN_GROWTH)} "
    f"during a load of at least {MIN_LENGTH_NS / NS_PER_S:g} s, and was still growing at the end.",
    consequence="memory was still growing at the end, so a longer run needs more memory than shown",
    fix="measure longer (--duration), and look for a leak or an unbounded cache",
    misleads="a short run of a server that would later run out of memory",
)


def growing_memory(load: LoadReport, use: ServerUse) -> Fired | None:
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
    return MEMORY_GROWTH.fired(message, growth.grown_bytes, MIN_GROWTH_BYTES)


CACHED_RESPONSE = Finding(
    name="cached-response",
    examines="the response time of the URL after the load, with and without a new query string "
    "(sweeps of your own app with a single GET URL)",
    premise=f"With a new query string, the response takes at least {MIN_CACHE_FACTOR:g} times as "
    f"long and at least {MIN_CACHE_GAIN_NS / 1e6:g} ms longer: the app caches responses.",
    consequence="the app cached the response of the only URL, so other URLs may be slower",
    fix="measure the URLs that users request (--targets FILE)",
    misleads="the speed of a cache, presented as the speed of the app",
    blame="method",
)


def cached_response(use: ServerUse) -> Fired | None:
    """Every request was for one URL, and the app caches its response."""
    cache = use.cache
    if cache is None:
        return None

    new_ns, same_ns = cache.fastest_new_ns, cache.slowest_same_ns
    factor = new_ns / same_ns
    if factor < MIN_CACHE_FACTOR or new_ns - same_ns < MIN_CACHE_GAIN_NS:
        return None
    message = (
        "every request hit the same URL, and the app caches its response: on an idle server, this "
        f"URL takes {duration_words(same_ns)} and a new one {duration_words(new_ns)}"
    )
    return CACHED_RESPONSE.fired(message, factor, MIN_CACHE_FACTOR)


RATE_NOT_REACHED = Finding(
    name="rate-not-reached",
    examines="responses per second, compared with the offered rate",
    premise=f"Throughput is below {percent(MIN_ACHIEVED)} of the offered rate, and at least "
    f"{MIN_MISSING} responses are missing, so the latency does not describe that rate.",
    fix="lower the rate; `wsgiload capacity` finds the highest sustainable rate",
    misleads="latency at a rate that was never reached",
)


def below_the_rate(load: LoadReport) -> Fired | None:
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
    return RATE_NOT_REACHED.fired(message, share, MIN_ACHIEVED)


def _missing(load: LoadReport) -> int:
    """How many responses the achieved rate is short of the offered rate over the measurement."""
    missing_per_s = (load.rate.offered_per_s or 0.0) - (load.rate.achieved_per_s or 0.0)
    return round(missing_per_s * load.measured_ns / NS_PER_S)


_OF_A_LOAD: tuple[Callable[[LoadReport], Fired | None], ...] = (
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


def alarms_of_load(load: LoadReport) -> list[Fired]:
    """The alarms from the report of one load."""
    return [fired for find in _OF_A_LOAD if (fired := find(load)) is not None]


def alarms_of_cell(load: LoadReport, use: ServerUse) -> list[Fired]:
    """The alarms from the report of one load and from the server's resource use."""
    of_server = (
        refused_keepalive(use),
        idle_though_behind(load, use),
        busy_service(use.services, use.cpu_cores_mean, use.cpus),
        growing_memory(load, use),
        cached_response(use),
    )
    return alarms_of_load(load) + [fired for fired in of_server if fired is not None]
