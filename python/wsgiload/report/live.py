"""The page that shows a command's progress (``--live``); its script requests events."""

from __future__ import annotations

from dataclasses import dataclass

from wsgiload.report import page, palette


@dataclass(frozen=True, slots=True)
class LiveShown:
    """The data of ``live.html.j2``."""

    title: str
    palette: palette.Palette


def render(command: str) -> str:
    """The page as HTML."""
    shown = LiveShown(title=f"wsgiload {command}", palette=palette.palette())
    return page.render("live.html.j2", shown, page.nothing_drawn(), policy="connect-src 'self'")
