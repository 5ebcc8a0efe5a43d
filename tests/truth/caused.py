"""A server with one known cause of slow responses: ``caused.py CAUSE PORT``."""

import gc
import http.server
import socketserver
import sys
import threading
import time

CAUSE = sys.argv[1]
lock, pool, hoard = threading.Lock(), threading.Semaphore(2), []
# With these objects, a collection takes 0.2 s of CPU time.
objects = []


def prepare_collections():
    gc.disable()
    length_s = 0.0
    while length_s < 0.2:
        objects.extend([n] for n in range(200_000))
        began_s = time.process_time()
        gc.collect()
        length_s = time.process_time() - began_s


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = CAUSE != "nagle"

    def do_GET(self):
        if CAUSE == "lock":
            with lock:
                time.sleep(0.014)
        elif CAUSE == "pool":
            with pool:
                time.sleep(0.03)
        elif CAUSE == "gc":
            hoard.append(1)
            if len(hoard) % 60 == 0:
                gc.collect()
        elif CAUSE == "quota":
            end = time.thread_time() + 0.008
            while time.thread_time() < end:
                pass
        elif CAUSE == "queue":
            self.close_connection = True
            time.sleep(0.05)
        elif CAUSE == "oom":
            hoard.append(b"x" * (4 << 20))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"o")
        self.wfile.write(b"k")

    def log_message(self, *arguments):
        pass


if CAUSE == "gc":
    prepare_collections()
one_at_a_time = CAUSE == "queue"
base = socketserver.TCPServer if one_at_a_time else socketserver.ThreadingTCPServer
base.allow_reuse_address, base.request_queue_size = True, 1 if one_at_a_time else 128
base.daemon_threads = True
base(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
