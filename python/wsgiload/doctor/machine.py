"""Facts from the kernel's files about power, clocks, sockets and busy processes, and their effect
on measurements.

Each check reads below the given root, changes nothing, and never calls an unknown fact green.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from wsgiload.documents.run_info import DoctorFinding
from wsgiload.foreign_text import visible
from wsgiload.limits.files import read_int, read_text, under

Level = Literal["green", "amber", "red"]


def finding(
    check: str, level: Level, value: float | str | None, message: str, fix: str | None = None
) -> DoctorFinding:
    """One fact about this machine and its effect on measurements."""
    return DoctorFinding(check=check, level=level, value=value, message=message, fix=fix)


MIN_SYN_BACKLOG = 1_024
# Of about 28,000 ports; each is occupied for a minute.
TIME_WAIT_AMBER, TIME_WAIT_RED = 5_000, 20_000
# Above this share of the table, the kernel may soon drop new connections.
MAX_TRACKED_SHARE = 0.8
# Each connection stays in the table for about two minutes after its end.
MIN_TRACKED = 131_072
FULL_RANDOMIZATION = 2


def check_turbo(root: Path) -> DoctorFinding:
    """A core that runs faster while it is cool makes the first minute the fastest."""
    no_turbo = read_int(under(root, "/sys/devices/system/cpu/intel_pstate/no_turbo"))
    boost = read_int(under(root, "/sys/devices/system/cpu/cpufreq/boost"))
    if no_turbo is None and boost is None:
        message = "turbo boost state not visible (normal in virtual machines); CPU speed may vary"
        return finding("turbo", "amber", None, message)
    if no_turbo == 0:
        fix = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
        return finding(
            "turbo", "amber", "on", "turbo boost is on: CPU speed varies with temperature", fix
        )
    if no_turbo is None and boost:
        fix = "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
        return finding(
            "turbo", "amber", "on", "turbo boost is on: CPU speed varies with temperature", fix
        )
    return finding("turbo", "green", "off", "turbo boost is off")


def check_battery(root: Path) -> DoctorFinding:
    """On battery, firmware slows a machine down at unpredictable times."""
    folder = under(root, "/sys/class/power_supply")
    if not folder.is_dir():
        return finding("battery", "amber", None, "power supply unknown")
    mains = [
        read_int(path / "online")
        for path in folder.iterdir()
        if read_text(path / "type") == "Mains"
    ]
    batteries = [
        read_text(path / "status")
        for path in folder.iterdir()
        if read_text(path / "type") == "Battery"
    ]
    if "Discharging" in batteries or (batteries and mains and not any(mains)):
        return finding("battery", "red", "discharging", "the machine runs on battery", "plug it in")
    return finding(
        "battery",
        "green",
        "mains" if batteries else "none",
        "the machine does not run on battery",
    )


def check_time_namespace(root: Path) -> DoctorFinding:
    """Another time namespace has another monotonic clock, so external timestamps would not
    match."""
    text = read_text(under(root, "/proc/self/timens_offsets"))
    if text is None:
        return finding("time namespace", "amber", None, "clock offsets unknown")
    shifted = [
        line.split()[0]
        for line in text.splitlines()
        if any(word != "0" for word in line.split()[1:])
    ]
    if shifted:
        message = f"this time namespace shifts the clocks {', '.join(shifted)}"
        fix = "run the server and wsgiload in the same container, or both outside"
        return finding("time namespace", "amber", ", ".join(shifted), message, fix)
    return finding("time namespace", "green", "none", "clocks are not shifted")


def check_address_randomization(root: Path) -> DoctorFinding:
    """Without address randomization, all runs have the same memory layout, whose effect would be
    attributed to the server."""
    mode = read_int(under(root, "/proc/sys/kernel/randomize_va_space"))
    if mode is None:
        return finding(
            "address layout", "amber", None, "address space randomization: setting unknown"
        )
    if mode != FULL_RANDOMIZATION:
        message = "address space randomization is off: runs vary less than in production"
        return finding(
            "address layout", "amber", mode, message, "sudo sysctl kernel.randomize_va_space=2"
        )
    return finding("address layout", "green", mode, "address space randomization is on")


def check_syn_backlog(root: Path) -> DoctorFinding:
    """Half-open connections wait here before the listen backlog."""
    limit = read_int(under(root, "/proc/sys/net/ipv4/tcp_max_syn_backlog"))
    if limit is None:
        return finding(
            "tcp_max_syn_backlog",
            "amber",
            None,
            "maximum number of half-open connections unknown",
        )
    if limit < MIN_SYN_BACKLOG:
        message = f"bursts of more than {limit:,} half-open connections are dropped"
        return finding(
            "tcp_max_syn_backlog",
            "amber",
            limit,
            message,
            "sudo sysctl net.ipv4.tcp_max_syn_backlog=4096",
        )
    return finding("tcp_max_syn_backlog", "green", limit, f"up to {limit:,} half-open connections")


def check_time_wait(root: Path) -> DoctorFinding:
    """Each closed connection occupies its port for a minute."""
    words = (read_text(under(root, "/proc/net/sockstat")) or "").split()
    if "tw" not in words:
        return finding("TIME_WAIT", "amber", None, "number of connections in TIME_WAIT unknown")
    count = int(words[words.index("tw") + 1])
    if count < TIME_WAIT_AMBER:
        return finding("TIME_WAIT", "green", count, f"{count:,} connections in TIME_WAIT")
    message = f"{count:,} connections in TIME_WAIT occupy local ports"
    fix = "wait a minute, or use keep-alive; `ss -tan state time-wait` lists them"
    return finding("TIME_WAIT", "red" if count >= TIME_WAIT_RED else "amber", count, message, fix)


def check_tracking(root: Path) -> DoctorFinding:
    """If the kernel tracks connections, a full table drops new ones."""
    limit = read_int(under(root, "/proc/sys/net/netfilter/nf_conntrack_max"))
    count = read_int(under(root, "/proc/sys/net/netfilter/nf_conntrack_count"))
    if limit is None or count is None:
        modules = under(root, "/sys/module")
        if modules.is_dir() and not (modules / "nf_conntrack").exists():
            return finding("connection tracking", "green", "none", "connection tracking is off")
        return finding(
            "connection tracking",
            "amber",
            None,
            "connection tracking: state unknown",
        )
    fix = "sudo sysctl net.netfilter.nf_conntrack_max=1048576"
    if count > MAX_TRACKED_SHARE * limit:
        message = f"{count:,} of {limit:,} conntrack entries in use: new connections may be dropped"
        return finding("connection tracking", "red", count, message, fix)
    if limit < MIN_TRACKED:
        message = f"only {limit:,} conntrack entries: a connection per request fills them quickly"
        return finding("connection tracking", "amber", limit, message, fix)
    return finding(
        "connection tracking", "green", count, f"{count:,} of {limit:,} conntrack entries in use"
    )


def check_pressure(root: Path) -> DoctorFinding:
    """Without PSI, time that a server waited for a core is not visible."""
    if read_text(under(root, "/proc/pressure/cpu")) is None:
        message = "no pressure stall information (PSI): CPU and memory pressure cannot be measured"
        return finding("pressure", "amber", None, message, "boot with psi=1")
    return finding("pressure", "green", "PSI", "CPU and memory pressure can be measured")


NAMED = 3
MIN_CORES = 0.05
# Positions after the process's name, which may contain spaces and parentheses.
_USER_TICKS, _SYSTEM_TICKS = 11, 12

Ticks = Mapping[int, tuple[str, int]]


def process_ticks(root: Path) -> Ticks:
    """The name and CPU time of every other process, by pid."""
    ticks: dict[int, tuple[str, int]] = {}
    for path in under(root, "/proc").glob("[0-9]*/stat"):
        head, _, tail = (read_text(path) or "").rpartition(")")
        fields, pid = tail.split(), int(path.parent.name)
        if len(fields) > _SYSTEM_TICKS and pid != os.getpid():
            spent = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
            ticks[pid] = head.partition("(")[2], spent
    return ticks


def busiest(before: Ticks, after: Ticks, ticks_per_core: float) -> str:
    """The busiest processes with their pids and the cores that each used, such as
    ``rustc (pid 17, 0.98), node (pid 9, 0.10)``; empty if none used many."""
    used = [
        ((now - before.get(pid, ("", 0))[1]) / ticks_per_core, pid, name)
        for pid, (name, now) in after.items()
    ]
    top = sorted(used, reverse=True)[:NAMED]
    words = [f"{name} (pid {pid}, {cores:.2f})" for cores, pid, name in top if cores >= MIN_CORES]
    return visible(", ".join(words))
