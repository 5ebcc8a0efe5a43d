"""The options of ``wsgiload load`` for its connections to the server."""

from __future__ import annotations

import click

from wsgiload.cli._descriptions import described
from wsgiload.cli._flags import TransportFlags
from wsgiload.cli._help import option
from wsgiload.cli._options import together
from wsgiload.loads.public_options import TransportOptions


def _help(field: str) -> str:
    return described(TransportOptions, field)


transport_options = together(
    option(
        "Request", "--unix-socket", type=click.Path(), metavar="PATH", help=_help("unix_socket")
    ),
    option("Request", "--connect-to", metavar="HOST:PORT", help=_help("connect_to")),
    option("Request", "--source-addresses", metavar="LIST", help=_help("source_addresses")),
    option("Request", "--http2", is_flag=True, help=_help("http2")),
    option("Request", "--streams", type=int, default=1, help=_help("streams")),
    option("Request", "--http1.0", "http1_0", is_flag=True, help=_help("http1_0")),
    option("Request", "-k", "--insecure", is_flag=True, help=_help("insecure")),
    option("Request", "--ca-file", type=click.Path(dir_okay=False), help=_help("ca_file")),
    option("Request", "--client-cert", type=click.Path(dir_okay=False), help=_help("client_cert")),
    option("Request", "--client-key", type=click.Path(dir_okay=False), help=_help("client_key")),
)


def transport_options_of(flags: TransportFlags) -> TransportOptions:
    """The transport that the flags describe."""
    return TransportOptions(
        unix_socket=flags["unix_socket"],
        connect_to=flags["connect_to"],
        source_addresses=flags["source_addresses"] or (),
        http2=flags["http2"],
        streams=flags["streams"],
        http1_0=flags["http1_0"],
        insecure=flags["insecure"],
        ca_file=flags["ca_file"],
        client_cert=flags["client_cert"],
        client_key=flags["client_key"],
    )
