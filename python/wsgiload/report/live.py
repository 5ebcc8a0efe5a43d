"""The page that follows a command while it measures (``--live``); its script asks for events."""

from __future__ import annotations

from dataclasses import dataclass

from wsgiload.report import page, palette


@dataclass(frozen=True, slots=True)
class LiveShown:
    """What ``live.html.j2`` shows."""

    title: str
    palette: palette.Palette


def render(command: str) -> str:
    """The whole page as text."""
    shown = LiveShown(title=f"wsgiload {command}", palette=palette.palette())
    return page.render("live.html.j2", shown, page.nothing_drawn(), policy="connect-src 'self'")
