"""Facts that affect results, read once for run.json: the machine, which processors share a core, a
cache and a memory node, and the git revision of the measured code. ``doctor`` evaluates them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from wsgiload._loadgen import build_info
from wsgiload.documents.load_report import Build
from wsgiload.documents.run_info import HostFacts, ProcessorFacts
from wsgiload.errors import UsageError
from wsgiload.host.cpus import Processor, available_cpus, parse_cpu_list


def host_facts() -> HostFacts:
    """The facts of the machine; None: unknown."""
    version, profile, target_cpu, git_sha = build_info()
    return HostFacts(
        kernel=platform.release(),
        os=_os_name(),
        machine=platform.machine(),
        cpu_model=_field("/proc/cpuinfo", "model name"),
        cpus=os.cpu_count(),
        available_cpus=available_cpus(),
        topology=topology_facts(read_topology()),
        memory_bytes=_memory_bytes(),
        python=platform.python_version(),
        python_build=sys.version,
        wsgiload=version,
        generator=Build(profile=profile, target_cpu=target_cpu, git_sha=git_sha),
        cpu_governor=_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        smt=_text("/sys/devices/system/cpu/smt/active"),
        clocksource=_text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        tcp_congestion_control=_text("/proc/sys/net/ipv4/tcp_congestion_control"),
        somaxconn=_text("/proc/sys/net/core/somaxconn"),
        port_range=_text("/proc/sys/net/ipv4/ip_local_port_range"),
        load_average=_text("/proc/loadavg"),
        timens_offsets=_text("/proc/self/timens_offsets"),
    )


def _text(path: str) -> str | None:
    try:
        return " ".join(Path(path).read_text().split())
    except OSError:
        return None


def _field(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    values = [
        line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name
    ]
    return values[0] if values else None


def _memory_bytes() -> int | None:
    kibibytes = (_field("/proc/meminfo", "MemTotal") or "").split()
    return int(kibibytes[0]) * 1024 if kibibytes else None


def _os_name() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


TIMEOUT_S = 10.0
CHANGED = "+changes"


def revision_of(folder: Path) -> str | None:
    """The checked-out commit, marked if tracked files were changed; None if there is none."""
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return commit if changes == "" else f"{commit}{CHANGED}"


def _git(folder: Path, *words: str) -> str | None:
    # Variables such as GIT_DIR would select another repository; a status may refresh the index.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            env={**env, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


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
        index for index in folder.glob("cache/index*") if _sysfs_text(index / "level") == LAST_LEVEL
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
        return parse_cpu_list(_sysfs_text(path))
    except UsageError:
        return ()


def _sysfs_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
