"""How rarely the files of a group are read, on an invented cgroupfs."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from wsgiload.attribution.steps import Step
from wsgiload.limits.files import EVERY_PERIOD_NS
from wsgiload.limits.model import Backend, Limits
from wsgiload.limits.v1 import CONTROLLERS, V1Backend
from wsgiload.limits.v2 import V2Backend

if TYPE_CHECKING:
    from conftest import FakeKernel


def first_version(kernel: FakeKernel) -> Backend:
    for controller in CONTROLLERS:
        kernel.mount_v1(controller)
    kernel.mount_v2("", point="/sys/fs/cgroup/unified")
    return V1Backend(kernel.root)


def second_version(kernel: FakeKernel) -> Backend:
    kernel.mount_v2("cpu memory pids cpuset")
    return V2Backend(kernel.root)


@pytest.mark.parametrize("version", [first_version, second_version])
def test_what_is_compared_from_period_to_period_is_read_in_each(
    kernel: FakeKernel, version: object
) -> None:
    backend = first_version(kernel) if version is first_version else second_version(kernel)
    group = backend.create(Limits(policy="best-effort"), "t")
    seldom, often = set[str](), set[str]()
    for source in group.sources():
        if source.path.exists():
            (often if source.spacing_ns <= EVERY_PERIOD_NS else seldom).update(
                source.parse(source.path.read_text())
            )
    compared = {field.name for field in fields(Step)}
    assert seldom & compared == set()
    assert {
        "cpu_usage_ns",
        "nr_throttled",
        "psi_cpu_full_ns",
        "psi_memory_some_ns",
    } <= often & compared
    assert "memory_anon_bytes" in seldom
    group.close()
