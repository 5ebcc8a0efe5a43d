"""How a load gets to its server: a Unix socket, local addresses, TLS, the version of HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Transport:
    """The generator checks what it says; the defaults are plain HTTP/1.1 from wherever the kernel
    chooses."""

    unix_socket: str | None = None
    source_addresses: tuple[str, ...] = ()
    http2: bool = False
    insecure: bool = False
    ca_file: str | None = None

    def plan(self) -> dict[str, Any]:
        """Its keys of the generator's plan."""
        return {
            "unix_socket": self.unix_socket,
            "source_addresses": list(self.source_addresses),
            "http_version": "http2" if self.http2 else "http1",
            "tls": {"insecure": self.insecure, "ca_file": self.ca_file},
        }
