"""A server that sends the output of a script, whatever its client does, over TCP and over TLS."""

from __future__ import annotations

import asyncio
import functools
import itertools
import ssl
import threading
from collections import deque
from pathlib import Path

from .http2_frames import CLOSE, HEADER_BYTES, HEADERS, PAUSE, Script, Steps, addressed

# Self-signed, with its key. Used only by this server; clients do not verify it.
CERTIFICATE = Path(__file__).with_name("certificate.pem")
# Sent by a client before its first frame: RFC 9113, section 3.4.
PREFACE_BYTES = 24
PAUSE_S = 0.005


class ScriptedServer:
    """Runs in a separate thread until the process ends."""

    def __init__(self) -> None:
        self.script = Script([], [])
        self._replies = itertools.count()
        self._loop = asyncio.new_event_loop()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        context.set_alpn_protocols(["h2"])
        self.port, self.tls_port = self._listen(None), self._listen(context)
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def _listen(self, context: ssl.SSLContext | None) -> int:
        creation = self._loop.create_server(
            lambda: _Connection(self, self._loop), "127.0.0.1", 0, ssl=context
        )
        server = self._loop.run_until_complete(creation)
        port = server.sockets[0].getsockname()[1]
        assert isinstance(port, int)
        return port

    def play(self, script: Script) -> None:
        """Send the output of this script from now on."""
        self.script, self._replies = script, itertools.count()

    def next_reply(self) -> Steps:
        """The next reply of the script, counted over all connections."""
        replies = self.script.replies
        return replies[next(self._replies) % len(replies)] if replies else []


@functools.cache
def scripted_server() -> ScriptedServer:
    """The only server of this process. Clients that have ended leave no state in it."""
    return ScriptedServer()


class _Connection(asyncio.Protocol):
    """Sends the greeting, and one reply per request."""

    def __init__(self, server: ScriptedServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server, self._loop = server, loop
        self._received = bytearray()
        self._skipped_bytes = PREFACE_BYTES
        self._steps: deque[bytes] = deque()
        self._is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send(self._server.script.greeting)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= self._skipped_bytes + HEADER_BYTES:
            del self._received[: self._skipped_bytes]
            length, kind = int.from_bytes(self._received[:3]), self._received[3]
            stream = int.from_bytes(self._received[5:HEADER_BYTES])
            self._skipped_bytes = HEADER_BYTES + length
            if kind == HEADERS:
                reply = self._server.next_reply()
                self._send([addressed(step, stream) for step in reply])

    def _send(self, steps: Steps) -> None:
        self._steps += steps
        if not self._is_paused:
            self._resume()

    def _resume(self) -> None:
        self._is_paused = False
        while self._steps and not self._transport.is_closing():
            step = self._steps.popleft()
            if step == CLOSE:
                self._transport.close()
            elif step == PAUSE:
                self._is_paused = True
                self._loop.call_later(PAUSE_S, self._resume)
                return
            else:
                self._transport.write(step)
