"""Fixed work in pure Python, about one millisecond on a current core; its result is the body.

The work is fixed rather than the time, so a slower or throttled core gives slower responses. It is
pure Python because hashlib releases the GIL, which would hide GIL contention.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

ROUNDS = 9_000
# Knuth's MMIX generator: each round needs the previous one, so no work can be skipped.
MULTIPLIER, INCREMENT, MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1

PATH = "/"
EXPECTED_BODY = b"1d6a7c78b86af7e9\n"


def digest(rounds: int = ROUNDS) -> str:
    """The state after this many rounds, as 16 hexadecimal digits."""
    state = 1
    for _ in range(rounds):
        state = (state * MULTIPLIER + INCREMENT) & MASK
    return f"{state:016x}"


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Compute, then respond with the digest."""
    body = digest().encode() + b"\n"
    start_response(
        "200 OK",
        [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))],
    )
    return [body]


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted  # type: ignore[import-not-found]  # beside this file, on the server's path

    app = counted(app)
