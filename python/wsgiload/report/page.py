"""Renders a template of this package as one offline page with the embedded front end.

The content security policy allows only that script, by its hash, so text from a run cannot become
code.
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
from wsgiload.errors import UsageError
from wsgiload.foreign_files import replace_file
from wsgiload.foreign_text import visible
from wsgiload.report.grids import Grid

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
# Characters that could end a script element.
_ESCAPES = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure of a page; the script draws the data with this ``name``."""

    name: str
    label: str
    caption: str
    reading: str
    data: Grid
    # A second table with many small fields, such as a heatmap.
    fields: Grid | None = None


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """The built front end, for embedding in a page."""

    script: str
    style: str
    policy: str


def nothing_drawn(servers: tuple[str, ...] = ()) -> PageData:
    """The data of a page without charts; each page replaces the parts that it has."""
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
    """The template rendered with ``page``, with ``data`` for its charts. ``policy`` adds directives
    to the content security policy."""
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
    """Write a page atomically and return its path."""
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", "free disk space there"
        ) from error
    return path


def _shown(value: object) -> object:
    """Escape the text of a template expression. Markup, such as the front end, stays unchanged."""
    return visible(value) if type(value) is str else value


def embedded(data: PageData) -> str:
    """The data as JSON that is safe inside a script element."""
    text = msgspec.json.encode(_all_shown(msgspec.to_builtins(data))).decode("utf-8")
    return text.translate(_ESCAPES)


def _all_shown(value: object) -> object:
    """The value with all text in it escaped."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _all_shown(part) for key, part in value.items()}
    return [_all_shown(part) for part in value] if isinstance(value, list | tuple) else value


@cache
def front_end() -> FrontEnd:
    """The output of ``make front-end``, which is stored in the repository."""
    folder = files("wsgiload.report").joinpath("front_end")
    script = folder.joinpath("page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    style = folder.joinpath("page.css").read_text("utf-8")
    return FrontEnd(script, style, f"{_POLICY}; script-src 'sha256-{digest}'")
