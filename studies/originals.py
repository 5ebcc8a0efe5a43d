"""What the published comparisons did, and what is known to be wrong with how they did it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Original:
    """A comparison as it was published; ``flaws`` are those of its method."""

    name: str
    heading: str
    did: str
    flaws: str


ORIGINALS: tuple[Original, ...] = (
    Original(
        "appdynamics-2016",
        "AppDynamics, 2016",
        "Six servers with their defaults, a response of two bytes, and wrk with 100 to 10,000 "
        "connections for 30 s each, on two cores with 512 MB. The lowest and the highest of "
        "four rounds were dropped.",
        "wrk requests keep-alive, and never retries a connection that failed. bjoern and CherryPy "
        "support keep-alive; the other servers close every connection, so the client runs out of "
        "ports. Connections that are never served and aborted runs are missing from wrk's output, "
        "and missing runs were averaged as 0.",
    ),
    Original(
        "kgriffs-2012",
        "kgriffs, 2012",
        "uWSGI, gunicorn and gevent with one worker each, 1 KB of JSON, and httperf with a new "
        "connection for each request, at rising rates on two cores.",
        "uWSGI's HTTP router is a second process, so uWSGI used two cores and the others one. No "
        "measurement was repeated, and some figures came from another session.",
    ),
    Original(
        "ziade-2012",
        "Ziadé, 2012",
        "gunicorn with gevent and Circus with Chaussette, 50 processes each, an app that sleeps "
        "100 ms and writes a file, and FunkLoad with 50 to 400 users for 120 s each.",
        "The disk was the bottleneck, so part 2 of the study retracts part 1. FunkLoad omits "
        "requests that are unfinished at the end of a cycle, which are the slowest ones.",
    ),
    Original(
        "dyedov-2012",
        "Dyedov, 2012",
        "gunicorn and uWSGI with gevent, both behind nginx, an app that fetches a document from "
        "another server, and ab with 1 to 300 users and 10,000 requests each.",
        "Each server ran different code, and no response was checked: the published app for uWSGI "
        "fails before it calls the other server.",
    ),
    Original(
        "slides-2013",
        "WSGI servers (slides), 2013",
        "uWSGI, CherryPy, and gevent on CPython and on PyPy, measured by httperf with 10,000 "
        "requests at 1,000, 2,000 and 3,000 requests/s, each on a new connection. The ranking of "
        "the other servers is taken from an older comparison (2010).",
        "httperf ran out of file descriptors, which counted as errors of the server. Nearly every "
        "median is 0.5 ms: the middle of httperf's first bin, which is 1 ms wide.",
    ),
)
