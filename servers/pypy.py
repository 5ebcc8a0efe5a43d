"""gevent's pywsgi on PyPy: the same server on an interpreter that compiles while it runs."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option

REFERENCE = "https://www.gevent.org/api/gevent.pywsgi.html"
WARM_UP = "https://doc.pypy.org/en/latest/faq.html"

NOTES = (
    f"log=None and backlog as for gevent on CPython ({REFERENCE})",
    "gevent.monkey.patch_all() before the app is imported: the app's sleeps and sockets yield",
    "its extensions are compiled from source, which takes a minute",
)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """The runner of gevent. This PyPy has no -P, so that the runner's folder is on its path."""
    return [
        *(str(context.python), str(Path(__file__).parent / "runners" / "run_gevent.py")),
        *("--host", context.host, "--port", str(context.port)),
        *option("--backlog", context.backlog),
        *context.when_tuned("--no-log"),
        context.app,
    ]


def _variant(name: str, summary: str, cold: bool) -> Variant:
    return Variant(
        name=name,
        summary=summary,
        keepalive=True,
        uses_workers=False,
        uses_threads=False,
        notes=(*NOTES, f"PyPy is slow until its JIT has warmed up ({WARM_UP})"),
        stock_notes=(f"logs every request to standard error ({REFERENCE})",),
        unix_socket=True,
        no_trusted_proxies="it has no setting for trusted proxies",
        cold=cold,
    )


SERVER = Server(
    name="pypy",
    summary="gevent.pywsgi on PyPy",
    homepage="https://pypy.org/",
    source=Path(__file__),
    requirements=("gevent==26.7.0",),
    distribution="gevent",
    variants=(
        _variant("gevent-warm", "after the usual warm-up", cold=False),
        _variant(
            "gevent-cold", "measured from its first request on, without any warm-up", cold=True
        ),
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
    legacy=True,  # Debian's PyPy speaks Python 3.9
)
