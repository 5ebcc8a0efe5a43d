"""How a load reaches its server: Unix socket, other or local addresses, TLS, version of HTTP."""

from __future__ import annotations

from dataclasses import dataclass

from wsgiload.documents.load_plan import HttpVersion, TlsOptions


@dataclass(frozen=True, slots=True)
class Transport:
    """The generator checks what it says; the defaults are plain HTTP/1.1 from wherever the kernel
    chooses."""

    unix_socket: str | None = None
    connect_to: str | None = None
    source_addresses: tuple[str, ...] = ()
    http2: bool = False
    streams: int = 1
    http1_0: bool = False
    insecure: bool = False
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None

    @property
    def http_version(self) -> HttpVersion:
        """The version of HTTP, as a plan has it."""
        if self.http2:
            return "http2"
        return "http1_0" if self.http1_0 else "http1"

    @property
    def tls(self) -> TlsOptions:
        """Whom to trust and how to be trusted, as a plan has it."""
        return TlsOptions(
            insecure=self.insecure,
            ca_file=self.ca_file,
            client_cert=self.client_cert,
            client_key=self.client_key,
        )
