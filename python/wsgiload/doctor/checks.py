"""Conditions of this machine that distort measurements, and their fixes.

Only reads, without changing or printing anything. An unknown fact is amber, never green.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wsgiload.doctor.machine import (
    Level,
    busiest,
    check_address_randomization,
    check_battery,
    check_pressure,
    check_syn_backlog,
    check_time_namespace,
    check_time_wait,
    check_tracking,
    check_turbo,
    finding,
    process_ticks,
)
from wsgiload.documents.run_info import DoctorFinding
from wsgiload.errors import LimitsError
from wsgiload.host.cpus import available_cpus, format_cpu_list
from wsgiload.limits import Limits, select_backend
from wsgiload.limits.files import read_int, read_text, under

MIN_CORES = 2
RECOMMENDED_CORES = 4
MIN_OPEN_FILES = 1024
RECOMMENDED_OPEN_FILES = 8192
MIN_BACKLOG = 1024
MIN_PORTS = 20_000
FOREIGN_CORES_AMBER, FOREIGN_CORES_RED = 0.1, 0.5
STEAL_AMBER, STEAL_RED = 0.01, 0.05
PROBE_MEMORY_BYTES = 64 * 1024 * 1024
STEADY_CLOCKS = frozenset({"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"})
WATCH_S = 0.5


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Ticks of all cores since the machine booted."""

    busy: int
    stolen: int
    total: int


def run_checks(root: Path = Path("/"), watch_s: float = WATCH_S) -> list[DoctorFinding]:
    """All checks, the most important first; monitors the processors for ``watch_s``."""
    of_process = [check_cores(available_cpus()), check_uv(), check_open_files()]
    return [
        *of_process,
        *watch_cpus(root, watch_s),
        check_load(root),
        check_cgroups(root),
        *quick_checks(root),
    ]


def quick_checks(root: Path = Path("/")) -> list[DoctorFinding]:
    """The checks that only read files and take little time; also stored with every run."""
    checks: list[Callable[[Path], DoctorFinding]] = [
        check_governor,
        check_turbo,
        check_smt,
        check_clocksource,
        check_time_namespace,
        check_battery,
        check_swap,
        check_huge_pages,
        check_address_randomization,
        check_pressure,
        check_backlog,
        check_syn_backlog,
        check_ports,
        check_time_wait,
        check_tracking,
        check_congestion_control,
    ]
    return [check(root) for check in checks]


def check_cores(cores: tuple[int, ...]) -> DoctorFinding:
    """Server and generator need a core each."""
    count, listed = len(cores), format_cpu_list(cores)
    if count < MIN_CORES:
        message = (
            "only one core: the server and the load generator share it, so every latency "
            "includes the generator's work"
        )
        return finding("cores", "red", count, message, "use a machine with at least 2 cores")
    if count < RECOMMENDED_CORES:
        message = f"cores {listed}: one for the server, the other for everything else"
        return finding(
            "cores", "amber", count, message, "4 or more cores give more stable tail latencies"
        )
    return finding("cores", "green", count, f"cores {listed}")


def check_cgroups(root: Path = Path("/")) -> DoctorFinding:
    """Whether all limits can be enforced, by trying them."""
    limits = Limits(cpus=0.5, memory_bytes=PROBE_MEMORY_BYTES, pids=64, policy="strict")
    try:
        name = select_backend(limits, root).name
    except LimitsError as error:
        return finding("cgroups", "red", None, error.cause, error.fix)
    return finding(
        "cgroups", "green", name, f"CPU, memory and process limits can be enforced ({name})"
    )


def check_uv() -> DoctorFinding:
    """Server environments are built with uv, which may be installed next to this interpreter."""
    beside = Path(sys.executable).parent
    path = shutil.which("uv", path=f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    if path is None:
        message = "uv is missing, so server environments cannot be built"
        return finding("uv", "red", None, message, "python -m pip install uv")
    return finding("uv", "green", path, f"uv is installed ({path})")


def check_open_files() -> DoctorFinding:
    """Each connection needs a file descriptor on both sides."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= RECOMMENDED_OPEN_FILES:
        return finding("open files", "green", soft, f"{soft:,} open files allowed")
    level: Level = "red" if soft < MIN_OPEN_FILES else "amber"
    fix = f"ulimit -n {hard}" if hard > soft else "raise the hard limit (limits.conf, LimitNOFILE=)"
    return finding(
        "open files",
        level,
        soft,
        f"only {soft:,} open files allowed; each connection needs one",
        fix,
    )


def watch_cpus(root: Path, watch_s: float) -> list[DoctorFinding]:
    """Steal and other processes' CPU use, over a period in which wsgiload only waits."""
    earlier, before = process_ticks(root), read_cpu_times(root)
    time.sleep(watch_s)
    after, later = read_cpu_times(root), process_ticks(root)
    if before is None or after is None or after.total <= before.total:
        unknown = "CPU times cannot be read"
        return [finding(check, "amber", None, unknown) for check in ("background load", "steal")]
    cores = os.cpu_count() or 1
    busy = busiest(earlier, later, (after.total - before.total) / cores)
    return judge_cpu_times(before, after, cores, busy)


def judge_cpu_times(
    before: CpuTimes, after: CpuTimes, cores: int, busy: str = ""
) -> list[DoctorFinding]:
    """The findings from two readings of the processors' times; ``busy`` names the processes that
    used them."""
    total = after.total - before.total
    foreign = (after.busy - before.busy) / total * cores
    steal = (after.stolen - before.stolen) / total
    foreign_level = _level(foreign, FOREIGN_CORES_AMBER, FOREIGN_CORES_RED)
    steal_level = _level(steal, STEAL_AMBER, STEAL_RED)
    return [
        finding(
            "background load",
            foreign_level,
            round(foreign, 3),
            f"other processes are using {foreign:.2f} cores" + (f": {busy}" if busy else ""),
            None if foreign_level == "green" else "stop other processes, or wait until they finish",
        ),
        finding(
            "steal",
            steal_level,
            round(steal, 4),
            f"steal time: the hypervisor takes {100 * steal:.1f} % of the CPU time",
            None if steal_level == "green" else "use a dedicated host or dedicated CPUs",
        ),
    ]


def read_cpu_times(root: Path) -> CpuTimes | None:
    """The first line of /proc/stat, without guest time, which user time includes."""
    fields = (read_text(under(root, "/proc/stat")) or "").partition("\n")[0].split()[1:9]
    if len(fields) < 8 or not all(field.isdigit() for field in fields):
        return None
    user, nice, system, idle, wait, interrupt, soft_interrupt, steal = map(int, fields)
    busy = user + nice + system + interrupt + soft_interrupt
    return CpuTimes(busy, steal, busy + idle + wait + steal)


def check_load(root: Path) -> DoctorFinding:
    """The load average of the last minute, for intermittent work."""
    words = (read_text(under(root, "/proc/loadavg")) or "").split()
    if not words:
        return finding("load average", "amber", None, "load average unknown")
    load, cores = float(words[0]), os.cpu_count() or 1
    level = _level(load / cores, 0.25, 1.0)
    fix = None if level == "green" else "wait until the machine is idle"
    return finding(
        "load average", level, load, f"load average {load:g} (1 min) on {cores} cores", fix
    )


def check_governor(root: Path) -> DoctorFinding:
    """A power-saving governor makes an idle server respond slowly."""
    pattern = "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
    governors = sorted({text for path in root.glob(pattern) if (text := read_text(path))})
    if not governors:
        message = (
            "CPU frequency governor not visible (normal in virtual machines); CPU speed may vary"
        )
        return finding("governor", "amber", None, message)
    value = ",".join(governors)
    if governors == ["performance"]:
        return finding("governor", "green", value, "CPU frequency governor: performance")
    return finding(
        "governor",
        "amber",
        value,
        f"the CPU frequency drops when the CPU is idle (governor: {value})",
        "sudo cpupower frequency-set -g performance",
    )


def check_clocksource(root: Path) -> DoctorFinding:
    """A slow clock costs a system call for every timestamp."""
    base = under(root, "/sys/devices/system/clocksource/clocksource0")
    clock = read_text(base / "current_clocksource")
    if clock is None:
        return finding("clocksource", "amber", None, "clock source unknown")
    if clock in STEADY_CLOCKS:
        return finding("clocksource", "green", clock, f"timestamps need no system call ({clock})")
    message = f"every timestamp needs a system call (clock source {clock})"
    return finding(
        "clocksource", "amber", clock, message, "boot with clocksource=tsc where the CPU allows it"
    )


def check_swap(root: Path) -> DoctorFinding:
    """A server waits while swapped-out pages are read from disk."""
    lines = (read_text(under(root, "/proc/swaps")) or "").splitlines()
    if not lines:
        return finding("swap", "amber", None, "swap usage unknown")
    used_kib = sum(int(line.split()[-2]) for line in lines[1:])
    if used_kib:
        return finding(
            "swap", "amber", used_kib * 1024, f"{used_kib:,} KiB swapped out", "sudo swapoff -a"
        )
    return finding("swap", "green", 0, "nothing swapped out" if lines[1:] else "no swap")


def check_backlog(root: Path) -> DoctorFinding:
    """The kernel limits every server's listen backlog to this."""
    limit = read_int(under(root, "/proc/sys/net/core/somaxconn"))
    if limit is None:
        return finding("somaxconn", "amber", None, "maximum listen backlog unknown")
    if limit < MIN_BACKLOG:
        message = (
            f"listen backlogs are limited to {limit:,}: bursts may overflow them, and the client "
            "retries dropped connections after 1 s"
        )
        return finding("somaxconn", "amber", limit, message, "sudo sysctl net.core.somaxconn=4096")
    return finding("somaxconn", "green", limit, f"listen backlogs up to {limit:,}")


def check_ports(root: Path) -> DoctorFinding:
    """Without keep-alive, each request occupies a local port for a minute."""
    words = (read_text(under(root, "/proc/sys/net/ipv4/ip_local_port_range")) or "").split()
    if len(words) != 2:
        return finding("local ports", "amber", None, "range of local ports unknown")
    count = int(words[1]) - int(words[0]) + 1
    if count < MIN_PORTS:
        message = f"only {count:,} local ports: they run out quickly without keep-alive"
        return finding(
            "local ports",
            "amber",
            count,
            message,
            'sudo sysctl net.ipv4.ip_local_port_range="10240 65535"',
        )
    return finding("local ports", "green", count, f"{count:,} local ports")


def check_congestion_control(root: Path) -> DoctorFinding:
    """BBR paces its sends, on the loopback interface, too."""
    name = read_text(under(root, "/proc/sys/net/ipv4/tcp_congestion_control"))
    if name is None:
        return finding("congestion control", "amber", None, "TCP congestion control unknown")
    if name == "bbr":
        message = "bbr paces large responses with timers, which increases their latency"
        fix = "sudo sysctl net.ipv4.tcp_congestion_control=cubic"
        return finding("congestion control", "amber", name, message, fix)
    return finding("congestion control", "green", name, f"{name} does not pace responses")


def check_huge_pages(root: Path) -> DoctorFinding:
    """Huge pages for all processes enlarge prefork servers and stall them while pages are
    merged."""
    text = read_text(under(root, "/sys/kernel/mm/transparent_hugepage/enabled"))
    if text is None:
        return finding("huge pages", "amber", None, "transparent huge pages: setting unknown")
    mode = text.partition("[")[2].partition("]")[0] or text
    if mode == "always":
        message = "transparent huge pages are always on, which inflates memory figures"
        fix = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
        return finding("huge pages", "amber", mode, message, fix)
    return finding("huge pages", "green", mode, f"transparent huge pages: {mode}")


def check_smt(root: Path) -> DoctorFinding:
    """Two logical cores of one physical core are not two cores."""
    active = read_int(under(root, "/sys/devices/system/cpu/smt/active"))
    if active is None:
        return finding("smt", "amber", None, "SMT state unknown")
    if active:
        message = "SMT is on: the server and the generator must not share a physical core"
        return finding(
            "smt",
            "amber",
            active,
            message,
            "choose --server-cpus and --client-cpus on different cores (lscpu -e)",
        )
    return finding("smt", "green", active, "no SMT siblings visible")


def _level(value: float, amber: float, red: float) -> Level:
    return "red" if value >= red else "amber" if value >= amber else "green"
