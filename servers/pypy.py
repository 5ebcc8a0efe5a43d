"""gevent.pywsgi on PyPy, an interpreter with a just-in-time compiler."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option

REFERENCE = "https://www.gevent.org/api/gevent.pywsgi.html"
WARM_UP = "https://doc.pypy.org/en/latest/faq.html"
# At 1,000 requests/s, it falls behind until its JIT has compiled, and then works off the backlog.
WARMUP_S = 8.0

NOTES = (
    f"log=None, TCP_NODELAY, backlog set by the profile: as for gevent on CPython ({REFERENCE})",
    "gevent.monkey.patch_all() before the app is imported: sleeps and socket calls of the app "
    "yield to the event loop",
    "the installation takes a minute, because gevent's extensions are compiled from source",
)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """The runner of gevent. PyPy 3.9 has no option -P, so the runner's folder is on its path."""
    return [
        *(str(context.python), str(Path(__file__).parent / "runners" / "run_gevent.py")),
        *("--host", context.host, "--port", str(context.port)),
        *option("--backlog", context.backlog),
        *context.when_tuned("--no-log", "--no-delay"),
        context.app,
    ]


def _variant(name: str, summary: str, warmup_s: float) -> Variant:
    return Variant(
        name=name,
        summary=summary,
        keepalive=True,
        uses_workers=False,
        uses_threads=False,
        notes=(*NOTES, f"PyPy is slow until its JIT has warmed up ({WARM_UP})"),
        stock_notes=(
            f"every request written to standard error, Nagle's algorithm on ({REFERENCE})",
        ),
        unix_socket=True,
        no_trusted_proxies="no setting for trusted proxies",
        warmup_s=warmup_s,
    )


SERVER = Server(
    name="pypy",
    summary="gevent.pywsgi on PyPy",
    homepage="https://pypy.org/",
    source=Path(__file__),
    requirements=("gevent==26.7.0",),
    distribution="gevent",
    variants=(
        _variant("gevent-warm", f"measured after a warm-up of at least {WARMUP_S:g} s", WARMUP_S),
        _variant("gevent-cold", "measured from the first request on, without warm-up", 0.0),
    ),
    default_variant="gevent-warm",
    command=command,
    ignored_variables=("GEVENT_*", "GREENLET_*", "PYPY*"),
    implementation="PyPy",
    python_min=(3, 9),
    needs_compiler=True,
    needs=(
        Dependency("gcc", program="gcc"),
        Dependency("pypy3", program="pypy3"),
        Dependency("pypy3-dev", header="pypy3*/Python.h"),
    ),
    legacy=True,  # Debian's PyPy implements Python 3.9
)
