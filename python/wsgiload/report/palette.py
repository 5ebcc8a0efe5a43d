"""The colors of the series on light and dark pages.

The front end adds dashes and markers, so that many servers stay distinguishable.
"""

from __future__ import annotations

# Every color has a contrast of at least 3:1 to its background.
LIGHT = (
    "#0072b2",
    "#d55e00",
    "#00896b",
    "#aa4499",
    "#332288",
    "#8a8a1f",
    "#882255",
    "#5a5f69",
    "#1b8fa8",
    "#8c564b",
)
DARK = (
    "#56b4e9",
    "#f28e4b",
    "#3ccfa0",
    "#e28bd6",
    "#a39af5",
    "#d6d65c",
    "#ee7ba6",
    "#b4bac4",
    "#7fe3e3",
    "#cfa58f",
)
Palette = list[tuple[int, str, str]]


def palette() -> Palette:
    """The colors of the series: index, color on light pages, color on dark pages."""
    return [
        (index, light, dark) for index, (light, dark) in enumerate(zip(LIGHT, DARK, strict=True))
    ]
