"""Keeps one database connection per thread of each worker, opened on its first request."""

import os
import socket
import threading
import time

local = threading.local()


def connection():
    if not hasattr(local, "connection"):
        opened = socket.create_connection(("127.0.0.1", int(os.environ["DB_PORT"])))
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not opened.recv(64).startswith(b"READY"):
            raise RuntimeError("too many connections")
        local.connection = opened
    return local.connection


def application(environ, start_response):
    try:
        database = connection()
    except (RuntimeError, OSError) as error:
        text = str(error).encode()
        start_response("500 Internal Server Error", [("Content-Length", str(len(text)))])
        return [text]
    database.sendall(b"SELECT\n")
    database.recv(64)
    time.sleep(0.02)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
