"""Renders a template of this package as one offline page."""

from __future__ import annotations

from wsgiload.foreign_text import visible
from wsgiload.report import svg

Palette = list[tuple[int, str, str]]


def render(template: str, page: object) -> str:
    """The template, which reads what it shows from ``page``."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("wsgiload.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return visible(environment.get_template(template).render(page=page))


def palette() -> Palette:
    """The colours of the series: index, on a light page, on a dark one."""
    return [
        (index, light, dark)
        for index, (light, dark) in enumerate(zip(svg.PALETTE, svg.DARK_PALETTE, strict=True))
    ]
