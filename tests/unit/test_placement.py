"""CPU assignment on simulated machines, and reading the topology."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from wsgiload.host.cpus import CpuPlan, Processor, assign_cpus
from wsgiload.host.facts import read_topology


def machine(
    cores: int, *, threads: int = 1, per_cache: int = 0, nodes: int = 1
) -> tuple[Processor, ...]:
    """A machine whose CPUs are numbered as on x86 Linux: the first threads of all cores, then the
    second ones. Each cache belongs to one node."""
    first_of_node = [
        next(core for core in range(cores) if core * nodes // cores == node)
        for node in range(nodes)
    ]

    def processor(thread: int, core: int) -> Processor:
        node = core * nodes // cores
        first = first_of_node[node]
        cache = first + (core - first) // per_cache * per_cache if per_cache else first
        return Processor(core + thread * cores, core=core, cache=cache, node=node)

    return tuple(processor(thread, core) for thread, core in product(range(threads), range(cores)))


def plan_of(topology: tuple[Processor, ...], cpus: float | None) -> CpuPlan:
    return assign_cpus([one.number for one in topology], cpus, None, None, topology)


def machines() -> Iterator[tuple[Processor, ...]]:
    for cores, threads, per_cache, nodes in product(range(1, 129), (1, 2), (0, 4, 8), (1, 2)):
        if nodes <= cores:
            yield machine(cores, threads=threads, per_cache=per_cache, nodes=nodes)


@pytest.mark.parametrize("cpus", [0.5, 1, 2, 3, 4, 8, 60, None])
def test_assignments_are_valid_on_all_machines(cpus: float | None) -> None:
    for topology in machines():
        cores = len({one.core for one in topology})
        if cpus is not None and cpus > len(topology):
            continue
        plan = plan_of(topology, cpus)
        expected = max(1, cores // 2) if cpus is None else max(1, round(cpus))
        core_of = {one.number: one.core for one in topology}
        server_cores, client_cores = (
            {core_of[number] for number in side} for side in (plan.server_cpus, plan.client_cpus)
        )
        assert len(plan.server_cpus) == len(set(plan.server_cpus)) == expected
        assert plan.client_cpus and plan.orchestrator_cpus
        # No core is on both sides, unless the plan says so.
        assert plan.shared_cores is bool(server_cores & client_cores)
        assert plan.shared_cores is (expected > len(topology) // cores * (cores - 1))
        # The server gets one thread per core while there are enough cores.
        assert expected >= cores or len(server_cores) == expected
        if cores >= 4 and expected <= cores - 2:
            assert 0 not in server_cores | client_cores, (
                "the first core is reserved for the operating system"
            )
            assert {core_of[number] for number in plan.orchestrator_cpus} == {0}


@pytest.mark.parametrize("resource", ["cache", "node"])
def test_both_sides_share_a_cache_or_node_if_it_is_large_enough(resource: str) -> None:
    for topology in machines():
        cores = len({one.core for one in topology})
        resource_of = {one.number: getattr(one, resource) for one in topology}
        for count in (1, 2, 3):
            spare = [one for one in topology if one.number < cores and (one.core > 0 or cores < 4)]
            sizes = [
                sum(getattr(one, resource) == resource_number for one in spare)
                for resource_number in set(resource_of.values())
            ]
            if max(sizes) > count:
                plan = plan_of(topology, count)
                assert (
                    len({resource_of[number] for number in (*plan.server_cpus, *plan.client_cpus)})
                    == 1
                )


def test_two_cores_with_two_threads_are_divided_by_core() -> None:
    topology = machine(2, threads=2)
    assert plan_of(topology, 1) == CpuPlan((1,), (0, 2), False, (0, 2))
    assert plan_of(topology, 2) == CpuPlan((1, 3), (0, 2), False, (0, 2))
    assert plan_of(topology, 3).shared_cores


def test_both_threads_of_a_core_are_reported_as_shared() -> None:
    assert plan_of(machine(1, threads=2), 1) == CpuPlan((1,), (0,), True, (0,))
    named = assign_cpus(range(4), 1, (1,), (3,), machine(2, threads=2))
    assert named.shared_cores, "CPUs 1 and 3 are threads of one core"


def test_server_and_client_use_the_same_of_two_sockets() -> None:
    topology = machine(32, threads=2, per_cache=16, nodes=2)
    plan = plan_of(topology, 4)
    assert plan.server_cpus == (28, 29, 30, 31)
    assert plan.client_cpus == tuple(range(16, 28))
    assert plan.orchestrator_cpus == (0, 32)


def test_only_available_processors_are_assigned() -> None:
    topology = machine(8, threads=2)
    plan = assign_cpus([2, 3, 10], 1, None, None, topology)
    assert plan == CpuPlan((3,), (2, 10), False, (2, 10))


def test_the_topology_is_read_from_sysfs(tmp_path: Path) -> None:
    for number in range(4):
        directory = tmp_path / f"sys/devices/system/cpu/cpu{number}"
        for index, level in enumerate((1, 1, 2, 3)):
            cache = directory / f"cache/index{index}"
            cache.mkdir(parents=True)
            (cache / "level").write_text(f"{level}\n")
            (cache / "shared_cpu_list").write_text("0-1\n" if number < 2 else "2-3\n")
        (directory / "topology").mkdir()
        (directory / "topology/thread_siblings_list").write_text(f"{number % 2},{number % 2 + 2}\n")
        node = tmp_path / f"sys/devices/system/node/node{number // 2}"
        node.mkdir(parents=True, exist_ok=True)
        (node / "cpulist").write_text("0-1\n" if number < 2 else "2-3\n")

    assert read_topology(tmp_path, range(4)) == (
        Processor(0, core=0, cache=0, node=0),
        Processor(1, core=1, cache=0, node=0),
        Processor(2, core=0, cache=2, node=1),
        Processor(3, core=1, cache=2, node=1),
    )


def test_an_unknown_topology_has_separate_cores_and_one_cache(tmp_path: Path) -> None:
    assert read_topology(tmp_path, (0, 5)) == (Processor(0, 0, 0, 0), Processor(5, 5, 0, 0))


def test_the_topology_of_this_machine_can_be_read() -> None:
    assert {one.number for one in read_topology()} == os.sched_getaffinity(0)
