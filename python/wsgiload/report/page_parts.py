"""Parts of several pages: lists of facts, and raw files."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wsgiload.foreign_files import RUN_FILE, read_file
from wsgiload.report import words

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
