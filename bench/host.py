"""Facts about the machine and versions of the tools, without host name and paths."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.generators import ROOT, Generator, find_program

_FILES = {
    "cpu_governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "smt": "/sys/devices/system/cpu/smt/active",
    "clocksource": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "tcp_congestion_control": "/proc/sys/net/ipv4/tcp_congestion_control",
    "port_range": "/proc/sys/net/ipv4/ip_local_port_range",
}


def host_facts() -> dict[str, Any]:
    """Facts about the machine; None if unknown."""
    return {
        "cpu_model": _field("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "hypervisor": "hypervisor" in (_field("/proc/cpuinfo", "flags") or "").split(),
        "kernel": platform.release(),
        "os": _os_name(),
        **{name: _text(path) for name, path in _FILES.items()},
        "load_average": " ".join((_text("/proc/loadavg") or "unknown").split()[:3]),
    }


def versions(generators: list[Generator]) -> dict[str, str | None]:
    """The version of every generator and server; None if unknown."""
    by_name = {one.name: generator_version(one) for one in generators}
    by_name["nginx"] = _printed_version(find_program("nginx"), ("-v",))
    by_name["strace"] = _printed_version(find_program("strace"), ("-V",))
    by_name["wsgiload commit"] = _commit()
    return by_name


def commit_time() -> str | None:
    """Time of the commit under test, in UTC; None without a repository."""
    seconds = _git("show", "--no-patch", "--format=%ct", "HEAD")
    if seconds is None:
        return None
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )


def generator_version(generator: Generator) -> str | None:
    """The version that the program prints, or else the one in its Go build information."""
    if generator.dialect.version:
        return _printed_version(generator.path, generator.dialect.version)
    go = find_program("go")
    text = _output([str(go), "version", "-m", str(generator.path)]) if go else ""
    module = re.search(r"^\s*mod\s+\S+\s+v(\S+)", text, re.MULTILINE)
    return module[1] if module else None


def processor_maker(facts: Mapping[str, Any]) -> str:
    """The processor in a file name: the first word of its model, such as ``amd`` or ``intel``."""
    words = re.findall(r"[a-z0-9]+", (facts["cpu_model"] or "unknown").lower())
    return str(words[0])


def _printed_version(path: Path | None, arguments: tuple[str, ...]) -> str | None:
    if path is None:
        return None
    version = re.search(r"\d+\.\d+(?:\.\d+)?", _output([str(path), *arguments]))
    return version[0] if version else None


def _commit() -> str | None:
    commit = _git("rev-parse", "--short", "HEAD")
    return (
        f"{commit} with uncommitted changes"
        if commit and _git("status", "--porcelain", "--untracked-files=no")
        else commit
    )


def _git(*words: str) -> str | None:
    """The output of git in this repository; None without a repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _output(words: list[str]) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=20, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _text(path: str) -> str | None:
    try:
        return " ".join(Path(path).read_text().split())
    except OSError:
        return None


def _field(path: str, name: str) -> str | None:
    lines = (_raw(path)).splitlines()
    values = [
        line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name
    ]
    return values[0] if values else None


def _raw(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _os_name() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None
