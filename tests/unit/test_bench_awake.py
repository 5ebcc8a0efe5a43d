"""Idle cores are kept awake by a file that is held open."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.awake import cores_awake


def test_no_latency_is_asked_for_as_long_as_the_block_lasts(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.touch()

    def is_open() -> bool:
        # The listing has a descriptor of its own, which is closed by the time its link is read.
        return any(
            link.is_symlink() and link.readlink() == device
            for link in Path("/proc/self/fd").iterdir()
        )

    with cores_awake(device):
        assert device.read_bytes() == b"\0\0\0\0"
        assert is_open()
    assert not is_open()


def test_without_the_device_nothing_is_run(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="no-such-device"),
        cores_awake(tmp_path / "no" / "no-such-device"),
    ):
        pytest.fail("the block was entered")
