"""How often the files of a group are read, on a fake cgroupfs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from wsgiload.attribution.spans import Step
from wsgiload.limits.files import EVERY_PERIOD_NS
from wsgiload.limits.model import Backend, Limits
from wsgiload.limits.v1 import CONTROLLERS, V1Backend
from wsgiload.limits.v2 import V2Backend

if TYPE_CHECKING:
    from conftest import FakeKernel


def v1_backend(kernel: FakeKernel) -> Backend:
    for controller in CONTROLLERS:
        kernel.mount_v1(controller)
    kernel.mount_v2("", point="/sys/fs/cgroup/unified")
    return V1Backend(kernel.root)


def v2_backend(kernel: FakeKernel) -> Backend:
    kernel.mount_v2("cpu memory pids cpuset")
    return V2Backend(kernel.root)


@pytest.mark.parametrize("open_backend", [v1_backend, v2_backend])
def test_counters_compared_between_cpu_periods_are_read_in_each_period(
    kernel: FakeKernel, open_backend: Callable[[FakeKernel], Backend]
) -> None:
    group = open_backend(kernel).create(Limits(policy="best-effort"), "t")

    rare, frequent = set[str](), set[str]()
    for source in group.sources():
        if source.path.exists():
            counters = frequent if source.spacing_ns <= EVERY_PERIOD_NS else rare
            counters.update(source.parse(source.path.read_text()))

    compared = {field.name for field in fields(Step)}
    assert rare & compared == set()
    expected = {"cpu_usage_ns", "nr_throttled", "psi_cpu_full_ns", "psi_memory_some_ns"}
    assert expected <= frequent & compared
    assert "memory_anon_bytes" in frequent, "its peak is reported"
    group.close()
