"""Whether anything listens where a load would be sent."""

from __future__ import annotations

import socket
from urllib.parse import SplitResult, urlsplit

from wsgiload.documents.load_plan import LoadPlan
from wsgiload.errors import ServerError

DEFAULT_PORTS = {"http": 80, "https": 443}
_TIMEOUT_S = 1.0


def require_listener(plan: LoadPlan) -> None:
    """Raise ServerError if the connection is refused. The load itself reports every other error."""
    if plan.source_addresses:  # the load itself connects from them
        return
    try:
        url = urlsplit(plan.url if "://" in plan.url else f"http://{plan.url}")
        _connect(plan, url)
    except ConnectionRefusedError as error:
        place = plan.unix_socket or plan.connect_to or url.netloc
        raise ServerError(
            f"nothing listens on {place.rpartition('@')[2]}: {error.strerror}",
            "start the server, or correct the address",
        ) from error
    except (KeyError, OSError, ValueError):
        pass


def _connect(plan: LoadPlan, url: SplitResult) -> None:
    if plan.unix_socket is not None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(plan.unix_socket)
        return
    target = url if plan.connect_to is None else urlsplit(f"//{plan.connect_to}")
    port = target.port or DEFAULT_PORTS[url.scheme]
    socket.create_connection((target.hostname or "", port), _TIMEOUT_S).close()
