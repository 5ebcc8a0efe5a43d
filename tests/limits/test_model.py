"""Rules for limits: which are rejected, when a quota is written, and which count as not enforced."""

from __future__ import annotations

import os

import pytest

from wsgiload.errors import LimitsError
from wsgiload.limits.model import Limits, creator_pid, new_group_name, unmet, validate_limits

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("limits", "cause"),
    [
        (Limits(cpus=99), "99 CPUs requested, but this machine has 2"),
        (Limits(cpus=0.001), "the kernel's minimum is 0.01"),
        (Limits(cpus=-1), "-1 CPUs requested"),
        (Limits(cpus=float("nan")), "nan CPUs requested"),
        (Limits(cpus=2, server_cpus=(1,)), "2 CPUs requested, but the server is pinned to 1"),
        (Limits(server_cpus=(7,)), "--server-cpus 7: only 0-1 are available"),
        (Limits(cpu_period_us=10), "the kernel does not accept a CPU period of 10 µs"),
        (
            Limits(memory_bytes=4 * MIB - 1),
            "--memory of 4194303 bytes is too small to start a server",
        ),
        (Limits(pids=0), "--pids 0 is too small to start a server"),
    ],
)
def test_limits_that_cannot_be_enforced_are_rejected(limits: Limits, cause: str) -> None:
    with pytest.raises(LimitsError, match=cause) as caught:
        validate_limits(limits, (0, 1))
    assert caught.value.fix


@pytest.mark.parametrize(
    "limits",
    [
        Limits(),
        Limits(cpus=2),
        Limits(cpus=0.01),
        Limits(memory_bytes=4 * MIB, pids=1, server_cpus=(0, 1)),
    ],
)
def test_limits_that_can_be_enforced_are_accepted(limits: Limits) -> None:
    validate_limits(limits, (0, 1))


@pytest.mark.parametrize(
    ("limits", "quota_us"),
    [
        (Limits(), None),
        (Limits(cpus=1, server_cpus=(1,)), None),
        (Limits(cpus=0.5, server_cpus=(1,)), 50_000),
        (Limits(cpus=1, server_cpus=(0, 1)), 100_000),
        (Limits(cpus=2), 200_000),
        (Limits(cpus=0.5, cpu_period_us=10_000), 5_000),
    ],
)
def test_a_quota_is_written_only_if_pinning_is_not_enough(
    limits: Limits, quota_us: int | None
) -> None:
    assert limits.quota_us(cpuset_holds=True) == quota_us


def test_an_affinity_mask_does_not_replace_a_quota() -> None:
    assert Limits(cpus=1, server_cpus=(1,)).quota_us(cpuset_holds=False) == 100_000


def test_limits_that_were_not_read_back_are_not_enforced() -> None:
    limits = Limits(cpus=0.5, memory_bytes=64 * MIB, pids=10)
    assert unmet(limits, {}, swap_on=True) == ("cpus", "memory", "swap", "pids")

    read_back = {"effective_cpus": 0.5, "effective_memory_bytes": 64 * MIB, "effective_pids": 10}
    assert unmet(limits, read_back, swap_on=False) == ()
    assert unmet(limits, {**read_back, "swap_bytes": 0}, swap_on=True) == ()
    smaller = {**read_back, "effective_memory_bytes": 32 * MIB}
    assert unmet(limits, smaller, swap_on=False) == ("memory",)
    assert unmet(Limits(), {}, swap_on=True) == ()


def test_a_memory_limit_may_be_rounded_down_to_whole_pages() -> None:
    limits = Limits(memory_bytes=64 * MIB + 100)
    assert unmet(limits, {"effective_memory_bytes": 64 * MIB}, swap_on=False) == ()


def test_a_group_name_contains_the_pid_of_its_creator() -> None:
    name = new_group_name("gunicorn/gthread @ 100")
    assert "/" not in name
    assert creator_pid(name) == os.getpid()
    assert new_group_name("x") != new_group_name("x")
    assert creator_pid("wsgiload-orchestrator-12") is None
    assert creator_pid("docker-12-abcdef01-x") is None


def test_pinning_that_the_kernel_did_not_apply_is_not_enforced() -> None:
    limits = Limits(server_cpus=(1, 2))
    assert unmet(limits, {"affinity": "1-2"}, swap_on=False) == ()
    assert unmet(limits, {"affinity": "0-2"}, swap_on=False) == ("server_cpus",)
    assert unmet(limits, {}, swap_on=False) == ("server_cpus",)
