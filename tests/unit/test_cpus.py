"""CPU assignment without topology, and the kernel's CPU list format."""

from __future__ import annotations

import os

import pytest

from wsgiload.errors import UsageError
from wsgiload.host.cpus import CpuPlan, assign_cpus, available_cpus, format_cpu_list, parse_cpu_list


@pytest.mark.parametrize(
    ("text", "cores"),
    [("", ()), ("0", (0,)), ("1,3-5", (1, 3, 4, 5)), (" 2 , 0-1\n", (0, 1, 2)), ("3,3-3", (3,))],
)
def test_a_cpu_list_is_parsed(text: str, cores: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cores


@pytest.mark.parametrize(
    "text", ["a", "1-", "-1", "5-3", "1;2", "²", "1-2-3", "0-99999999", "9" * 5000]
)
def test_other_formats_are_rejected(text: str) -> None:
    with pytest.raises(UsageError):
        parse_cpu_list(text)


@pytest.mark.parametrize("cores", [(), (0,), (1, 3, 4, 5), (0, 1, 2, 64)])
def test_a_formatted_cpu_list_is_parsed_unchanged(cores: tuple[int, ...]) -> None:
    assert parse_cpu_list(format_cpu_list(cores)) == cores


@pytest.mark.parametrize(
    ("count", "cpus", "server", "client", "orchestrator", "shared"),
    [
        (1, None, (0,), (0,), (0,), True),
        (1, 0.5, (0,), (0,), (0,), True),
        (2, None, (1,), (0,), (0,), False),
        (2, 0.5, (1,), (0,), (0,), False),
        (2, 1.0, (1,), (0,), (0,), False),
        (2, 2.0, (0, 1), (0, 1), (0, 1), True),
        (3, 1.5, (1, 2), (0,), (0,), False),
        (4, 1.0, (3,), (1, 2), (0,), False),
        (4, 1.5, (2, 3), (1,), (0,), False),
        (4, None, (2, 3), (1,), (0,), False),
        (4, 3.0, (1, 2, 3), (0,), (0,), False),
        (4, 4.0, (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3), True),
        (8, 2.0, (6, 7), (1, 2, 3, 4, 5), (0,), False),
    ],
)
def test_cores_are_assigned_to_server_client_and_orchestrator(
    count: int,
    cpus: float | None,
    server: tuple[int, ...],
    client: tuple[int, ...],
    orchestrator: tuple[int, ...],
    shared: bool,
) -> None:
    assert assign_cpus(range(count), cpus, None, None) == CpuPlan(
        server, client, shared, orchestrator
    )


def test_only_available_cores_are_assigned() -> None:
    assert assign_cpus([3, 5], 1.0, None, None) == CpuPlan((5,), (3,), False, (3,))


def test_explicit_cores_are_used_unchanged() -> None:
    assert assign_cpus(range(4), 1.0, (0,), None) == CpuPlan((0,), (1, 2, 3), False, (1, 2, 3))
    assert assign_cpus(range(4), 1.0, None, (3,)) == CpuPlan((2,), (3,), False, (0,))
    assert assign_cpus(range(2), 1.0, None, (1,)) == CpuPlan((0,), (1,), False, (1,))
    assert assign_cpus(range(2), None, None, (0, 1)) == CpuPlan((1,), (0, 1), True, (0, 1))
    assert assign_cpus(range(2), 1.0, (1,), (1,)) == CpuPlan((1,), (1,), True, (1,))


def test_unavailable_cores_are_rejected() -> None:
    with pytest.raises(UsageError, match="--server-cpus names 7, but only 0-1 are available"):
        assign_cpus(range(2), None, (7,), None)
    with pytest.raises(UsageError, match="--client-cpus names 2-3"):
        assign_cpus(range(2), None, None, (2, 3))
    with pytest.raises(UsageError, match="no core"):
        assign_cpus((), None, None, None)


def test_available_cores_are_those_of_this_process() -> None:
    assert set(available_cpus()) == os.sched_getaffinity(0)
