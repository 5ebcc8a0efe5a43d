"""Measures whether an app seems to cache the response of the measured URL."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass, replace
from secrets import token_hex

from wsgiload.loads.request import Request
from wsgiload.serving.exchange import exchange
from wsgiload.units import NS_PER_S

PAIRS = 3
TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class CacheProbe:
    """Response times of an idle server, chosen so that a difference is conservative evidence for a
    cache."""

    slowest_same_ns: int
    """The slowest response of the measured URL."""
    fastest_new_ns: int
    """The fastest response of the same path with a new query."""


def probe_cache(address: tuple[str, int], request: Request) -> CacheProbe | None:
    """Alternately request the URL and the URL with a new query. None if they are not comparable:
    several URLs, a method other than GET, or a server that rejects the query or is too slow.

    Takes at most ``2 * PAIRS * TIMEOUT_S``.
    """
    if request.method != "GET" or request != request.first:
        return None

    same: list[int] = []
    new: list[int] = []
    for _ in range(PAIRS):
        for times, probe in ((same, request), (new, _with_new_query(request))):
            elapsed_ns = _response_time_ns(address, probe)
            if elapsed_ns is None:
                return None
            times.append(elapsed_ns)
    return CacheProbe(max(same), min(new))


def _with_new_query(request: Request) -> Request:
    mark = "&" if "?" in request.path else "?"
    return replace(request, path=f"{request.path}{mark}wsgiload={token_hex(8)}")


def _response_time_ns(address: tuple[str, int], request: Request) -> int | None:
    started_ns = time.monotonic_ns()
    try:
        response = exchange(address, request, TIMEOUT_S)
    except (OSError, http.client.HTTPException):
        return None
    elapsed_ns = time.monotonic_ns() - started_ns
    in_time = elapsed_ns <= TIMEOUT_S * NS_PER_S
    return elapsed_ns if in_time and response.status in request.statuses else None
