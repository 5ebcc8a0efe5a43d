"""The options of ``wsgiload load`` that say how to get to the server."""

from __future__ import annotations

from typing import Any

import click

from wsgiload.cli._options import together
from wsgiload.loads.transport import Transport

transport_options = together(
    click.option(
        "--unix-socket",
        type=click.Path(),
        metavar="PATH",
        help="Connect to this Unix socket instead of the URL's host.",
    ),
    click.option(
        "--source-addresses",
        metavar="LIST",
        help="Local addresses that connections come from, in turn: 127.0.0.2-127.0.0.50, 127.0.0.0/24.",
    ),
    click.option("--http2", is_flag=True, help="Use HTTP/2, one request at a time per connection."),
    click.option(
        "-k",
        "--insecure",
        is_flag=True,
        help="Do not verify TLS certificates.",
    ),
    click.option(
        "--ca-file",
        type=click.Path(dir_okay=False),
        help="PEM file of trusted certificate authorities, instead of the system's.",
    ),
)


def chosen_transport(options: dict[str, Any]) -> Transport:
    """The transport that the options describe."""
    sources = options["source_addresses"]
    return Transport(
        unix_socket=options["unix_socket"],
        source_addresses=tuple(part.strip() for part in sources.split(",")) if sources else (),
        http2=options["http2"],
        insecure=options["insecure"],
        ca_file=options["ca_file"],
    )
