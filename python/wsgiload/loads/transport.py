"""How a load reaches its server: Unix socket, addresses, TLS, HTTP version."""

from __future__ import annotations

from dataclasses import dataclass

from wsgiload.documents.load_plan import HttpVersion, TlsOptions


@dataclass(frozen=True, slots=True)
class Transport:
    """Connection settings, which the generator checks. Default: plain HTTP/1.1 from an address that
    the kernel chooses."""

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
        """The HTTP version in the form of a plan."""
        if self.http2:
            return "http2"
        return "http1_0" if self.http1_0 else "http1"

    @property
    def tls(self) -> TlsOptions:
        """The TLS settings in the form of a plan."""
        return TlsOptions(
            insecure=self.insecure,
            ca_file=self.ca_file,
            client_cert=self.client_cert,
            client_key=self.client_key,
        )
