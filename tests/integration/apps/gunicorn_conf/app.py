import os

POOL = None


def connect():
    """Called by gunicorn's post_fork hook; without it, every request fails."""
    global POOL
    POOL = os.environ["POOL_URL"]


def application(environ, start_response):
    if POOL is None:
        start_response("500 Internal Server Error", [("Content-Length", "7")])
        return [b"no pool"]
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
