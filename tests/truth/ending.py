"""The app of ``test_no_answer``: the variable ENDING says how it behaves."""

import os
import sys
import time

ENDING = os.environ["ENDING"]
if ENDING == "oom":
    hoard = [b"x" * (1 << 20) for _ in range(1024)]
if ENDING == "exit":
    sys.exit(3)
if ENDING == "exception":
    raise RuntimeError("the licence has expired")
if ENDING == "never":
    time.sleep(1000)


def _endless(piece, pause_s):
    while True:
        yield piece
        time.sleep(pause_s)


def app(environ, start_response):
    status, headers, body = "200 OK", [("Content-Type", "text/plain")], [b"ok"]
    if ENDING == "endless":
        body = _endless(b"x" * 1000, 0.01)
    elif ENDING == "stream":
        headers = [("Content-Type", "text/event-stream")]
        body = _endless(b"data: tick\n\n", 0.1)
    elif ENDING == "503":
        status, body = "503 Service Unavailable", [b"pool exhausted"]
    elif ENDING == "redirect":
        status, headers = "302 Found", [("Location", "/login?next=/")]
    start_response(status, headers)
    return body
