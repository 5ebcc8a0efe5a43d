"""What each check and alarm tests, when it fires, and how to fix it.

The generator explains its own checks; those that need the server, the host or several cells are
explained here.
"""

from __future__ import annotations

from wsgiload._loadgen import check_catalogue
from wsgiload.analysis.audit_explanations import OF_AUDITS
from wsgiload.analysis.explanation import Explanation
from wsgiload.analysis.explanation import explain as _one
from wsgiload.documents.typed import decode_json
from wsgiload.errors import UsageError


def explanations() -> dict[str, Explanation]:
    """Every check and alarm by name."""
    of_load = decode_json(check_catalogue(), list[Explanation])
    return {one.name: one for one in (*of_load, *_OF_SWEEPS, *_OF_CAPACITY, *_ALARMS, *OF_AUDITS)}


def explanation_of(name: str) -> Explanation:
    """The explanation for a name. Raises UsageError with the closest names."""
    by_name = explanations()
    if name in by_name:
        return by_name[name]
    raise UsageError(f"there is no check or alarm {name!r}", _did_you_mean(name, list(by_name)))


def _did_you_mean(name: str, names: list[str]) -> str:
    # Imported here because only unknown names need it.
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=3, cutoff=0.5)
    if not close:
        return "`wsgiload explain` lists them"
    return f"did you mean {' or '.join(close)}? `wsgiload explain` lists them all"


_QUIET = "repeat on an idle machine; `wsgiload doctor` lists what disturbs this one"

_OF_SWEEPS = (
    _one(
        "app-calls",
        "the calls counted by a bundled app, compared with the requests and responses counted by "
        "the generator",
        "The counts differ, so at least one of them is wrong.",
        "file a bug and attach the run directory",
    ),
    _one(
        "kernel-drops",
        "the kernel's counters of accept queue overflows and drops during the load",
        "A listening socket dropped connection attempts. The client's kernel repeats the attempts "
        "after 1, 3 and 7 s, so the affected requests are among the slowest.",
        "raise the server's listen backlog, or lower the rate",
    ),
    _one(
        "shared-cores",
        "the cores of the server and of the generator",
        "The server and the generator shared cores, so they competed for CPU time.",
        "use a machine with more cores, or set --server-cpus and --client-cpus",
    ),
    _one(
        "host-not-idle",
        "whether the host becomes idle within --settle before each trial",
        "The host was still busy at the start of the trial.",
        _QUIET,
    ),
    _one(
        "limits",
        "the limits reported by the kernel",
        "A limit could not be enforced, and --limits strict was not given.",
        "run as root, or see docs/limits.md",
    ),
    _one(
        "contaminated",
        "the time that the server and the generator waited for a core, and the CPU time of others",
        "The server waited for a core for more than 5 % of the time, or the generator did while "
        "other processes used more than 10 % of the machine's CPU time. If the server's waits are "
        "not known, the CPU time of others alone is reported.",
        _QUIET,
    ),
    _one(
        "missing-samples",
        "the times of the resource samples during the measurement",
        "No resources were sampled for more than 1 s, because wsgiload itself was stopped "
        "(SIGSTOP, Ctrl-Z) or got no CPU time. CPU and memory figures do not cover this time. The "
        "load is not affected, because the generator is another process.",
        _QUIET,
    ),
    _one(
        "failure",
        "every step of a cell, from building the environment to stopping the server",
        "A step failed, so the cell has no result.",
        "look at the message and at the server's log in the run directory",
    ),
)

_OF_CAPACITY = (
    _one(
        "search",
        "the result of a capacity search",
        "The search failed to find a rate.",
        "look at the message, then repeat the search",
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
        "the confirmation trials at the highest rate that met the objective",
        "Too few confirmation trials met the objective.",
        "repeat the search on an idle machine",
    ),
    _one(
        "unconfirmed",
        "the number of confirmation trials",
        "There were no confirmation trials (--confirmations 0), so the rate is an unconfirmed "
        "lower bound.",
        "omit --confirmations",
    ),
    _one(
        "unfinished",
        "whether the search completed",
        "The search was interrupted or ran out of time.",
        "run the search again",
    ),
    _one(
        "discarded",
        "trials that are invalid because of the generator or the host",
        "Some trials were discarded and repeated. If more than 20 % were discarded, the result is "
        "invalid.",
        _QUIET,
    ),
    _one(
        "lower-bound",
        "disturbed trials near the capacity that missed the objective",
        "The disturbances may have caused the misses, so the capacity may be higher.",
        _QUIET,
    ),
    _one(
        "brevity",
        "the number of requests beyond the quantile in each trial",
        "Few requests lie beyond the quantile, so results vary widely between trials.",
        "use longer trials (--duration)",
    ),
)

_ALARMS = (
    _one(
        "wrong-responses",
        "responses with an unexpected status or body",
        "At least one response was incorrect. Errors can be faster than correct responses.",
        "check what the server returns before comparing servers",
    ),
    _one(
        "littles-law",
        "closed loop: throughput × (response time + think time), compared with the number of users",
        "The product differs from the number of users: some users never got a response and are "
        "missing from the response times.",
        "compare at a rate (--rate), or limit the users to the server's concurrency",
    ),
    _one(
        "uneven-connections",
        "closed loop: the number of requests on each connection",
        "Some connections carried most of the requests, others almost none.",
        "compare at a rate (--rate), or limit the users to the server's concurrency",
    ),
    _one(
        "dead-interval",
        "correct responses in each interval of the measurement",
        "Requests were due in an interval, but none got a correct response.",
        "find out why the server stopped responding; do not use mean values of this load",
    ),
    _one(
        "network-resources",
        "local ports, file descriptors and the conntrack table",
        "One of these resources is exhausted or nearly exhausted, so the client's kernel may "
        "refuse connections.",
        "use --keepalive on or more --source-addresses, or raise the limit named in the message",
    ),
    _one(
        "no-keepalive",
        "the number of connections per request, if keep-alive was requested",
        "The server closed nearly every connection after one response, so its response times "
        "include connection setup.",
        "use --keepalive off for all servers, or enable keep-alive in the server",
    ),
    _one(
        "nagle-delay",
        "the time between the head and the body of each response",
        "In at least 1 % of the responses, the body arrives 36 to 50 ms after the head. Slightly "
        "shorter or longer delays are at most one third as frequent. The cause is probably "
        "Nagle's algorithm, which waits for a delayed ACK.",
        "set TCP_NODELAY in the server, or write head and body together",
    ),
    _one(
        "closed-loop-stalls",
        "closed loop: the share of the users' waiting time spent on responses slower than ten "
        "times p99",
        "The share is at least 2 %. Users send nothing while they wait, so a stall adds only one "
        "slow response per user and does not affect p99.",
        "measure in an open loop (-R), which keeps sending during a stall",
    ),
    _one(
        "cached-response",
        "the response time of the URL after the load, with and without a new query string (sweeps "
        "of your own app with a single GET URL)",
        "With a new query string, the response takes at least three times as long and at least "
        "1 ms longer: the app caches responses, so only the cache was measured.",
        "measure the URLs that users request (--targets FILE)",
    ),
    _one(
        "memory-growth",
        "the memory of the server's processes before and after the load, and of its cgroup during "
        "the load",
        "Memory grew by at least 10 MiB and 20 % during a load of at least 5 s, and was still "
        "growing at the end.",
        "measure longer (--duration), and look for a leak or an unbounded cache",
    ),
    _one(
        "idle-server",
        "the server's CPU use while it falls behind the offered rate",
        "The server falls behind but uses less than half of its CPU limit, so the bottleneck is "
        "its threads, its connections or a backend.",
        "add workers or threads, or speed up the backend",
    ),
    _one(
        "busy-service",
        "the CPU use of supporting services ([services.NAME]) and of the server",
        "A service saturated its cores or waited for a CPU for 90 % of the time, while the server "
        "had CPU time left. The service is the bottleneck, so the figures describe the service "
        "instead of the server.",
        "give the service more cores, or reduce its load: fewer queries, an index, a cache",
    ),
    _one(
        "limiting-variable",
        "your own commands that differ in one environment variable and have the same number of "
        "workers and threads",
        "At the same rate, idle-server fires for one command, and another command responds to at "
        "least 20 % more requests: the variable, such as a pool size, is the bottleneck.",
        "use the value of the faster command",
    ),
    _one(
        "rate-not-reached",
        "responses per second, compared with the offered rate",
        "Throughput is below the offered rate, so the latency does not describe that rate.",
        "lower the rate; `wsgiload capacity` finds the highest sustainable rate",
    ),
    _one(
        "run-spread",
        "the throughput of the runs of one server at one load level",
        "Throughput varies by more than 10 % between runs.",
        "use more --runs on an idle machine",
    ),
    _one(
        "flat-throughput",
        "closed loop: throughput at three or more user counts",
        "Throughput stays the same while the number of users at least doubles: the server handles "
        "a fixed number of requests at once.",
        "compare at a fixed rate (--rate) that the servers sustain",
    ),
)
