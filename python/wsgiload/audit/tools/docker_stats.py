"""The output of ``docker stats``: one result per container, without requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean

from wsgiload.audit import text
from wsgiload.audit.run import AuditTool, Part
from wsgiload.documents.audit import Figures

# The first line of each screen.
_HEAD = r"CONTAINER(?: ID)?\s+(?:NAME\s+)?CPU %\s+MEM USAGE"
_ROW = re.compile(
    rf"^(\S+)\s+(?:(\S+)\s+)?({text.NUMBER})%\s+({text.NUMBER}) ?([kKMGT]?i?B) / ", re.MULTILINE
)
_ESCAPES = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
_PREFIXES = "kMGT"
_IDLE_CORES = 0.02


def _parse(content: str) -> Sequence[Part]:
    samples: dict[str, list[tuple[float, int]]] = {}
    for key, name, percent, size, unit in _ROW.findall(_ESCAPES.sub("", content)):
        of_one = samples.setdefault(name or key, [])
        of_one.append((float(percent) / 100, _bytes(float(size), unit)))
    if not samples:
        text.cut_off(content, "a container")
    parts = [(name, _figures(of_one)) for name, of_one in samples.items()]
    return [Part(figures, text.quoted(name) if len(parts) > 1 else None) for name, figures in parts]


def _figures(samples: Sequence[tuple[float, int]]) -> Figures:
    cores = [one for one, _ in samples]
    return Figures(
        mean_cpu_cores=fmean(cores),
        max_cpu_cores=max(cores),
        idle_ratio=fmean(one < _IDLE_CORES for one in cores),
        max_memory_bytes=max(one for _, one in samples),
    )


def _bytes(size: float, unit: str) -> int:
    base = 1024 if "i" in unit else 1000
    prefix = unit[0].replace("K", "k")
    exponent = _PREFIXES.index(prefix) + 1 if prefix in _PREFIXES else 0
    return round(size * float(base) ** exponent)


DOCKER_STATS = AuditTool("docker stats", text.has_line(_HEAD), _parse)
