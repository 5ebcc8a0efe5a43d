"""Signal handlers, reruns, and the tests that ``make test`` runs."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .disturbance import HostWatch

# Tests with real processes, kernels and clocks can fail because other processes disturb the host.
TIMED_DIRECTORIES = [Path(__file__).parent / name for name in ("integration", "limits")]
# In these modules, even a rare failure is a bug: leftover processes or files, or disclosed secrets.
NEVER_RERUN = {
    "test_closed_terminal",
    "test_fault_matrix",
    "test_first_use",
    "test_full_disk",
    "test_hostile_text",
    "test_kill_table",
    "test_secrets",
}

# The tests of real processes that ``make test`` runs: one of each kind of thing a user does.
# ``make test-all`` runs the others.
ESSENTIAL = {
    "test_endings": {
        "test_a_killed_sweep_leaves_no_process_and_no_control_group",
        "test_an_interrupt_keeps_the_finished_cells_and_leaves_nothing_running",
    },
    "test_load": {
        "test_a_closed_loop_uses_the_requested_number_of_connections",
        "test_a_failed_threshold_is_named_and_gives_exit_code_99_if_the_measurement_is_valid",
        "test_an_open_loop_sends_every_scheduled_request",
        "test_the_command_writes_the_same_document",
    },
    "test_secrets": {
        "test_a_sweep_is_resumed_only_with_its_secrets",
        "test_a_sweep_reveals_no_secrets",
    },
}
# Modules that judge response times or rates: a test beside them would change what they judge. All
# others mostly wait for processes, and run two at a time.
ALONE = {
    "test_alarms",
    "test_calibration",
    "test_capacity",
    "test_causes",
    "test_concurrent_loads",
    "test_fingerprints",
    "test_intervention",
    "test_proofs",
    "test_races",
}
# Modules that start a server on the port that the documentation names.
PORT_8000 = {"test_own_servers", "test_printed_commands", "test_readme"}
_watch = HostWatch()
_watched: set[str] = set()
# The fixture of one sweep of three servers, which many quick tests examine.
ESSENTIAL_FIXTURE = "hello"


def pytest_configure() -> None:
    """Restore signals that the commands under test would inherit as ignored: a shell ignores SIGINT
    in background jobs, and ``nohup`` ignores SIGHUP."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the essential tests, and those that run alone. Rerun a failed timed test once if the host
    was disturbed; pytest's summary counts it as ``rerun``."""
    for item in items:
        name, module = item.name.partition("[")[0], item.path.stem
        if module in ALONE:
            item.add_marker(pytest.mark.alone)
        group = "port 8000" if module in PORT_8000 else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
        fixtures = getattr(item, "fixturenames", ())
        if name in ESSENTIAL.get(module, ()) or ESSENTIAL_FIXTURE in fixtures:
            item.add_marker(pytest.mark.essential)
        is_timed = any(item.path.is_relative_to(directory) for directory in TIMED_DIRECTORIES)
        if is_timed and module not in NEVER_RERUN:
            item.add_marker(pytest.mark.flaky(reruns=1, condition=_was_disturbed))
            _watched.add(item.nodeid)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Watch the host during a timed test."""
    if item.nodeid in _watched:
        if not _watch.is_alive():
            _watch.start()
        _watch.disturbed_s = 0.0


def _was_disturbed() -> bool:
    return _watch.disturbed_s > 0
