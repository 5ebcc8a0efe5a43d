"""Runs ``wsgiload`` and stops it at the first time that it comes to a statement of a cell's life.

    stopping.py STEP FILE ARGUMENTS…

The step is then in the file, and whoever removes the file lets it go on; ``every`` stops at each.
The steps are the statements of the functions below: what is added to one of them is another row of
the table.
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
# Where a cell, and what is around it, is made, stored and undone: functions by module.
STEPS_OF = {
    "serving/groups.py": {"chosen_place", "fresh_group"},
    "serving/preparation.py": {"prepared"},
    "serving/lifecycle.py": {"serving"},
    "serving/launch.py": {"ServerProcess.start", "ServerProcess.stop"},
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
    """Of each line the first line of the statement that it is in, the innermost."""
    found: dict[int, tuple[int, int]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            length = (node.end_lineno or node.lineno) - node.lineno
            for line in range(node.lineno, node.lineno + length + 1):
                if line not in found or length < found[line][0]:
                    found[line] = (length, node.lineno)
    return {line: first for line, (_, first) in found.items()}


@functools.cache
def statements(path: str) -> dict[int, int]:
    return statements_of(Path(path).read_text())


def place_of(code: CodeType) -> str | None:
    """The module and function, if its statements are steps."""
    names = NAMES_IN.get(code.co_filename)
    if names is None or code.co_qualname not in names:
        return None
    return f"{code.co_filename[len(PREFIX) :]}:{code.co_qualname}"


def tracing(reached: Callable[[str], None]) -> Callable[[FrameType, str, Any], Any]:
    """Has each step reported at its first time."""
    seen: set[str] = set()
    # A group is also made to see whether that is possible, before there is a cell.
    began = ""

    def at_a_line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal began
        place = place_of(frame.f_code)
        began = began or ("cell:" if place == CELL else "")
        step = f"{began}{place}:{statements(frame.f_code.co_filename)[frame.f_lineno]}"
        if event == "line" and step not in seen:
            seen.add(step)
            reached(step)
        return at_a_line

    def at_a_call(frame: FrameType, event: str, argument: Any) -> Any:
        return at_a_line if place_of(frame.f_code) is not None else None

    return at_a_call


def trace_from_place_to_report(act: Callable[[FrameType, str, Any], Any]) -> None:
    """Trace nothing else: it makes everything slower."""
    choose_place, write_html = sweep.chosen_place, sweep.write_html

    def chosen_place(limits: Limits) -> AbstractContextManager[Place]:
        sys.settrace(act)
        return choose_place(limits)

    def written_html(run: Path) -> Path:
        sys.settrace(None)
        return write_html(run)

    sweep.chosen_place, sweep.write_html = chosen_place, written_html  # type: ignore[assignment]


def stopping(wanted: str, file: Path) -> Callable[[str], None]:
    """At the wanted step, or at every one, it is in the file, until somebody removes that."""

    def reached(step: str) -> None:
        if wanted not in (step, EVERY):
            return
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(step)
        unfinished.rename(file)
        while file.exists():
            time.sleep(POLL_S)

    return reached


if __name__ == "__main__":
    wanted, file, *words = sys.argv[1:]
    sys.argv[1:] = words
    trace_from_place_to_report(tracing(stopping(wanted, Path(file))))
    main()
