"""Which processors share a core, a cache and a memory node, as the kernel reports it. Reads only,
and decides nothing."""

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
    """Those processors that we may run on, or the ``numbers`` given. What the kernel does not say
    counts as not shared for cores, and as shared by all for caches and nodes."""
    nodes = _nodes(root)
    return tuple(
        _processor(root, number, nodes)
        for number in (available_cpus() if numbers is None else numbers)
    )


def topology_facts(topology: Iterable[Processor]) -> tuple[ProcessorFacts, ...]:
    """The same for run.json."""
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
    """Processor to its memory node."""
    nodes: dict[int, int] = {}
    for folder in (root / NODES).glob("node[0-9]*"):
        nodes |= dict.fromkeys(_list(folder / "cpulist"), int(folder.name.removeprefix("node")))
    return nodes


def _first(*paths: Path) -> int | None:
    """The lowest processor of the first list that there is: it names the group."""
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
