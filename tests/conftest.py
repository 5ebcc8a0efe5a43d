"""What every test needs, however the run was started."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

# Tests of real processes, kernels and clocks: noise that is too short to be detected can make them
# fail.
TIMED = [Path(__file__).parent / name for name in ("integration", "limits")]
# Here even a rare failure is a fault: something is left, or shown.
NEVER_TWICE = {
    "test_closed_terminal",
    "test_full_disk",
    "test_hostile_text",
    "test_kill_table",
    "test_secrets",
}


def pytest_configure() -> None:
    """A shell starts a background job with SIGINT ignored, and ``nohup`` any job with SIGHUP, which
    the commands under test would inherit."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A timed test fails only if it fails twice; the summary counts the first failures as
    ``rerun``."""
    for item in items:
        is_timed = any(item.path.is_relative_to(folder) for folder in TIMED)
        if is_timed and item.path.stem not in NEVER_TWICE:
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=2))
