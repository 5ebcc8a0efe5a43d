"""What each check and alarm tests, when it fires, and how to fix it.

The generator explains its own checks; those that need the server, the host or several cells are
explained here.
"""

from __future__ import annotations

import msgspec

from wsgiload._loadgen import check_catalogue
from wsgiload.documents.check_names import code_of
from wsgiload.errors import UsageError
from wsgiload.loads.thresholds import OWN


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One check or alarm. ``thresholds`` maps keys of ``--check-threshold`` to their defaults."""

    name: str
    looks_at: str
    fires_when: str
    code: str | None = None
    fix: str | None = None
    thresholds: dict[str, float] = msgspec.field(default_factory=dict)


def explanations() -> dict[str, Explanation]:
    """Every check and alarm by name: those of a load, those of a sweep, then the alarms."""
    of_load = msgspec.json.decode(check_catalogue(), type=list[Explanation])
    return {one.name: one for one in (*of_load, *_OF_SWEEPS, *_OF_CAPACITY, *_ALARMS)}


def explanation_of(name: str) -> Explanation:
    """By name or old code. Raises UsageError with the closest names."""
    by_name = explanations()
    by_code = {one.code: one for one in by_name.values() if one.code is not None}
    if name in by_name or name in by_code:
        return by_name.get(name) or by_code[name]
    raise UsageError(f"there is no check or alarm {name!r}", _did_you_mean(name, list(by_name)))


def _did_you_mean(name: str, names: list[str]) -> str:
    # Imported here because only a mistake needs it.
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=3, cutoff=0.5)
    if not close:
        return "`wsgiload explain` lists them"
    return f"did you mean {' or '.join(close)}? `wsgiload explain` lists them all"


def _one(name: str, looks_at: str, fires_when: str, fix: str | None = None) -> Explanation:
    return Explanation(
        name=name,
        code=code_of(name),
        looks_at=looks_at,
        fires_when=fires_when,
        fix=fix,
        thresholds=dict(OWN.get(name, {})),
    )


_QUIET = "repeat on an idle machine; `wsgiload doctor` lists what disturbs this one"

_OF_SWEEPS = (
    _one(
        "app-calls",
        "the calls that a bundled app counted, against the generator's requests and responses",
        "The two counts differ. One of them is wrong, so the figures are in doubt.",
        "file a bug and attach the run directory",
    ),
    _one(
        "kernel-drops",
        "the kernel's listen-queue overflow and drop counters during the load",
        "A listening socket dropped connection attempts. The kernel retries each after 1, 3 and "
        "7 s, which shows among the slowest requests.",
        "raise the backlog of the server, or lower the rate",
    ),
    _one(
        "shared-cores",
        "which cores the server and the generator got",
        "They shared cores, so they competed for CPU time.",
        "use a machine with more cores, or set --server-cpus and --client-cpus",
    ),
    _one(
        "settle",
        "whether the host becomes quiet within --settle before each trial",
        "The host did not become quiet in time.",
        _QUIET,
    ),
    _one(
        "limits",
        "the limits as the kernel reports them",
        "A limit could not be enforced here, and --limits best-effort allowed that.",
        "run as root, or see docs/limits.md",
    ),
    _one(
        "contaminated",
        "CPU time of other processes, and the time the server waited for a core",
        "Other processes used the machine during the measurement.",
        _QUIET,
    ),
    _one(
        "failure",
        "every step of a cell, from the environment to the stop of the server",
        "A step failed, so the cell has no result.",
        "read the message and the server's log in the run directory",
    ),
)

_OF_CAPACITY = (
    _one(
        "search",
        "whether a capacity search found a rate",
        "The search gave up before it found a rate.",
        "see the message; repeat the search",
    ),
    _one(
        "not-met",
        "the trials at the lowest rates",
        "The server missed the objective at every rate tested.",
        "relax the objective (--slo), or give the server more resources",
    ),
    _one(
        "no-upper-bound",
        "the trials at the highest rates",
        "No trial missed the objective, so the capacity may be higher.",
        "use more generator threads (--threads), or a second machine",
    ),
    _one(
        "not-confirmed",
        "the confirmation trials at the rate found",
        "Too few of them met the objective.",
        "repeat the search on a quieter host",
    ),
    _one(
        "unconfirmed",
        "whether there were confirmation trials",
        "There were none (--confirmations 0), so the rate is an unconfirmed lower bound.",
        "leave --confirmations out",
    ),
    _one(
        "unfinished",
        "whether the search completed",
        "It was interrupted or ran out of time.",
        "run it again",
    ),
    _one(
        "discarded",
        "the trials invalidated by the generator or the host",
        "Some were repeated; if more than 20 % were, the result is invalid.",
        _QUIET,
    ),
    _one(
        "lower-bound",
        "trials near the capacity that missed the objective while the host was disturbed",
        "The disturbances may have caused the misses, so the capacity may be higher.",
        _QUIET,
    ),
    _one(
        "brevity",
        "the number of requests beyond the quantile in a single trial",
        "There were few, so single trials vary widely.",
        "use longer trials (--duration)",
    ),
)

_ALARMS = (
    _one(
        "wrong-responses",
        "responses with an unexpected status or body",
        "At least one response was incorrect. A fast error is not a fast response.",
        "look at what the server returns before comparing speeds",
    ),
    _one(
        "littles-law",
        "a closed loop: throughput x (response time + think time) against the number of users",
        "The product is not the number of users: some were never served, and the response "
        "times do not include them.",
        "compare at a rate (--rate), or use no more users than the server's concurrency",
    ),
    _one(
        "uneven-connections",
        "a closed loop: how many requests each connection carried",
        "Some connections carried most requests, or hardly any.",
        "compare at a rate (--rate), or use no more users than the server's concurrency",
    ),
    _one(
        "dead-interval",
        "every interval of the measurement",
        "Requests were due in an interval and none got a correct response.",
        "find out why the server stopped responding before using the mean values",
    ),
    _one(
        "network-resources",
        "local ports, file descriptors and the conntrack table",
        "One of them is nearly or fully used, so the client's kernel may refuse connections.",
        "use --keepalive on, more --source-addresses, or raise the limit that the message names",
    ),
    _one(
        "no-keepalive",
        "connections per request, where keep-alive was requested",
        "The server closed nearly every connection after one response, so its times include "
        "connection setup.",
        "compare it with --keepalive off for all servers, or turn keep-alive on in the server",
    ),
    _one(
        "nagle-delay",
        "the time between the head and the body of each response",
        "In at least 1 % of the responses the body arrives 36 to 50 ms after the head, three times "
        "as many as in the windows of equal width below and above: Nagle's algorithm waits for a "
        "delayed acknowledgement.",
        "set TCP_NODELAY in the server, or write head and body together",
    ),
    _one(
        "closed-loop-stalls",
        "closed loop: how much of the users' time responses take that are over ten times as slow "
        "as the p99",
        "They take at least 2 % of it. Users send nothing while they wait, so a stall is one slow "
        "response for each of them, and the p99 hides it.",
        "measure at a rate (-R): an open loop sends on schedule and shows every request that waits",
    ),
    _one(
        "cached-response",
        "after the load, idle: the response time of the URL that was measured, and of the same URL "
        "with a query that no request had (a sweep of your app, one URL, GET)",
        "The slower of them takes three times as long, and at least 1 ms longer: the app caches "
        "the response, and nothing else was measured.",
        "measure the URLs that users request (--targets FILE)",
    ),
    _one(
        "memory-growth",
        "the memory of the server's processes before and after the load, and of its control group "
        "in between",
        "It grew by at least 10 MiB and 20 % in at least 5 s, and went on growing to the end: a "
        "leak, or a cache without a bound.",
        "measure for longer (--duration); look for a leak or a cache without a bound",
    ),
    _one(
        "idle-server",
        "the server's CPU use where it falls behind",
        "It falls behind and leaves half of its CPU limit unused: the bottleneck is not "
        "CPU (threads, connections or a backend).",
        "add workers or threads, or speed up what the app waits for",
    ),
    _one(
        "rate-not-reached",
        "responses per second against the offered rate",
        "Throughput is below the offered rate; the latency does not describe that rate.",
        "lower the rate; `wsgiload capacity` finds the highest sustainable rate",
    ),
    _one(
        "run-spread",
        "the throughput of several runs of one cell",
        "Runs differ by more than 10 %.",
        "run more repetitions (--runs), on a quieter host",
    ),
    _one(
        "flat-throughput",
        "throughput over at least three numbers of users",
        "It stays the same while the users double: the server's concurrency is fixed.",
        "compare at a rate (--rate), below the capacity",
    ),
)
