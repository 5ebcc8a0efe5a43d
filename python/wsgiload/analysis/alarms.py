"""Alarms: patterns in results that past comparisons of servers published as results. Pure.

Each alarm is a function of its own, with a name, a limit, a sentence and the kind of publication
that it would have stopped. What the generator judges of itself is not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal

from wsgiload.doctor.machine import MOST_TRACKED_SHARE
from wsgiload.documents.codec import plain_reason
from wsgiload.units import NS_PER_S

Json = dict[str, Any]
Blame = Literal["client", "server", "method"]

# V2: N = X (R + Z) is an identity of a closed loop in which every user is served.
LEAST_RESPONSE_LAW, MOST_RESPONSE_LAW = 0.9, 1.1
# V3: one user is served so many times as often as the average one, or the least one hardly at all.
MOST_UNFAIRNESS = 5.0
FEWEST_PER_CONNECTION = 10
# V5: of the ports that were free.
MOST_PORT_SHARE = 0.7
# V6: connections by requests; 1 where none carries a second.
MOST_CONNECTIONS_PER_REQUEST = 0.95
FEWEST_REQUESTS = 20
WITHOUT_KEEPALIVE = "servers without keep-alive compared with servers that have it"
# V7: Linux delays an acknowledgement by 40 ms (TCP_DELACK_MIN), rounded to its timer.
DELAYED_ACKNOWLEDGEMENT_NS = (36_000_000, 50_000_000)
# V8 and V9: fewer missing answers than these may just be on their way at the end.
FEWEST_MISSING = 10
# V8: a server that falls behind and leaves half of its CPU unused waits for something else.
FELL_BEHIND, IDLE_SHARE = 0.95, 0.5
# V9: of the rate that was asked for.
LEAST_ACHIEVED = 0.99
# V10: between runs, as a coefficient of variation.
MOST_BETWEEN_RUNS = 0.1
# V11: throughput that stays within this while the users double at least.
FLAT_WITHIN, LEAST_SPREAD = 0.05, 2.0
FEWEST_LEVELS = 3


@dataclass(frozen=True, slots=True)
class Alarm:
    """One pattern that was found."""

    name: str
    blame: Blame
    message: str
    value: float
    limit: float
    source: str

    def reason(self) -> Json:
        """As a verdict lists it."""
        return plain_reason(self.name, "warn", self.message, self.value, self.limit)


@dataclass(frozen=True, slots=True)
class ServerUse:
    """What the server used of its CPU limit, and whether it was asked to keep connections and did
    not."""

    cpu_cores_mean: float | None
    cpus: float | None
    refused_keepalive: bool = False


def wrong_answers(load: Json) -> Alarm | None:
    """V1: answers with a wrong status or body."""
    outcomes = load["outcomes"]
    wrong = outcomes["http_status"] + outcomes["bad_body"]
    if not wrong:
        return None
    message = (
        f"{wrong:,} of {outcomes['scheduled']:,} answers were wrong: "
        f"{outcomes['http_status']:,} by their status, "
        f"{outcomes['bad_body']:,} by their body; see what the server answers before comparing "
        "how fast"
    )
    return Alarm(
        "wrong-responses",
        "server",
        message,
        wrong,
        0,
        "rankings of servers whose responses were errors or truncated",
    )


def response_law(load: Json) -> Alarm | None:
    """V2: users of a closed loop times nothing lost: N = X (R + Z)."""
    closed, times = _closed(load), load["response_time_ns"]
    achieved = load["rate"]["achieved_per_s"]
    if closed is None or times is None or not achieved or not times["count"]:
        return None
    users = closed["connections"]
    accounted = achieved * (times["mean"] + closed["think_time_ns"]) / NS_PER_S
    share = accounted / users
    if LEAST_RESPONSE_LAW <= share <= MOST_RESPONSE_LAW:
        return None
    message = (
        f"X·R accounts for {accounted:.0f} of {users:,} users: "
        + (
            "the others waited without an answer and are in no time below"
            if share < 1
            else "times overlap"
        )
        + "; the times are those of the users who were served"
    )
    limit = LEAST_RESPONSE_LAW if share < 1 else MOST_RESPONSE_LAW
    return Alarm(
        "littles-law",
        "server",
        message,
        share,
        limit,
        "closed-loop medians of a few served connections among hundreds",
    )


def starved_connections(load: Json) -> Alarm | None:
    """V3: some connections carry nearly everything, others hardly anything."""
    closed, carried = _closed(load), load["connections"]["requests_per_connection"]
    if closed is None or carried is None or load["plan"]["keepalive"] != "on":
        return None
    mean, least, most = carried["mean"], carried["min"], carried["max"]
    unfairness = most / mean if mean else 0.0
    is_starved = least <= 1 and mean >= FEWEST_PER_CONNECTION
    if unfairness <= MOST_UNFAIRNESS and not is_starved:
        return None
    message = (
        f"connections are not served alike: between {least:,} and {most:,} requests each, "
        f"{mean:.1f} on average; "
        "whoever holds a thread keeps it, and the others starve"
    )
    return Alarm(
        "uneven-connections",
        "server",
        message,
        unfairness,
        MOST_UNFAIRNESS,
        "a server with ten threads measured with 200 connections",
    )


def dead_time(load: Json) -> Alarm | None:
    """V4: stretches in which requests were due and none was answered rightly."""
    due = [one for one in load["intervals"] if one["scheduled"] > 0]
    dead_s = sum(one["length_ns"] for one in due if one["ok"] == 0) / NS_PER_S
    if not dead_s:
        return None
    whole_s = sum(one["length_ns"] for one in due) / NS_PER_S
    message = f"for {dead_s:g} s of {whole_s:g} s requests were due and none was answered rightly"
    return Alarm(
        "dead-interval",
        "server",
        message,
        dead_s,
        0,
        "means over a time in which the server had stopped answering",
    )


def client_exhausted(load: Json) -> Alarm | None:
    """V5: the generator's ports ran short, or its descriptors."""
    errors = load["outcomes"]["client_error"]
    source = "refusals by the client's own kernel, counted as the server's"
    if errors:
        message = f"{errors:,} requests failed on this side: ports, descriptors or memory ran out"
        return Alarm("network-resources", "client", message, errors, 0, source)
    ports, peak = load["connections"].get("local_ports"), load["connections"]["peak"]
    if not ports or not ports["free"] or peak is None:
        return None
    share = peak / ports["free"]
    if share <= MOST_PORT_SHARE:
        return None
    message = (
        f"{peak:,} connections at once, of {ports['free']:,} free ports; widen "
        "net.ipv4.ip_local_port_range or give "
        "--source-addresses"
    )
    return Alarm("network-resources", "client", message, share, MOST_PORT_SHARE, source)


def tracking_full(load: Json) -> Alarm | None:
    """V5: the kernel's table of tracked connections is nearly full, before the load or after it."""
    tracked = load["connections"].get("tracked")
    if not tracked or not tracked["max"]:
        return None
    entries = max(tracked["before"], tracked["after"])
    share = entries / tracked["max"]
    if share <= MOST_TRACKED_SHARE:
        return None
    message = (
        f"the kernel tracked {entries:,} connections in a table of {tracked['max']:,}: beyond "
        "its end it drops new "
        "ones, which looks like a slow server; raise net.netfilter.nf_conntrack_max, or use "
        "keep-alive"
    )
    return Alarm(
        "network-resources",
        "client",
        message,
        share,
        MOST_TRACKED_SHARE,
        "packets dropped by a full table, unnoticed",
    )


def closed_after_each(load: Json) -> Alarm | None:
    """V6: as many connections as requests, though they were to be kept."""
    answered = sum(load["outcomes"][name] for name in ("ok", "http_status", "bad_body"))
    opened, closed = load["connections"]["opened"], load["connections"]["closed_by_server"]
    if load["plan"]["keepalive"] != "on" or answered < FEWEST_REQUESTS or closed is None:
        return None
    # Those that the client gave up, after a timeout, are no doing of the server.
    share = min(opened, closed) / answered
    if share < MOST_CONNECTIONS_PER_REQUEST:
        return None
    message = (
        f"{opened:,} connections for {answered:,} answers: the server closes after each, so "
        "that connecting is "
        "measured, too; --keepalive off says so from the start"
    )
    return Alarm(
        "no-keepalive", "server", message, share, MOST_CONNECTIONS_PER_REQUEST, WITHOUT_KEEPALIVE
    )


def refused_keepalive(use: ServerUse) -> Alarm | None:
    """V6 where the probe before the load found it: measured with connections of their own, so that
    none is lost."""
    if not use.refused_keepalive:
        return None
    message = (
        "the server closes the connection after each response despite keep-alive; its "
        "times include connection setup, other servers' do not"
    )
    return Alarm(
        "no-keepalive", "server", message, 1.0, MOST_CONNECTIONS_PER_REQUEST, WITHOUT_KEEPALIVE
    )


def delayed_acknowledgement(load: Json) -> Alarm | None:
    """V7: the body of the median answer lags behind its head by as long as Linux delays an
    acknowledgement."""
    first_byte, service = load["first_byte_ns"], load["service_time_ns"]
    if first_byte is None or service is None:
        return None
    delay_ns = int(service["quantiles"]["0.5"] - first_byte["quantiles"]["0.5"])
    least_ns, most_ns = DELAYED_ACKNOWLEDGEMENT_NS
    if not least_ns <= delay_ns <= most_ns:
        return None
    message = (
        f"the body came {delay_ns / 1e6:.0f} ms after the head at the median: the pattern of a "
        "server that writes "
        "them apart without TCP_NODELAY, so that Nagle's algorithm waits for a delayed "
        "acknowledgement"
    )
    return Alarm(
        "nagle-delay",
        "server",
        message,
        delay_ns,
        least_ns,
        "40 ms per chunked response taken for a slow server",
    )


def idle_though_behind(load: Json, use: ServerUse) -> Alarm | None:
    """V8: the server falls behind and leaves its CPU unused: it is set up too small, not too slow.
    Wrong answers are answers here: V1 tells of them, and no thread is missing where they come in
    time."""
    offered, achieved = load["rate"]["offered_per_s"], load["rate"]["achieved_per_s"]
    if not offered or achieved is None or not use.cpus or use.cpu_cores_mean is None:
        return None
    busy = use.cpu_cores_mean / use.cpus
    if (
        achieved >= FELL_BEHIND * offered
        or busy >= IDLE_SHARE
        or _missing(load, achieved) < FEWEST_MISSING
    ):
        return None
    message = (
        f"{achieved:,.0f}/s of {offered:,.0f}/s were answered while the server used {busy:.0%} "
        "of its CPU limit: it "
        "waits for threads, connections or something outside; more of them, not more CPU, "
        "would help"
    )
    return Alarm(
        "idle-server",
        "server",
        message,
        busy,
        IDLE_SHARE,
        "one process with one thread, shown as a slow server",
    )


def below_the_rate(load: Json) -> Alarm | None:
    """V9: fewer answers per second than were asked for."""
    offered, achieved = load["rate"]["offered_per_s"], load["rate"]["achieved_per_s"]
    if not offered or achieved is None:
        return None
    share = achieved / offered
    if share >= LEAST_ACHIEVED or _missing(load, achieved) < FEWEST_MISSING:
        return None
    message = (
        f"{achieved:,.0f}/s were answered of {offered:,.0f}/s offered ({share:.1%}): "
        "this is no result at that rate"
    )
    return Alarm(
        "rate-not-reached",
        "server",
        message,
        share,
        LEAST_ACHIEVED,
        "latencies at a rate that was never reached",
    )


def _missing(load: Json, answered_per_s: float) -> int:
    """How many answers a rate is short of the offered one over the measurement."""
    return round(
        (float(load["rate"]["offered_per_s"]) - answered_per_s)
        * int(load["measured_ns"])
        / NS_PER_S
    )


def runs_differ(name: str, values: Sequence[float]) -> Alarm | None:
    """V10: runs of one cell differ by more than they can be compared with."""
    if len(values) < 2 or not fmean(values):
        return None
    variation = stdev(values) / fmean(values)
    if variation <= MOST_BETWEEN_RUNS:
        return None
    message = (
        f"{name}: throughput varies by {variation:.0%} between {len(values)} runs; "
        "repeat it on a quiet host"
    )
    return Alarm(
        "run-spread",
        "method",
        message,
        variation,
        MOST_BETWEEN_RUNS,
        "differences of 25 % between runs of the same setup",
    )


def flat_throughput(name: str, goodput_by_users: Sequence[tuple[int, float]]) -> Alarm | None:
    """V11: more users, and not more answers: something serves so many at once and no more."""
    levels = sorted(goodput_by_users)
    if len(levels) < FEWEST_LEVELS or levels[-1][0] < LEAST_SPREAD * levels[0][0]:
        return None
    rates = [goodput for _, goodput in levels]
    spread = max(rates) / min(rates) - 1 if min(rates) > 0 else float("inf")
    if spread > FLAT_WITHIN:
        return None
    message = (
        f"{name}: {fmean(rates):,.0f}/s with {levels[0][0]:,} users and with "
        f"{levels[-1][0]:,}: it serves no more than "
        f"{levels[0][0]:,} at once, by its threads or a cap on connections"
    )
    return Alarm(
        "flat-throughput",
        "server",
        message,
        spread,
        FLAT_WITHIN,
        "one flat line over all numbers of connections",
    )


_OF_A_LOAD: tuple[Callable[[Json], Alarm | None], ...] = (
    wrong_answers,
    response_law,
    starved_connections,
    dead_time,
    client_exhausted,
    tracking_full,
    closed_after_each,
    delayed_acknowledgement,
    below_the_rate,
)


def alarms_of_load(load: Json) -> list[Alarm]:
    """What the report of one load shows."""
    return [alarm for find in _OF_A_LOAD if (alarm := find(load)) is not None]


def alarms_of_cell(load: Json, use: ServerUse) -> list[Alarm]:
    """The same, and what is known of the server besides."""
    of_server = (refused_keepalive(use), idle_though_behind(load, use))
    return alarms_of_load(load) + [alarm for alarm in of_server if alarm is not None]


def alarms_over_cells(cells: Sequence[Json]) -> list[Alarm]:
    """What only several cells of a summary show."""
    runs: dict[str, list[float]] = {}
    levels: dict[str, dict[int, list[float]]] = {}
    for cell in cells:
        if (
            cell["failure"] is not None
            or cell["rate_result"] is None
            or cell["verdict"]["status"] == "invalid"
        ):
            continue
        goodput = cell["rate_result"]["goodput_per_s"]
        place = str(cell["id"]).partition("#")[0]
        runs.setdefault(place, []).append(goodput)
        if cell["connections"] is not None:
            levels.setdefault(place.rpartition("@")[0], {}).setdefault(
                cell["connections"], []
            ).append(goodput)
    found = [runs_differ(place, values) for place, values in runs.items()]
    for server, of_server in levels.items():
        found.append(
            flat_throughput(server, [(users, fmean(values)) for users, values in of_server.items()])
        )
    return [alarm for alarm in found if alarm is not None]


def _closed(load: Json) -> Json | None:
    model: Json | None = load["plan"]["load"].get("closed")
    return model
