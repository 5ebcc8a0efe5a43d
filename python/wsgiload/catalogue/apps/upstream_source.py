"""The server for the app ``upstream``: responds to every connection after 20 ms. A program, not an
app: ``upstream_source.py PORT``.

It is many times faster than the app, so it is not the bottleneck.
"""

from __future__ import annotations

import asyncio
import sys

# Beside this file, where a program finds its modules.
from upstream import EXPECTED_BODY  # type: ignore[import-not-found]

HOST = "127.0.0.1"
DELAY_S = 0.020
BACKLOG = 4096
HEAD = (
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
    f"Content-Length: {len(EXPECTED_BODY)}\r\nConnection: close\r\n\r\n"
)
RESPONSE: bytes = HEAD.encode() + EXPECTED_BODY


class Source(asyncio.Protocol):
    """One connection, one response."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the connection; the response follows the request."""
        self.transport, self.head = transport, b""

    def data_received(self, data: bytes) -> None:
        """Respond with a delay after the end of the head."""
        is_due = b"\r\n\r\n" in self.head
        self.head += data
        if not is_due and b"\r\n\r\n" in self.head:
            asyncio.get_running_loop().call_later(DELAY_S, self.respond)

    def respond(self) -> None:
        """Send the response and close."""
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.write(RESPONSE)
            self.transport.close()


async def main(port: int) -> None:
    """Serve until the process is killed."""
    server = await asyncio.get_running_loop().create_server(Source, HOST, port, backlog=BACKLOG)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
