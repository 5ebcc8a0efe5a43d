"""Which processors share a core, a cache and a memory node, according to the kernel. Only reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from wsgiload.documents.run_info import ProcessorFacts
from wsgiload.errors import UsageError
from wsgiload.host.cpus import Processor, available_cpus, parse_cpu_list

CPUS = "sys/devices/system/cpu"
NODES = "sys/devices/system/node"
LAST_LEVEL = "3"


def read_topology(
    root: Path = Path("/"), numbers: Sequence[int] | None = None
) -> tuple[Processor, ...]:
    """The processors on which this process may run, or the given ``numbers``. If unknown, cores
    count as not shared, and caches and nodes as shared by all."""
    nodes = _nodes(root)
    return tuple(
        _processor(root, number, nodes)
        for number in (available_cpus() if numbers is None else numbers)
    )


def topology_facts(topology: Iterable[Processor]) -> tuple[ProcessorFacts, ...]:
    """The topology in the form of run.json."""
    return tuple(
        ProcessorFacts(cpu=one.number, core=one.core, cache=one.cache, node=one.node)
        for one in topology
    )


def _processor(root: Path, number: int, nodes: dict[int, int]) -> Processor:
    folder = root / CPUS / f"cpu{number}"
    siblings = _first(folder / "topology/core_cpus_list", folder / "topology/thread_siblings_list")
    caches = [
        index for index in folder.glob("cache/index*") if _text(index / "level") == LAST_LEVEL
    ]
    cache = _first(*(index / "shared_cpu_list" for index in caches))
    return Processor(
        number,
        core=number if siblings is None else siblings,
        cache=0 if cache is None else cache,
        node=nodes.get(number, 0),
    )


def _nodes(root: Path) -> dict[int, int]:
    """The memory node of each processor."""
    nodes: dict[int, int] = {}
    for folder in (root / NODES).glob("node[0-9]*"):
        nodes |= dict.fromkeys(_list(folder / "cpulist"), int(folder.name.removeprefix("node")))
    return nodes


def _first(*paths: Path) -> int | None:
    """The lowest processor in the first existing list; it names the group."""
    return next((numbers[0] for path in paths if (numbers := _list(path))), None)


def _list(path: Path) -> tuple[int, ...]:
    try:
        return parse_cpu_list(_text(path))
    except UsageError:
        return ()


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
