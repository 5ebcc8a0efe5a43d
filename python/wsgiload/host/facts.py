"""Facts of the machine that affect results, read once for run.json. ``doctor`` evaluates them."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from wsgiload._loadgen import build_info
from wsgiload.documents.load_report import Build
from wsgiload.documents.run_info import HostFacts
from wsgiload.host.cpus import available_cpus
from wsgiload.host.topology import read_topology, topology_facts


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
