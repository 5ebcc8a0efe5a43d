"""``app`` logs 512 KiB per request, ``quiet`` nothing."""

import sys

LINES = ("x" * 1023 + "\n") * 256


def app(environ, start_response):
    environ["wsgi.errors"].write(LINES)
    sys.stdout.write(LINES)
    sys.stdout.flush()
    return quiet(environ, start_response)


def quiet(environ, start_response):
    body = b"ok\n"
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
    start_response("200 OK", headers)
    return [body]
