"""Renders a template of this package as one offline page with the embedded front end, and makes the
parts that several pages have: facts, raw files, and the colors of the series.

The content security policy allows only that script, by its hash, so text from a run cannot become
code.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from wsgiload.documents.page_data import PageData
from wsgiload.errors import UsageError
from wsgiload.foreign_files import RUN_FILE, read_file, replace_file
from wsgiload.foreign_text import visible
from wsgiload.report import words
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
    # Panels without data, each with the reason.
    absent: Sequence[str] = ()
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


# Raw files up to this size are embedded, so that a page for nine servers stays below 1 MB.
MAX_DOWNLOAD_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Download:
    """A raw file; without ``uri``, it is not embedded in the page."""

    name: str
    uri: str
    note: str


def facts(values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Names and values as text, for lists such as a plan."""
    return [(_fact_name(name), _fact(name, value)) for name, value in values.items()]


def _fact_name(name: str) -> str:
    """The name without its unit, which the value contains."""
    return name.removesuffix("_bytes").removesuffix("_s").replace("_", " ")


def _fact(name: str, value: object) -> str:
    if value is None:
        return words.MISSING
    if name.endswith("_bytes") and isinstance(value, int | float):
        return words.format_bytes(value)
    if name.endswith("_s") and isinstance(value, int | float):
        return words.format_seconds(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_fact(str(key), item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_fact("", item) for item in value)
    return (
        f"{value:,g}"
        if isinstance(value, int | float) and not isinstance(value, bool)
        else str(value)
    )


def download(path: Path, kind: str) -> Download:
    """A file of the run, embedded in the page if it is small."""
    if not path.exists():
        return Download(path.name, "", "not written by this run")
    size_bytes = path.stat().st_size
    if size_bytes > MAX_DOWNLOAD_BYTES:
        return Download(
            path.name, "", f"{words.format_bytes(size_bytes)}, in the same folder as this page"
        )
    data = base64.b64encode(read_file(RUN_FILE, path)).decode("ascii")
    return Download(path.name, f"data:{kind};base64,{data}", words.format_bytes(size_bytes))


# --- the live page


@dataclass(frozen=True, slots=True)
class LiveShown:
    """The data of ``live.html.j2``."""

    title: str
    palette: Palette


def render_live(command: str) -> str:
    """The page that shows the progress of this command (``--live``); its script requests events."""
    shown = LiveShown(title=f"wsgiload {command}", palette=palette())
    return render("live.html.j2", shown, nothing_drawn(), policy="connect-src 'self'")
