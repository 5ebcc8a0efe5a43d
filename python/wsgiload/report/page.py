"""Renders a template of this package as one offline page, with the built front end inside.

The page allows that one script, by its hash, and nothing else: text from a run cannot become code.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from wsgiload.documents.page_data import PageData
from wsgiload.foreign_text import visible
from wsgiload.report.grids import Grid

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
# Characters that could end a script element.
_ESCAPES = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure of a page; the script draws what it finds under ``name``."""

    name: str
    label: str
    caption: str
    reading: str
    data: Grid
    # A second table, of many small fields.
    fields: Grid | None = None


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """The built front end, as it stands in a page."""

    script: str
    style: str
    policy: str


def nothing_drawn(servers: tuple[str, ...] = ()) -> PageData:
    """The data of a page without any chart; the pages replace what they have."""
    return PageData(
        servers=servers,
        runs_each=1,
        charts=(),
        timelines=(),
        forest=None,
        breakdown=None,
        searches=(),
    )


def render(template: str, page: object, data: PageData, policy: str | None = None) -> str:
    """The template, which reads what it shows from ``page``; its charts draw ``data``. ``policy``
    is what it may do beside that."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("wsgiload.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    built = front_end()
    if policy is not None:
        built = replace(built, policy=f"{built.policy}; {policy}")
    return environment.get_template(template).render(
        page=page, front_end=built, data=embedded(data)
    )


def write(path: Path, text: str) -> Path:
    """Write a page as a whole and return its path."""
    unfinished = path.with_name(f"{path.name}.tmp")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
    return path


def _shown(value: object) -> object:
    """What an expression of a template becomes; the front end is markup, and stays what it is."""
    return visible(value) if type(value) is str else value


def embedded(data: PageData) -> str:
    """The data as JSON that can stand in a script element."""
    text = msgspec.json.encode(_all_shown(msgspec.to_builtins(data))).decode("utf-8")
    return text.translate(_ESCAPES)


def _all_shown(value: object) -> object:
    """The same with all text in it as a page shows it."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _all_shown(part) for key, part in value.items()}
    return [_all_shown(part) for part in value] if isinstance(value, list | tuple) else value


@cache
def front_end() -> FrontEnd:
    """What ``make build`` made of ``frontend/``; without it, a page has its tables only."""
    folder = files("wsgiload.report").joinpath("front_end")
    if not folder.joinpath("page.js").is_file():
        return FrontEnd("", "", _POLICY)

    script = folder.joinpath("page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    style = folder.joinpath("page.css").read_text("utf-8")
    return FrontEnd(script, style, f"{_POLICY}; script-src 'sha256-{digest}'")
