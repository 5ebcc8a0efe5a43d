"""A "database" that accepts 4 connections and refuses more, like a small hosted database."""

import socket
import sys
import threading

slots = threading.Semaphore(4)


def serve(connection):
    if not slots.acquire(blocking=False):
        connection.sendall(b"FATAL too many connections\n")
        connection.close()
        return
    try:
        connection.sendall(b"READY\n")
        while connection.recv(64):
            connection.sendall(b"ROW\n")
    except OSError:
        pass
    finally:
        slots.release()
        connection.close()


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
