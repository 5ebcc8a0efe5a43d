"""The published comparisons: their method and its known flaws."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from studies.results import FAIR
from studies.tables import Style
from wsgiload import UsageError


@dataclass(frozen=True, slots=True)
class Original:
    """A published comparison. ``tables`` is the format of its tables, ``flaws`` are the flaws of
    its method, ``names`` explains our names of servers."""

    name: str
    heading: str
    tables: Style
    did: str
    flaws: str
    names: str = ""


ORIGINALS: tuple[Original, ...] = (
    Original(
        "appdynamics-2016",
        "AppDynamics, 2016",
        "appdynamics",
        "wrk measured six servers with default settings, on two cores with 512 MiB of memory, at "
        "100 to 10,000 connections for 30 s each. Each response had two bytes. Of four runs, the "
        "lowest and the highest result were dropped.",
        "Only bjoern and CherryPy reused connections. The other servers closed every connection, "
        "so the client ran out of ports. wrk never retries a failed connection. wrk's output omits "
        "aborted runs and connections that were never served. Missing runs counted as 0 in the "
        "averages.",
        "`uwsgi-nginx` is uWSGI behind nginx; the original did not measure it.",
    ),
    Original(
        "kgriffs-2012",
        "kgriffs, 2012",
        "httperf",
        "httperf measured uWSGI, gunicorn and gevent on two cores, with one worker each, at rising "
        "rates. Every request opened a new connection and got 1 KB of JSON.",
        "uWSGI's HTTP router is a second process, so uWSGI used two cores; the other servers used "
        "one. No measurement was repeated. Some figures come from other measurement sessions.",
    ),
    Original(
        "ziade-2012",
        "Ziadé, 2012",
        "funkload",
        "FunkLoad measured two servers with 50 processes each: gunicorn with gevent, and "
        "Chaussette with several backends (such as meinheld), managed by Circus. Each measurement "
        "had 50 to 400 users and took 120 s. In part 1, the app sleeps for 100 ms and writes a "
        "file (app `files`).",
        "The disk was the bottleneck. Part 2 retracts the results of part 1 and uses an app that "
        "writes no file (app `database`). FunkLoad omits requests that are unfinished at the end "
        "of a measurement. These are the slowest requests.",
        "`gunicorn-gevent` has a listen backlog of 2,048; `backlog-16` and `backlog-4096` are the "
        "same server with listen backlogs of 16 and 4,096.",
    ),
    Original(
        "dyedov-2012",
        "Dyedov, 2012",
        "ab",
        "ab measured gunicorn and uWSGI, both with gevent and behind nginx, at 1 to 300 "
        "connections, with 10,000 requests per load level. The app fetches a document from another "
        "server.",
        "The app's code differed between the two servers, and the responses were not checked. The "
        "app published for uWSGI fails before it calls the other server.",
    ),
    Original(
        "slides-2013",
        "WSGI servers (slides), 2013",
        "httperf",
        "httperf measured uWSGI, CherryPy, gevent on CPython and gevent on PyPy at 1,000, 2,000 "
        "and 3,000 requests/s, with 10,000 requests per rate and a new connection per request. "
        "The ranking of the other servers comes from an older comparison (2010).",
        "httperf ran out of file descriptors; the failed requests were counted as server errors. "
        "Nearly every median is 0.5 ms, the middle of httperf's first histogram bin (0 to 1 ms).",
        "`pypy-gevent-cold` is measured from its first request, without warm-up. "
        "`pypy-gevent-warm` is measured after a warm-up of at least 1,000 requests.",
    ),
)


def original_of(run: Path, name: str | None) -> Original:
    """The comparison that a run repeats, with original or with fair settings; ``name`` is that of
    its experiment file. Raises UsageError for a run of another experiment."""
    for original in ORIGINALS:
        if name in (original.name, original.name + FAIR):
            return original
    known = ", ".join(one.name for one in ORIGINALS)
    raise UsageError(f"{run} is not from `wsgiload reproduce`", f"name a run of {known}")
