"""Facts of the machine and the versions of the tools that a result depends on. No host name, no
path."""

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
    """What the machine is; None for what it does not tell."""
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
    """The version of every generator and server; None where a program has no way to say."""
    found = {one.name: generator_version(one) for one in generators}
    found["nginx"] = _said(find_program("nginx"), ("-v",))
    found["strace"] = _said(find_program("strace"), ("-V",))
    found["wsgiload commit"] = _commit()
    return found


def commit_time() -> str | None:
    """When the commit under test was made, in UTC; None where there is no repository."""
    seconds = _git("show", "--no-patch", "--format=%ct", "HEAD")
    if seconds is None:
        return None
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )


def generator_version(generator: Generator) -> str | None:
    """What the program says of itself, or else what Go wrote into it."""
    if generator.dialect.version:
        return _said(generator.path, generator.dialect.version)
    go = find_program("go")
    text = _output([str(go), "version", "-m", str(generator.path)]) if go else ""
    module = re.search(r"^\s*mod\s+\S+\s+v(\S+)", text, re.MULTILINE)
    return module[1] if module else None


def processor_maker(facts: Mapping[str, Any]) -> str:
    """The machine in a file name: the first word of its processor, as in ``amd`` and ``intel``."""
    words = re.findall(r"[a-z0-9]+", (facts["cpu_model"] or "unknown").lower())
    return str(words[0])


def _said(path: Path | None, arguments: tuple[str, ...]) -> str | None:
    found = re.search(r"\d+\.\d+(?:\.\d+)?", _output([str(path), *arguments])) if path else None
    return found[0] if found else None


def _commit() -> str | None:
    commit = _git("rev-parse", "--short", "HEAD")
    return (
        f"{commit} with changes"
        if commit and _git("status", "--porcelain", "--untracked-files=no")
        else commit
    )


def _git(*words: str) -> str | None:
    """What git prints of this repository; None where this is none."""
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
    found = [
        line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name
    ]
    return found[0] if found else None


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
