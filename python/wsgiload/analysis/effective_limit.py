"""Which limit a stored cell had: one that was requested and not enforced is no condition of its
figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from wsgiload.documents.cell_result import AppliedLimits, CellResult


def held_limit(limits: AppliedLimits | None, name: Literal["cpus", "memory_bytes"]) -> float | None:
    """``cpus``, in cores, or ``memory_bytes``, of a cell's ``limits``; None where it was not set or
    not enforced."""
    if limits is None or name.removesuffix("_bytes") in limits.not_enforced:
        return None
    return limits.cpus if name == "cpus" else limits.memory_bytes


def held_memory_bytes(cells: Sequence[CellResult]) -> int | None:
    """The memory limit of cells of one setting, from the first of them that has one."""
    limits = (held_limit(cell.limits, "memory_bytes") for cell in cells)
    return next((int(limit) for limit in limits if limit is not None), None)
