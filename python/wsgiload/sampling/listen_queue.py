"""The accept queue of a listening port, and the processes that own its sockets.

Queries the kernel (sock_diag) for listening sockets only, which takes microseconds; listing all
sockets takes milliseconds. Read-only and never raises; None: unknown.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST_DUMP = 0x301
NLM_F_REQUEST_ACK = 0x005
NLMSG_ERROR, NLMSG_DONE = 2, 3
INET_DIAG_SKMEMINFO = 7
SK_MEMINFO_DROPS = 8
TCP_LISTEN = 10

HEADER = struct.Struct("=IHHII")  # nlmsghdr
REQUEST_START = struct.Struct(
    "=BBBBI"
)  # inet_diag_req_v2: family, protocol, extensions, padding, states
SOCKET_ID = struct.Struct("!HH44x")  # inet_diag_sockid: the ports are in network order
IDENTITY_BYTES, NO_COOKIE = (
    40,
    b"\xff" * 8,
)  # inet_diag_sockid without its cookie, and the cookie that matches any
MESSAGE_QUEUES = struct.Struct("=II")  # inet_diag_msg: idiag_rqueue, idiag_wqueue
SOURCE_PORT_OFFSET, QUEUES_OFFSET, MESSAGE_BYTES = 4, 56, 72
ATTRIBUTE = struct.Struct("=HH")
TIMEOUT_S = 0.2
BUFFER_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class ListenQueue:
    """The sum over all sockets that listen on a port (several with SO_REUSEPORT)."""

    queue: int  # connections that wait to be accepted
    backlog: int  # maximum number of waiting connections
    drops: int | None  # connection attempts dropped since the socket was created
    sockets: int = 1


def read_listen_queue(port: int) -> ListenQueue | None:
    """The accept queue of a local TCP port; None if nothing listens, or if unknown."""
    try:
        with _open() as netlink:
            replies = [data for query in listen_queries(port) for data in _query(netlink, query)]
    except OSError:
        return None
    return parse_replies(replies, port)


def polling_queries(port: int) -> list[bytes]:
    """The queries for repeated reads of the sockets that listen on the port.

    A query for one exact socket is a single lookup in the kernel; with several sockets, the kernel
    must search its tables.
    """
    try:
        with _open() as netlink:
            replies = {query: list(_query(netlink, query)) for query in listen_queries(port)}
    except OSError:
        return listen_queries(port)
    payloads = [
        payload
        for reply in replies.values()
        for data in reply
        for payload in _listeners(data, port)
    ]
    if len(payloads) != 1:
        return [
            query for query, reply in replies.items() if parse_replies(reply, port)
        ] or listen_queries(port)
    (payload,) = payloads
    return [_exact_request(payload)]


def _open() -> socket.socket:
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG)
    netlink.settimeout(TIMEOUT_S)
    return netlink


def listen_queries(port: int) -> list[bytes]:
    """The queries for all sockets that listen on a port, over IPv4 and IPv6."""
    return [_request(family, port) for family in (socket.AF_INET, socket.AF_INET6)]


def parse_replies(replies: Iterable[bytes], port: int) -> ListenQueue | None:
    """The accept queue from the kernel's replies; None if nothing listens."""
    try:
        return _total([_entry(payload) for data in replies for payload in _listeners(data, port)])
    except struct.error:
        return None


def _query(netlink: socket.socket, query: bytes) -> Iterator[bytes]:
    """The datagrams of the reply, up to the end marker."""
    netlink.send(query)
    while True:
        data = netlink.recv(BUFFER_BYTES)
        yield data
        if any(kind in (NLMSG_DONE, NLMSG_ERROR) for kind, _ in _messages(data)):
            return


def _total(entries: list[ListenQueue]) -> ListenQueue | None:
    if not entries:
        return None
    drops = [entry.drops for entry in entries if entry.drops is not None]
    return ListenQueue(
        sum(entry.queue for entry in entries),
        sum(entry.backlog for entry in entries),
        sum(drops) if len(drops) == len(entries) else None,
        len(entries),
    )


def _request(family: int, port: int) -> bytes:
    extensions = 1 << (INET_DIAG_SKMEMINFO - 1)
    body = REQUEST_START.pack(family, socket.IPPROTO_TCP, extensions, 0, 1 << TCP_LISTEN)
    body += SOCKET_ID.pack(port, 0)
    return (
        HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, 0, 0) + body
    )


def _exact_request(payload: bytes) -> bytes:
    """A query for exactly the socket in a reply; an acknowledgement marks the end."""
    extensions = 1 << (INET_DIAG_SKMEMINFO - 1)
    identity = payload[SOURCE_PORT_OFFSET : SOURCE_PORT_OFFSET + IDENTITY_BYTES] + NO_COOKIE
    body = (
        REQUEST_START.pack(payload[0], socket.IPPROTO_TCP, extensions, 0, 1 << TCP_LISTEN)
        + identity
    )
    return HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_ACK, 0, 0) + body


def _listeners(data: bytes, port: int) -> Iterator[bytes]:
    for kind, payload in _messages(data):
        if kind in (NLMSG_DONE, NLMSG_ERROR):
            return
        if SOCKET_ID.unpack_from(payload, SOURCE_PORT_OFFSET)[0] == port:
            yield payload


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + HEADER.size <= len(data):
        length, kind, *_ = HEADER.unpack_from(data, offset)
        if length < HEADER.size:
            return
        yield kind, data[offset + HEADER.size : offset + length]
        offset += (length + 3) & ~3


def _entry(payload: bytes) -> ListenQueue:
    # for a listening socket, rqueue is the accept queue and wqueue its limit
    queue, backlog = MESSAGE_QUEUES.unpack_from(payload, QUEUES_OFFSET)
    offset, drops = MESSAGE_BYTES, None
    while offset + ATTRIBUTE.size <= len(payload):
        length, kind = ATTRIBUTE.unpack_from(payload, offset)
        if length < ATTRIBUTE.size:
            break
        if kind == INET_DIAG_SKMEMINFO and length >= ATTRIBUTE.size + 4 * (SK_MEMINFO_DROPS + 1):
            (drops,) = struct.unpack_from(
                "=I", payload, offset + ATTRIBUTE.size + 4 * SK_MEMINFO_DROPS
            )
        offset += (length + 3) & ~3
    return ListenQueue(queue, backlog, drops)


def listener_pids(port: int, root: Path = Path("/")) -> set[int] | None:
    """The processes with a socket that listens on this TCP port.

    Empty if nothing listens; None if the owners are not visible.
    """
    try:
        inodes = _listening_inodes(port, root / "proc")
    except (OSError, ValueError, IndexError):
        return None
    if not inodes:
        return set()
    links = {f"socket:[{inode}]" for inode in inodes}
    owners = {int(process.name) for process in _processes(root / "proc") if _holds(process, links)}
    return owners or None


def listening_ports(pids: Iterable[int], root: Path = Path("/")) -> set[int]:
    """The TCP ports on which these processes listen, as far as visible."""
    ports: set[int] = set()
    with suppress(OSError, ValueError, IndexError):
        by_link = {f"socket:[{inode}]": port for port, inode in _listening_sockets(root / "proc")}
        for pid in pids:
            ports.update(by_link[link] for link in _links(root / "proc" / str(pid), by_link))
    return ports


def _listening_inodes(port: int, proc: Path) -> set[str]:
    return {inode for listening, inode in _listening_sockets(proc) if listening == port}


def _listening_sockets(proc: Path) -> Iterator[tuple[int, str]]:
    """The port and the inode of each listening socket."""
    for name in ("tcp", "tcp6"):
        table = proc / "net" / name
        if name == "tcp6" and not table.exists():
            continue  # a kernel without IPv6
        for line in table.read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[3], 16) == TCP_LISTEN:
                yield int(fields[1].rpartition(":")[2], 16), fields[9]


def _processes(proc: Path) -> Iterator[Path]:
    yield from (entry for entry in proc.iterdir() if entry.name.isdigit())


def _holds(process: Path, links: set[str]) -> bool:
    return any(_links(process, links))


def _links(process: Path, links: Container[str]) -> Iterator[str]:
    """Which of these links the process has among its descriptors."""
    with suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                if (link := str(descriptor.readlink())) in links:
                    yield link


def rejected_connections(socket_drops: int | None, kernel_drops: int | None) -> int | None:
    """The number of connections that a listening socket rejected, from its drop counter and the
    kernel's ListenDrops: the smaller one, because both are upper bounds.

    The socket's counter also includes segments of successful connections: each bare acknowledgement
    under TCP_DEFER_ACCEPT, which uWSGI sets. ListenDrops excludes such segments but includes the
    connections of all sockets.
    """
    if socket_drops is None or kernel_drops is None:
        return socket_drops
    return min(socket_drops, kernel_drops)
