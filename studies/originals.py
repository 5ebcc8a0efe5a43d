"""The published comparisons: their method and its known flaws."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Original:
    """A published comparison; ``flaws`` are the flaws of its method."""

    name: str
    heading: str
    did: str
    flaws: str


ORIGINALS: tuple[Original, ...] = (
    Original(
        "appdynamics-2016",
        "AppDynamics, 2016",
        "wrk measured six servers with their default settings on two cores with 512 MB, at 100 to "
        "10,000 connections for 30 s each. Each response had two bytes. The lowest and the highest "
        "of four results were dropped.",
        "wrk requests keep-alive and never retries a failed connection. bjoern and CherryPy "
        "support keep-alive; the other servers close every connection, so the client runs out of "
        "ports. wrk's output does not include connections that were never served, nor aborted "
        "runs. Missing runs were averaged as 0.",
    ),
    Original(
        "kgriffs-2012",
        "kgriffs, 2012",
        "httperf measured uWSGI, gunicorn and gevent on two cores, each with one worker, at rising "
        "rates. Every request opened a new connection and got 1 KB of JSON.",
        "uWSGI's HTTP router is a second process, so uWSGI used two cores and the others one. No "
        "measurement was repeated, and some figures were measured on another occasion.",
    ),
    Original(
        "ziade-2012",
        "Ziadé, 2012",
        "FunkLoad measured gunicorn with gevent and Circus with Chaussette, each with 50 "
        "processes, at 50 to 400 users for 120 s each. In part 1 of the study, the app sleeps "
        "100 ms and writes a file (app `files`).",
        "The disk was the bottleneck, so part 2 retracts these results and uses an app that writes "
        "no file (app `database`). FunkLoad omits the slowest requests: those that are unfinished "
        "at the end of a cycle.",
    ),
    Original(
        "dyedov-2012",
        "Dyedov, 2012",
        "ab measured gunicorn and uWSGI with gevent, both behind nginx, at 1 to 300 users with "
        "10,000 requests each. The app fetches a document from another server.",
        "Each server ran different code, and responses were not checked: the code published for "
        "uWSGI fails before it calls the other server.",
    ),
    Original(
        "slides-2013",
        "WSGI servers (slides), 2013",
        "httperf measured uWSGI, CherryPy, and gevent on CPython and on PyPy at 1,000, 2,000 and "
        "3,000 requests/s, with 10,000 requests, each on a new connection. The ranking of the "
        "other servers is taken from an older comparison (2010).",
        "httperf ran out of file descriptors and counted these failures as server errors. Nearly "
        "every median is 0.5 ms, the middle of httperf's first histogram bin (0 to 1 ms).",
    ),
)
