"""Signal handlers and reruns for all tests."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

# Tests with real processes, kernels and clocks can fail because of a disturbance that is too short
# to be detected.
TIMED_DIRECTORIES = [Path(__file__).parent / name for name in ("integration", "limits")]
# In these modules, even a rare failure is a bug: leftover processes or files, or disclosed secrets.
NEVER_RERUN = {
    "test_closed_terminal",
    "test_first_use",
    "test_full_disk",
    "test_hostile_text",
    "test_kill_table",
    "test_secrets",
}


def pytest_configure() -> None:
    """Restore signals that the commands under test would inherit as ignored: a shell ignores SIGINT
    in background jobs, and ``nohup`` ignores SIGHUP."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rerun a failed timed test once; pytest's summary counts it as ``rerun``."""
    for item in items:
        is_timed = any(item.path.is_relative_to(directory) for directory in TIMED_DIRECTORIES)
        if is_timed and item.path.stem not in NEVER_RERUN:
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=2))
