"""A server of raw bytes: whatever a test gives it goes to the client as it is, in pieces."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

# Long enough that the client reads each piece by itself.
BETWEEN_PIECES_S = 0.002


@dataclass(frozen=True, slots=True)
class Reply:
    """What a request gets, and whether the connection ends after it."""

    pieces: Sequence[bytes]
    closes: bool = False


Respond = Callable[[bytes], Reply]


def serve(connection: socket.socket, respond: Respond) -> None:
    """Reply to the heads of requests without bodies."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection, suppress(OSError):
        received = b""
        while more := connection.recv(65_536):
            received += more
            while b"\r\n\r\n" in received:
                head, _, received = received.partition(b"\r\n\r\n")
                reply = respond(head)
                for place, piece in enumerate(reply.pieces):
                    time.sleep(BETWEEN_PIECES_S if place else 0)
                    connection.sendall(piece)
                if reply.closes:
                    return


@contextmanager
def raw_server(respond: Respond) -> Iterator[str]:
    """The URL of a server that replies with what ``respond`` makes of a request's head."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    talk = threading.Thread(target=serve, args=(connection, respond), daemon=True)
                    talk.start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        # Wakes the thread that waits for a connection.
        listener.shutdown(socket.SHUT_RDWR)
