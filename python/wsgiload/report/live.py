"""The page that follows a command while it measures (``--live``); its script asks for events."""

from __future__ import annotations

from dataclasses import dataclass

from wsgiload.documents.page_data import PageData
from wsgiload.report import page, palette


@dataclass(frozen=True, slots=True)
class LiveShown:
    """What ``live.html.j2`` shows."""

    title: str
    palette: palette.Palette


def render(command: str) -> str:
    """The whole page as text."""
    shown = LiveShown(title=f"wsgiload {command}", palette=palette.palette())
    nothing = PageData(servers=(), runs_each=1, charts=(), timelines=(), forest=None)
    return page.render("live.html.j2", shown, nothing, policy="connect-src 'self'")
