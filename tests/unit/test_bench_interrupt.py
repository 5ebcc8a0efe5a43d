"""An interrupted benchmark keeps the runs it has measured."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bench.__main__ as command
from bench.generators import DIALECTS, Generator


@pytest.fixture
def restore_sigterm_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("restore_sigterm_handler")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_runs_before_a_signal_are_kept(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_run(*_: object) -> Iterator[dict[str, Any]]:
        yield {"section": "memory", "failure": "not executed"}
        os.kill(os.getpid(), number)
        raise AssertionError("the signal was ignored")

    generator = Generator("loadgen", DIALECTS["loadgen"], Path("loadgen"))
    monkeypatch.setattr(command, "_generators", lambda _: ([generator], []))
    monkeypatch.setattr(command, "carry_out", one_run)
    monkeypatch.setattr(command, "render", lambda _: "")
    monkeypatch.setattr(
        sys, "argv", ["bench", "closed", "--priority", "ordinary", "--output", str(tmp_path)]
    )

    command.main()

    (file,) = tmp_path.glob("*.json")
    results = json.loads(file.read_text())
    assert len(results["runs"]) == 1
    assert results["left_out"][-1] == "all runs after the interrupt"
