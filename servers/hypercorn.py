"""hypercorn: an ASGI server that also runs WSGI apps, in threads."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option

REFERENCE = "https://hypercorn.readthedocs.io/en/latest/how_to_guides/configuring.html"

# Settings without a command-line option; a file given with --server-config replaces this one.
SETTINGS = Path(__file__).parent / "runners" / "hypercorn_settings.py"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """``python -m hypercorn``."""
    return [
        *(str(context.python), "-m", "hypercorn", "--bind", context.address),
        *option("--workers", context.workers),
        *option("--backlog", context.backlog),
        *option("--keep-alive", context.idle_timeout_s),
        *context.when_tuned("--graceful-timeout", 2, "--log-level", "WARNING"),
        *context.when_tuned("--config", f"file:{SETTINGS}"),
        *(context.when_tuned("--worker-class", "uvloop") if variant.interface == "asgi" else []),
        f"{variant.interface}:{context.app}",
    ]


NOTES = (
    f"--backlog set by the profile (default 100; {REFERENCE})",
    f"--keep-alive longer than the run (default 5 s; {REFERENCE})",
    f"--graceful-timeout 2: limits the shutdown time ({REFERENCE})",
    f"--log-level WARNING; no access log by default ({REFERENCE})",
    f"h11_max_incomplete_size = 65536: request heads up to 64 KiB (default 16 KiB; {REFERENCE})",
    "besides the workers, there are two processes: the main process and a helper",
)
STOCK_NOTES = (f"one worker, backlog 100, keep-alive for 5 s ({REFERENCE})",)

SERVER = Server(
    name="hypercorn",
    summary="ASGI server; a WSGI adapter runs the app in threads",
    homepage="https://hypercorn.readthedocs.io/",
    source=Path(__file__),
    requirements=("hypercorn==0.18.0", "uvloop==0.23.0"),
    distribution="hypercorn",
    variants=(
        Variant(
            name="default",
            summary="WSGI in asyncio's default thread pool (its size cannot be configured)",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=NOTES,
            stock_notes=STOCK_NOTES,
            unix_socket=True,
            helpers=2,
            no_trusted_proxies="ProxyFixMiddleware supports only ASGI apps",
            deviation="SERVER_PORT is not a string",
            extra=True,
        ),
        Variant(
            name="asgi",
            summary="ASGI on uvloop",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(
                "--worker-class uvloop: the same event loop as the other ASGI servers (default "
                f"asyncio; {REFERENCE})",
                *NOTES,
            ),
            stock_notes=("asyncio's event loop", *STOCK_NOTES),
            unix_socket=True,
            helpers=2,
            no_trusted_proxies="proxies are trusted only if the app is wrapped "
            "with hypercorn.middleware.ProxyFixMiddleware",
            interface="asgi",
        ),
    ),
    default_variant="default",
    command=command,
    takes_arguments=True,
    config_option="--config",
)
