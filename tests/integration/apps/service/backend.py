"""A service that needs 5 ms of CPU per request and serves one at a time, like a database on one
core."""

import socketserver
import sys
import time


class Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        if self.request.recv(1):
            end = time.thread_time() + 0.005
            while time.thread_time() < end:
                pass
            self.request.sendall(b"y")


class Server(socketserver.TCPServer):
    allow_reuse_address = True
    request_queue_size = 500


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
