"""The checks of `wsgiload doctor`, on simulated machines and on this one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from wsgiload.doctor import checks as doctor
from wsgiload.doctor.checks import CpuTimes, run_checks
from wsgiload.doctor.machine import busiest, process_ticks
from wsgiload.documents.run_info import DoctorFinding

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file below the root directory of a simulated machine."""

    def put(path: str, text: str) -> None:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "\n")

    return put


def test_every_finding_on_this_machine_is_complete() -> None:
    findings = run_checks(watch_s=0.05)
    names = [finding.check for finding in findings]
    assert len(set(names)) == len(names) >= 14
    for finding in findings:
        assert finding.message and finding.level in ("green", "amber", "red")
        assert finding.level != "red" or finding.fix
        assert finding.level != "green" or finding.value is not None


def test_an_unknown_value_is_never_green(tmp_path: Path) -> None:
    independent_of_files = {"cores", "uv", "open files"}
    findings = [
        finding for finding in run_checks(tmp_path, 0) if finding.check not in independent_of_files
    ]
    assert {finding.level for finding in findings} == {"amber", "red"}
    assert [finding.check for finding in findings if finding.level == "red"] == ["cgroups"]
    assert all(finding.value is None for finding in findings)


@pytest.mark.parametrize(
    ("cores", "level"), [((0,), "red"), ((0, 1), "amber"), ((0, 1, 2, 3), "green")]
)
def test_the_level_depends_on_the_number_of_cores(cores: tuple[int, ...], level: str) -> None:
    assert doctor.check_cores(cores).level == level


@pytest.mark.parametrize(
    ("check", "path", "text", "level", "value"),
    [
        (doctor.check_backlog, "proc/sys/net/core/somaxconn", "128", "amber", 128),
        (doctor.check_backlog, "proc/sys/net/core/somaxconn", "4096", "green", 4096),
        (
            doctor.check_ports,
            "proc/sys/net/ipv4/ip_local_port_range",
            "32768\t60999",
            "green",
            28232,
        ),
        (doctor.check_ports, "proc/sys/net/ipv4/ip_local_port_range", "60000 60999", "amber", 1000),
        (
            doctor.check_congestion_control,
            "proc/sys/net/ipv4/tcp_congestion_control",
            "bbr",
            "amber",
            "bbr",
        ),
        (
            doctor.check_congestion_control,
            "proc/sys/net/ipv4/tcp_congestion_control",
            "cubic",
            "green",
            "cubic",
        ),
        (doctor.check_swap, "proc/swaps", "Filename Type Size Used Priority", "green", 0),
        (doctor.check_swap, "proc/swaps", "Filename\n/dev/sda2 partition 100 0 -2", "green", 0),
        (doctor.check_swap, "proc/swaps", "Filename\n/dev/sda2 partition 100 8 -2", "amber", 8192),
        (
            doctor.check_huge_pages,
            "sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise never",
            "amber",
            "always",
        ),
        (
            doctor.check_huge_pages,
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never",
            "green",
            "madvise",
        ),
        (doctor.check_smt, "sys/devices/system/cpu/smt/active", "1", "amber", 1),
        (doctor.check_load, "proc/loadavg", "900.5 1 1 1/1 1", "red", 900.5),
        (doctor.check_load, "proc/loadavg", "0.00 0 0 1/1 1", "green", 0.0),
    ],
)
def test_checks_of_a_single_file(
    tmp_path: Path,
    write: Write,
    check: Callable[[Path], DoctorFinding],
    path: str,
    text: str,
    level: str,
    value: str | int | float,
) -> None:
    write(path, text)
    finding = check(tmp_path)
    assert (finding.level, finding.value) == (level, value)
    assert (finding.fix is None) == (level == "green")


@pytest.mark.parametrize(
    ("clock", "level"), [("tsc", "green"), ("kvm-clock", "green"), ("hpet", "amber")]
)
def test_a_slow_clock_source_is_amber(tmp_path: Path, write: Write, clock: str, level: str) -> None:
    write("sys/devices/system/clocksource/clocksource0/current_clocksource", clock)
    assert doctor.check_clocksource(tmp_path).level == level


def test_every_core_must_have_the_performance_governor(tmp_path: Path, write: Write) -> None:
    write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")
    assert doctor.check_governor(tmp_path).level == "green"
    write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave")
    finding = doctor.check_governor(tmp_path)
    assert (finding.level, finding.value) == ("amber", "performance,powersave")


def test_background_load_and_steal_are_computed_from_two_readings(
    tmp_path: Path, write: Write
) -> None:
    write("proc/stat", "cpu  10 1 4 100 5 1 1 3 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1")
    assert doctor.read_cpu_times(tmp_path) == CpuTimes(busy=17, stolen=3, total=125)
    before = CpuTimes(0, 0, 0)
    busy, steal = doctor.judge_cpu_times(before, CpuTimes(busy=50, stolen=2, total=100), cores=2)
    assert (busy.level, busy.value) == ("red", 1.0)
    assert (steal.level, steal.value) == ("amber", 0.02)
    assert {f.level for f in doctor.judge_cpu_times(before, CpuTimes(1, 0, 100), 2)} == {"green"}


def test_a_low_limit_of_open_files_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda which: (256, 4096))
    finding = doctor.check_open_files()
    assert (finding.level, finding.fix) == ("red", "ulimit -n 4096")


def test_a_missing_uv_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name, path: None)
    assert doctor.check_uv().level == "red"


# The files of two machines: a server tuned for measuring, and an untuned laptop.
SERVER = {
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
    "sys/devices/system/cpu/smt/active": "0",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "proc/self/timens_offsets": "monotonic           0         0\nboottime            0         0",
    "sys/class/power_supply/unused/type": "UPS",
    "proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "proc/sys/kernel/randomize_va_space": "2",
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
    "proc/sys/net/core/somaxconn": "4096",
    "proc/sys/net/ipv4/tcp_max_syn_backlog": "4096",
    "proc/sys/net/ipv4/ip_local_port_range": "10240\t65535",
    "proc/net/sockstat": "sockets: used 139\nTCP: inuse 5 orphan 0 tw 12 alloc 8 mem 1",
    "proc/sys/net/netfilter/nf_conntrack_count": "40",
    "proc/sys/net/netfilter/nf_conntrack_max": "262144",
    "proc/sys/net/ipv4/tcp_congestion_control": "cubic",
}
LAPTOP = SERVER | {
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "sys/devices/system/cpu/smt/active": "1",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
    "proc/self/timens_offsets": "monotonic   -86400   0\nboottime   0   0",
    "sys/class/power_supply/AC/type": "Mains",
    "sys/class/power_supply/AC/online": "0",
    "sys/class/power_supply/BAT0/type": "Battery",
    "sys/class/power_supply/BAT0/status": "Discharging",
    "proc/swaps": "Filename Type Size Used Priority\n/dev/dm-1 partition 8388604 524 -2",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "proc/sys/kernel/randomize_va_space": "0",
    "proc/sys/net/core/somaxconn": "128",
    "proc/sys/net/ipv4/tcp_max_syn_backlog": "512",
    "proc/sys/net/ipv4/ip_local_port_range": "32768\t40000",
    "proc/net/sockstat": "sockets: used 139\nTCP: inuse 5 orphan 0 tw 23456 alloc 8 mem 1",
    "proc/sys/net/netfilter/nf_conntrack_count": "14000",
    "proc/sys/net/netfilter/nf_conntrack_max": "16384",
    "proc/sys/net/ipv4/tcp_congestion_control": "bbr",
}


def write_all(write: Write, files: dict[str, str]) -> None:
    for path, text in files.items():
        write(path, text)


def test_a_machine_tuned_for_measuring_is_green(tmp_path: Path, write: Write) -> None:
    write_all(write, SERVER)
    findings = doctor.quick_checks(tmp_path)
    assert [finding for finding in findings if finding.level != "green"] == []
    assert len(findings) == len(SERVER) - 1, "connection tracking has two files"


def test_findings_on_an_untuned_laptop_have_a_fix(tmp_path: Path, write: Write) -> None:
    write_all(write, LAPTOP)
    findings = {finding.check: finding for finding in doctor.quick_checks(tmp_path)}
    assert {name for name, finding in findings.items() if finding.level == "green"} == {"pressure"}
    assert {name for name, finding in findings.items() if finding.level == "red"} == {
        "battery",
        "TIME_WAIT",
        "connection tracking",
    }
    assert all(finding.fix for finding in findings.values() if finding.level != "green")
    assert (
        findings["turbo"].fix == "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
    )
    assert findings["TIME_WAIT"].value == 23456


def test_a_charging_battery_is_green(tmp_path: Path, write: Write) -> None:
    write_all(write, {path: text for path, text in LAPTOP.items() if "power_supply" in path})
    write("sys/class/power_supply/AC/online", "1")
    write("sys/class/power_supply/BAT0/status", "Charging")
    findings = {finding.check: finding for finding in doctor.quick_checks(tmp_path)}
    assert (findings["battery"].level, findings["battery"].value) == ("green", "mains")


@pytest.mark.parametrize(
    ("files", "level"),
    [
        ({"sys/module/tcp_cubic/refcnt": "1"}, "green"),
        ({"sys/module/nf_conntrack/refcnt": "1"}, "amber"),
        ({}, "amber"),
        (
            {
                f"proc/sys/net/netfilter/nf_conntrack_{name}": value
                for name, value in [("count", "1"), ("max", "65536")]
            },
            "amber",
        ),
    ],
    ids=["not loaded", "hidden", "unknown", "small"],
)
def test_connection_tracking_is_green_only_if_known(
    tmp_path: Path, write: Write, files: dict[str, str], level: str
) -> None:
    write_all(write, files)
    findings = {finding.check: finding for finding in doctor.quick_checks(tmp_path)}
    assert findings["connection tracking"].level == level


@pytest.mark.parametrize(("boost", "level"), [("1", "amber"), ("0", "green")])
def test_turbo_is_read_from_the_generic_boost_file(
    tmp_path: Path, write: Write, boost: str, level: str
) -> None:
    write("sys/devices/system/cpu/cpufreq/boost", boost)
    findings = {finding.check: finding for finding in doctor.quick_checks(tmp_path)}
    assert findings["turbo"].level == level


def test_busy_processes_are_named_with_pid_and_share(tmp_path: Path, write: Write) -> None:
    def spend(pid: int, name: str, user: int, system: int) -> None:
        write(f"proc/{pid}/stat", f"{pid} ({name}) R 1 1 1 0 -1 0 0 0 0 0 {user} {system} 0 0 20")

    write("proc/uptime", "1")
    for pid, name in ((7, "a (b) c"), (8, "idle"), (9, "evil\x1b[2J")):
        spend(pid, name, 1000, 1000)
    before = process_ticks(tmp_path)
    spend(7, "a (b) c", 1020, 1010)
    spend(8, "renamed", 1001, 1000)
    spend(9, "evil\x1b[2J", 1000, 1050)
    spend(10, "new", 5, 0)
    named = busiest(before, process_ticks(tmp_path), ticks_per_core=50)

    assert named == "evil\\x1b[2J (pid 9, 1.00), a (b) c (pid 7, 0.60), new (pid 10, 0.10)"
    load, _ = doctor.judge_cpu_times(CpuTimes(0, 0, 0), CpuTimes(100, 0, 200), 2, named)
    assert load.message == f"other processes are using 1.00 cores: {named}"
