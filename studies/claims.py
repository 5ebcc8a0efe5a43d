"""The claims of published comparisons, each compared with the results of its study. Pure.

A claim is confirmed or refuted only by one of our confidence intervals. It is not reproducible if
its subject no longer exists; otherwise it is undecided, and the judgement says what would decide
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from studies.judgement import ClaimJudgement, Judge, not_reproducible, with_settings
from studies.judges import (
    ahead,
    as_fast,
    erratic,
    fails,
    in_order,
    lightest,
    one_core,
    quickest_at_worst,
    saturates,
    slow_until_warm,
    steady,
)
from studies.runs import Results
from studies.setup_judges import does_not_explain, fails_with_small_backlog, unaffected_by_order
from wsgiload import LoadReport, Summary


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a study, as a phrase with its figure.

    ``servers`` are those that the claim is about, as in --servers; empty if it is about all of
    them.
    """

    name: str
    study: str
    words: str
    figure: str
    judge: Judge
    servers: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that measures only the servers of this claim."""
        servers = f" --servers {','.join(self.servers)}" if self.servers else ""
        return f"wsgiload reproduce {self.study}{servers}"


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim and its judgement."""

    claim: Claim
    judgement: ClaimJudgement


_APPDYNAMICS, _KGRIFFS, _ZIADE = "appdynamics-2016", "kgriffs-2012", "ziade-2012"
_DYEDOV, _SLIDES = "dyedov-2012", "slides-2013"
_SIX = ("bjoern", "cherrypy", "gunicorn-sync", "meinheld", "mod_wsgi-express", "uwsgi-http")
_RANKED = ("gevent-pywsgi", "uwsgi-http", "tornado", "cherrypy", "gunicorn-sync", "twisted")
_PYPY = ("pypy-gevent-cold", "pypy-gevent-warm", "uwsgi-http")
_BACKLOGS = {16: "backlog-16", 2048: "gunicorn-gevent", 4096: "backlog-4096"}

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "bjoern-fastest",
        _APPDYNAMICS,
        "bjoern has by far the highest throughput",
        "96,000 to 130,000 requests/s",
        ahead("bjoern", tuple(name for name in _SIX if name != "bjoern")),
        _SIX,
    ),
    Claim(
        "cherrypy-steady",
        _APPDYNAMICS,
        "CherryPy stays fast at every load level, with almost no errors",
        "below 3 ms at 10,000 connections",
        with_settings(steady("cherrypy", max_ms=3.0, load=10_000), ("cherrypy",), backlog=500),
        ("cherrypy",),
    ),
    Claim(
        "uwsgi-fails",
        _APPDYNAMICS,
        "uWSGI is the slowest and fails most often",
        "34 % errors at 10,000 connections",
        fails("uwsgi-http", share=0.34, load=10_000),
        ("uwsgi-http",),
    ),
    Claim(
        "meinheld-fails",
        _APPDYNAMICS,
        "meinheld fails under high load",
        "more than 10,000 errors",
        fails("meinheld", share=0.05, load=10_000),
        ("meinheld",),
    ),
    Claim(
        "gunicorn-fails",
        _APPDYNAMICS,
        "gunicorn fails under high load",
        "9 % errors at 10,000 connections",
        fails("gunicorn-sync", share=0.09, load=10_000),
        ("gunicorn-sync",),
    ),
    Claim(
        "mod-wsgi-fails",
        _APPDYNAMICS,
        "mod_wsgi fails under high load",
        "6 % errors at 10,000 connections",
        fails("mod_wsgi-express", share=0.06, load=10_000),
        ("mod_wsgi-express",),
    ),
    Claim(
        "bjoern-meinheld-lightest",
        _APPDYNAMICS,
        "bjoern and meinheld need the least memory",
        "about 9 MB at 10,000 connections",
        lightest(("bjoern", "meinheld"), _SIX),
        _SIX,
    ),
    Claim(
        "cherrypy-gil",
        _APPDYNAMICS,
        "the GIL limits CherryPy to 1.5 cores; bjoern and meinheld use one core each",
        "1.5 and 1.0 of two cores",
        one_core(("bjoern", "meinheld"), other_max=("cherrypy", 1.6)),
        ("bjoern", "meinheld", "cherrypy"),
    ),
    Claim(
        "order-irrelevant",
        _APPDYNAMICS,
        "the order in which the servers are measured does not change the result",
        "four rounds in random order",
        unaffected_by_order(within=0.10),
    ),
    Claim(
        "nginx-irrelevant",
        _APPDYNAMICS,
        "uWSGI remains far slower than bjoern even behind nginx",
        "not measured",
        does_not_explain("uwsgi-nginx", "uwsgi-http", "bjoern"),
        ("uwsgi-nginx", "uwsgi-http", "bjoern"),
    ),
    Claim(
        "uwsgi-ahead",
        _KGRIFFS,
        "with gevent and one worker, uWSGI beats gunicorn",
        "shown in charts only",
        ahead("uwsgi-gevent", ("gunicorn-gevent",)),
        ("uwsgi-gevent", "gunicorn-gevent"),
    ),
    Claim(
        "uwsgi-erratic",
        _KGRIFFS,
        "uWSGI's throughput is erratic under high load",
        "shown in charts only",
        erratic("uwsgi-gevent", "gunicorn-gevent"),
        ("uwsgi-gevent", "gunicorn-gevent"),
    ),
    Claim(
        "circus-ahead",
        _ZIADE,
        "Circus with meinheld beats gunicorn with gevent",
        "slowest request: 30 s (gunicorn: 60 s)",
        with_settings(
            quickest_at_worst("circus-meinheld", "gunicorn-gevent", app="files"),
            ("circus-meinheld", "gunicorn-gevent"),
            workers=50,
        ),
        ("circus-meinheld", "gunicorn-gevent"),
    ),
    Claim(
        "fastgevent-crashes",
        _ZIADE,
        "Chaussette's backend fastgevent crashes",
        "above 150 users",
        not_reproducible("gevent 1.3 removed gevent.wsgi, which the backend is based on"),
    ),
    Claim(
        "small-backlog-fails",
        _ZIADE,
        "a small listen backlog causes errors, but a backlog above 2,048 does not increase "
        "throughput",
        "used a backlog of 2,048",
        with_settings(
            fails_with_small_backlog(_BACKLOGS, app="files"), tuple(_BACKLOGS.values()), workers=50
        ),
        ("gunicorn-gevent", "backlog-16=gunicorn-gevent", "backlog-4096=gunicorn-gevent"),
    ),
    Claim(
        "server-irrelevant",
        _DYEDOV,
        "with gevent, gunicorn is as fast as uWSGI",
        "no difference",
        as_fast("gunicorn-nginx", "uwsgi-nginx", within=0.10),
        ("gunicorn-nginx", "uwsgi-nginx"),
    ),
    Claim(
        "ranking",
        _SLIDES,
        "gevent and uWSGI are fastest, followed by Tornado, CherryPy, gunicorn and Twisted",
        "gevent ≥ uWSGI > Tornado ≥ CherryPy > gunicorn ≥ Twisted",
        in_order(_RANKED),
        _RANKED,
    ),
    Claim(
        "pypy-needs-warm-up",
        _SLIDES,
        "gevent on PyPy is as fast as uWSGI after warm-up, but very slow before",
        "2,851 of 3,000 requests/s, slowest response 3,010 ms",
        slow_until_warm(*_PYPY),
        _PYPY,
    ),
    Claim(
        "cherrypy-saturates",
        _SLIDES,
        "CherryPy cannot serve 3,000 requests/s",
        "1,785 of 3,000 requests/s",
        saturates("cherrypy", load=3000),
        ("cherrypy",),
    ),
)


def claims_of(study: str) -> tuple[Claim, ...]:
    """The claims of a study; a fair version has none."""
    return tuple(claim for claim in CLAIMS if claim.study == study)


def judged(study: str, summary: Summary, loads: Mapping[str, LoadReport]) -> Sequence[JudgedClaim]:
    """Every claim of the study with its judgement."""
    results = Results.of(summary, loads)
    return [JudgedClaim(claim, claim.judge(results)) for claim in claims_of(study)]
