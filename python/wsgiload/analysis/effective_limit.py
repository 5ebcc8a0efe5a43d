"""Which limit a stored cell had: one that was asked for and did not hold is no condition of its
figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def held_limit(limits: Mapping[str, Any] | None, name: str) -> float | None:
    """``cpus``, in cores, or ``memory_bytes``, of a cell's ``limits``; None where it was not set or
    does not hold."""
    if limits is None or name.removesuffix("_bytes") in limits.get("not_enforced", ()):
        return None
    value: float | None = limits.get(name)
    return value


def held_memory_bytes(cells: Sequence[Mapping[str, Any]]) -> int | None:
    """The memory limit of cells of one setting, as far as one of them tells."""
    held = (held_limit(cell["limits"], "memory_bytes") for cell in cells)
    return next((int(limit) for limit in held if limit is not None), None)
