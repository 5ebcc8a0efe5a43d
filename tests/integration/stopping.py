"""Runs ``wsgiload`` and pauses it the first time it reaches a given step in the lifecycle of a cell.

    stopping.py STEP FILE ARGUMENTS…

During the pause, FILE contains the step; removing FILE ends the pause. With ``every``, it pauses at
every step. The steps are the statements of the functions listed below, so a statement added to one
of them adds rows to the kill table.
"""

from __future__ import annotations

import ast
import functools
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import wsgiload
from wsgiload.cli import main
from wsgiload.limits import Limits
from wsgiload.serving.groups import Place
from wsgiload.sweeps import sweep

PREFIX = f"{Path(wsgiload.__file__).parent}/"
# The functions that set up, store and clean up a cell and its environment, by module.
STEPS_OF = {
    "serving/groups.py": {"chosen_place", "fresh_group"},
    "serving/lifecycle.py": {"prepared", "serving"},
    "serving/launch.py": {"ServerProcess.start", "ServerProcess.stop"},
    "serving/log.py": {"output_log", "OutputLog.__init__", "OutputLog.close"},
    "scratch.py": {"scratch_folder", "_remove"},
    "limits/v1.py": {"V1Backend.create", "V1Backend._make_directories"},
    "limits/v2.py": {"V2Backend.create"},
    "limits/group.py": {"ControlGroup.spawn", "ControlGroup.close"},
    "limits/launch.py": {"launch"},
    "limits/janitor.py": {"Janitor.watch", "Janitor.release", "Janitor.__exit__"},
    "sweeps/cell.py": {"run_cell", "_measure", "_sampling"},
    "sweeps/sweep.py": {"_Sweep.keep"},
    "results/store.py": {"RunDirectory.write_cell", "RunDirectory._replace"},
    "loads/drive.py": {"drive", "_order", "_end"},
}
NAMES_IN = {PREFIX + module: names for module, names in STEPS_OF.items()}
EVERY = "every"
CELL = "sweeps/cell.py:run_cell"
POLL_S = 0.005


def statements_of(source: str) -> dict[int, int]:
    """The first line of the innermost statement that contains each line, by line."""
    innermost: dict[int, tuple[int, int]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            length = (node.end_lineno or node.lineno) - node.lineno
            for line in range(node.lineno, node.lineno + length + 1):
                if line not in innermost or length < innermost[line][0]:
                    innermost[line] = (length, node.lineno)
    return {line: first for line, (_, first) in innermost.items()}


@functools.cache
def statements(path: str) -> dict[int, int]:
    return statements_of(Path(path).read_text())


def place_of(code: CodeType) -> str | None:
    """The module and name of a function whose statements are steps; None for other functions."""
    names = NAMES_IN.get(code.co_filename)
    if names is None or code.co_qualname not in names:
        return None
    return f"{code.co_filename[len(PREFIX) :]}:{code.co_qualname}"


def tracing(reached: Callable[[str], None]) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that calls ``reached`` the first time each step is executed."""
    seen: set[str] = set()
    # Before the first cell, a control group is created to test whether that is possible.
    prefix = ""

    def trace_line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal prefix
        place = place_of(frame.f_code)
        prefix = prefix or ("cell:" if place == CELL else "")
        step = f"{prefix}{place}:{statements(frame.f_code.co_filename)[frame.f_lineno]}"
        if event == "line" and step not in seen:
            seen.add(step)
            reached(step)
        return trace_line

    def trace_call(frame: FrameType, event: str, argument: Any) -> Any:
        return trace_line if place_of(frame.f_code) is not None else None

    return trace_call


def trace_from_place_to_report(trace: Callable[[FrameType, str, Any], Any]) -> None:
    """Trace only this part of a sweep, because tracing is slow."""
    chosen_place, write_html = sweep.chosen_place, sweep.write_html

    def start_tracing(limits: Limits, log: Callable[[str], None]) -> AbstractContextManager[Place]:
        sys.settrace(trace)
        return chosen_place(limits, log)

    def stop_tracing(run: Path) -> Path:
        sys.settrace(None)
        return write_html(run)

    sweep.chosen_place, sweep.write_html = start_tracing, stop_tracing  # type: ignore[assignment]


def pausing(pause_at: str, file: Path) -> Callable[[str], None]:
    """Pause at the given step, or at every step: write the step to the file, and wait until the
    file is removed."""

    def reached(step: str) -> None:
        if pause_at not in (step, EVERY):
            return

        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(step)
        unfinished.rename(file)
        while file.exists():
            time.sleep(POLL_S)

    return reached


if __name__ == "__main__":
    pause_at, file, *arguments = sys.argv[1:]
    sys.argv[1:] = arguments
    trace_from_place_to_report(tracing(pausing(pause_at, Path(file))))
    main()
