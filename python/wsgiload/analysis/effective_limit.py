"""The limits of a stored cell that were enforced. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from wsgiload.documents.cell_result import AppliedLimits, CellResult


def effective_limit(
    limits: AppliedLimits | None, name: Literal["cpus", "memory_bytes"]
) -> float | None:
    """``cpus`` (cores) or ``memory_bytes`` of a cell's ``limits``; None if not set or not
    enforced."""
    if limits is None or name.removesuffix("_bytes") in limits.not_enforced:
        return None
    return limits.cpus if name == "cpus" else limits.memory_bytes


def effective_memory_bytes(cells: Sequence[CellResult]) -> int | None:
    """The memory limit of the first of these cells that has one."""
    limits = (effective_limit(cell.limits, "memory_bytes") for cell in cells)
    return next((int(limit) for limit in limits if limit is not None), None)
