"""Idle cores stay awake while a device file is open."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.awake import cores_awake


def test_zero_latency_is_requested_inside_the_block(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.touch()

    def is_open() -> bool:
        # The directory listing uses a file descriptor that is closed before its link is read.
        return any(
            link.is_symlink() and link.readlink() == device
            for link in Path("/proc/self/fd").iterdir()
        )

    with cores_awake(device):
        assert device.read_bytes() == b"\0\0\0\0"
        assert is_open()
    assert not is_open()


def test_without_the_device_the_block_is_not_entered(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="no-such-device"),
        cores_awake(tmp_path / "no" / "no-such-device"),
    ):
        pytest.fail("the block was entered")
