"""A server that sends the bytes chosen by a test unchanged, in pieces."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

# Long enough for the client to read each piece separately.
BETWEEN_PIECES_S = 0.002


@dataclass(frozen=True, slots=True)
class RawResponse:
    """The bytes of a response, and whether the server closes the connection afterwards."""

    pieces: Sequence[bytes]
    closes: bool = False


Respond = Callable[[bytes], RawResponse]


def serve(connection: socket.socket, respond: Respond) -> None:
    """Respond to requests without bodies."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection, suppress(OSError):
        received = b""
        while more := connection.recv(65_536):
            received += more
            while b"\r\n\r\n" in received:
                head, _, received = received.partition(b"\r\n\r\n")
                response = respond(head)
                for index, piece in enumerate(response.pieces):
                    time.sleep(BETWEEN_PIECES_S if index else 0)
                    connection.sendall(piece)
                if response.closes:
                    return


@contextmanager
def raw_server(respond: Respond) -> Iterator[str]:
    """Send what ``respond`` returns for the head of each request; yields the URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    thread = threading.Thread(target=serve, args=(connection, respond), daemon=True)
                    thread.start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        # Wakes the thread that waits for a connection.
        listener.shutdown(socket.SHUT_RDWR)
