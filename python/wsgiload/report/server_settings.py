"""How each server of a sweep was started: its command line and the commands that ran before it.
Pure, from the stored cells."""

from __future__ import annotations

from wsgiload.documents.cell_result import ServerSettings
from wsgiload.report.cells import Sweep
from wsgiload.report.command_line import to_paste


def settings_of(sweep: Sweep) -> list[tuple[str, str]]:
    """Each server with its settings, including servers that failed after their start."""
    by_label: dict[str, ServerSettings] = {}
    for cell in sweep.cells:
        if cell.result.settings is not None:
            by_label.setdefault(cell.label, cell.result.settings)
    return [(label, _text(settings)) for label, settings in by_label.items()]


def _text(settings: ServerSettings) -> str:
    before = f" (setup: {'; '.join(settings.setup)})" if settings.setup else ""
    return f"{to_paste(settings)}{before}"
