"""What each check and alarm looks at, when it fires, and what to do.

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
        "The two accounts differ. One of them is wrong, so the figures are in doubt.",
        "report it with the run directory",
    ),
    _one(
        "kernel-drops",
        "the kernel's counters of overflowing and dropped connections during the load",
        "A listening socket turned connections away. Each is retried after 1, 3 and 7 s, which "
        "shows among the slowest requests.",
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
        "the host before each trial, for as long as --settle allows",
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
        "Others used the machine during the measurement.",
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
        "the course of a capacity search",
        "The search gave up before it found a rate.",
        "see the message; repeat the search",
    ),
    _one(
        "not-met",
        "the trials at the lowest rates",
        "The server met the objective at no rate that was tried.",
        "relax the objective (--slo), or give the server more resources",
    ),
    _one(
        "no-upper-bound",
        "the trials at the highest rates",
        "No trial missed the objective, so the capacity may be larger.",
        "use more generator threads (--threads), or a second machine",
    ),
    _one(
        "not-confirmed",
        "the confirming trials at the rate found",
        "Too few of them met the objective.",
        "repeat the search on a quieter host",
    ),
    _one(
        "unconfirmed",
        "whether there were confirming trials",
        "There were none (--confirmations 0), so the rate is a guess.",
        "leave --confirmations out",
    ),
    _one(
        "unfinished",
        "whether the search ended by itself",
        "It was interrupted or ran out of time.",
        "run it again",
    ),
    _one(
        "discarded",
        "the trials that generator or host spoiled",
        "Some were repeated; more than 20 % leave no result that stands.",
        _QUIET,
    ),
    _one(
        "lower-bound",
        "trials near the capacity that missed the objective while the host was disturbed",
        "The disturbances may have decided them, so the capacity may be larger.",
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
        "Any was wrong. A fast error is not a fast response.",
        "look at what the server returns before comparing speeds",
    ),
    _one(
        "littles-law",
        "a closed loop: throughput x (response time + think time) against the number of users",
        "The product is not the number of users: some were never served, and the times leave "
        "them out.",
        "compare at a rate (--rate), or use as many users as the server serves at once",
    ),
    _one(
        "uneven-connections",
        "a closed loop: how many requests each connection carried",
        "Some connections carried most requests, or hardly any.",
        "compare at a rate (--rate), or use as many users as the server serves at once",
    ),
    _one(
        "dead-interval",
        "every interval of the measurement",
        "Requests were due in an interval and none got a correct response.",
        "find out why the server stopped responding before using its means",
    ),
    _one(
        "network-resources",
        "local ports, file descriptors and the kernel's table of tracked connections",
        "One of them ran short, so the client's kernel refused connections.",
        "use --keepalive on, more --source addresses, or raise the limit that the message names",
    ),
    _one(
        "no-keepalive",
        "connections per request, where keep-alive was asked for",
        "The server closed (nearly) every connection after one response, so its times include "
        "connection setup.",
        "compare it with --keepalive off for all servers, or turn keep-alive on in the server",
    ),
    _one(
        "nagle-delay",
        "the time between the head and the body of the median response",
        "The body arrives 36 to 50 ms after the head: Nagle's algorithm waits for a delayed "
        "acknowledgement.",
        "set TCP_NODELAY in the server, or write head and body together",
    ),
    _one(
        "idle-server",
        "the server's CPU use where it falls behind",
        "It falls behind and leaves half of its CPU limit unused: it waits for something else.",
        "add workers or threads, or speed up what the app waits for",
    ),
    _one(
        "rate-not-reached",
        "responses per second against the offered rate",
        "Fewer responses came than requests were offered, so the latency is not that of the rate.",
        "lower the rate; `wsgiload capacity` finds the largest one that holds",
    ),
    _one(
        "run-spread",
        "the throughput of several runs of one cell",
        "Runs differ by more than 10 %.",
        "make more runs, on a quieter host",
    ),
    _one(
        "flat-throughput",
        "throughput over at least three numbers of users",
        "It stays the same while the users double: the server serves a fixed number at once.",
        "compare at a rate (--rate), below the capacity",
    ),
)
