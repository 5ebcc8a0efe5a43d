"""An app factory; the module has no WSGI callable of its own."""

import os


def create_app(greeting=None):
    text = (greeting or os.environ.get("GREETING", "hello")).encode()

    def application(environ, start_response):
        start_response(
            "200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))]
        )
        return [text]

    return application
