"""What the kernel reports about listening sockets, with real sockets and recorded tables."""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from wsgiload._loadgen import FileSampler
from wsgiload.sampling.listen_queue import (
    listen_queries,
    listener_pids,
    parse_replies,
    polling_queries,
    read_listen_queue,
    rejected_connections,
)

TCP_HEADER = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
    "timeout inode"
)


def tcp_line(port: int, state: str, inode: int, address: str = "0100007F") -> str:
    return (
        f"   0: {address}:{port:04X} 00000000:0000 {state} 0:0 00:0 0 0 0 {inode} 1 0 100 0 0 10 0"
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_connections_waiting_to_be_accepted_are_counted() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=8) as server, ExitStack() as clients:
        port = server.getsockname()[1]
        queue = read_listen_queue(port)
        if queue is None:
            pytest.skip("this kernel does not support sock_diag")
        assert (queue.queue, queue.backlog, queue.drops) == (0, 8, 0)
        for _ in range(3):
            clients.enter_context(socket.create_connection(("127.0.0.1", port)))
        queue = read_listen_queue(port)
        assert queue is not None and queue.queue == 3


def test_sockets_that_share_a_port_are_summed() -> None:
    with ExitStack() as servers:
        first = servers.enter_context(
            socket.create_server(("127.0.0.1", 0), backlog=4, reuse_port=True)
        )
        port = first.getsockname()[1]
        servers.enter_context(socket.create_server(("127.0.0.1", port), backlog=5, reuse_port=True))
        queue = read_listen_queue(port)
        assert queue is None or queue.backlog == 9


def test_a_port_without_a_listener_has_no_queue_and_no_owner() -> None:
    port = free_port()
    assert read_listen_queue(port) is None
    assert listener_pids(port) == set()


def test_the_owner_of_a_listening_socket_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert listener_pids(server.getsockname()[1]) == {os.getpid()}


def test_owners_are_found_in_recorded_tables(tmp_path: Path) -> None:
    net = tmp_path / "proc/net"
    net.mkdir(parents=True)
    established, listening = tcp_line(8000, "01", 11), tcp_line(8000, "0A", 12)
    (net / "tcp").write_text(
        "\n".join([TCP_HEADER, established, listening, tcp_line(8001, "0A", 13)]) + "\n"
    )
    (net / "tcp6").write_text(f"{TCP_HEADER}\n{tcp_line(8000, '0A', 14, '0' * 32)}\n")
    for pid, inode in ((5, 12), (6, 14), (7, 11), (8, 12)):
        fd_directory = tmp_path / f"proc/{pid}/fd"
        fd_directory.mkdir(parents=True)
        (fd_directory / "3").symlink_to(f"socket:[{inode}]")

    assert listener_pids(8000, tmp_path) == {5, 6, 8}
    assert listener_pids(8001, tmp_path) is None, "no process with readable descriptors listens"
    assert listener_pids(8002, tmp_path) == set()


def test_without_tables_the_owners_are_unknown(tmp_path: Path) -> None:
    assert listener_pids(8000, tmp_path) is None


@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_single_socket_is_polled_by_its_own_query(
    family: socket.AddressFamily, address: str
) -> None:
    with socket.create_server((address, 0), family=family, backlog=4) as server:
        port = server.getsockname()[1]
        queries = polling_queries(port)
        assert len(queries) == 1 and queries[0] not in listen_queries(port)
        sampler = FileSampler([], queries, 2_000_000)
        with socket.create_connection((address, port)):
            time.sleep(0.02)
            samples = sampler.stop()
        queue = parse_replies(samples[-1][4], port)

    assert queue is not None and (queue.queue, queue.backlog, queue.drops, queue.sockets) == (
        1,
        4,
        0,
        1,
    )


def test_several_sockets_of_a_port_are_polled_by_one_query() -> None:
    with (
        socket.create_server(("127.0.0.1", 0), reuse_port=True) as first,
        socket.create_server(("127.0.0.1", first.getsockname()[1]), reuse_port=True),
    ):
        port = first.getsockname()[1]
        assert polling_queries(port) == listen_queries(port)[:1]
    assert polling_queries(port) == listen_queries(port)


@pytest.mark.parametrize(
    ("socket_drops", "kernel_drops", "expected"),
    [(1_465, 0, 0), (3, 9, 3), (9, 3, 3), (3, None, 3), (None, 3, None)],
)
def test_rejected_connections_are_at_most_those_counted_by_the_kernel(
    socket_drops: int | None, kernel_drops: int | None, expected: int | None
) -> None:
    assert rejected_connections(socket_drops, kernel_drops) == expected
