"""A "database" that takes 4 connections and turns further ones away, as a small hosted one does."""

import socket
import sys
import threading

slots = threading.Semaphore(4)


def talk(connection):
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
    threading.Thread(target=talk, args=(connection,), daemon=True).start()
