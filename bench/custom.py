"""A generator that this harness does not know, described in a TOML file.

    name = "mine"
    program = "/path/to/mine"
    closed = ["--users", "{connections}", "--for", "{seconds}", "{url}"]
    open = ["--rate", "{rate}", "--users", "{connections}", "--for", "{seconds}", "{url}"]
    requests = 'answered: (\\d+)'
    quantile_unit = "ms"                   # ns, us, ms or s
    quantiles = { "0.5" = 'p50 ([\\d.]+)', "0.99" = 'p99 ([\\d.]+)' }

Either of ``closed`` and ``open`` may be left out, and so may the quantiles.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from bench.generators import Call, Dialect, Generator
from bench.load import Load, Output, OutputError

_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_KEYS = {"name", "program", "closed", "open", "requests", "quantile_unit", "quantiles"}


def read_description(path: Path) -> Generator:
    """The generator that a file describes. ValueError says what is wrong with the file."""
    try:
        described = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    unknown = set(described) - _KEYS
    absent = {"name", "program", "requests"} - set(described)
    if unknown or absent:
        raise ValueError(f"{path}: unknown {sorted(unknown)}, missing {sorted(absent)}")
    if described.get("quantile_unit", "us") not in _MICROSECONDS:
        raise ValueError(f"{path}: quantile_unit is one of {', '.join(_MICROSECONDS)}")
    return Generator(described["name"], _dialect(described), Path(described["program"]))


def _dialect(described: dict[str, Any]) -> Dialect:
    def parse(text: str) -> Output:
        found = re.search(described["requests"], text)
        if found is None:
            raise OutputError(f"{described['name']} printed nothing that fits '{described['requests']}'")
        scale = _MICROSECONDS[described.get("quantile_unit", "us")]
        matches = {name: re.search(pattern, text) for name, pattern in described.get("quantiles", {}).items()}
        return Output(
            requests=int(found[1]),
            quantiles_us={name: float(match[1]) * scale for name, match in matches.items() if match},
        )

    return Dialect(
        described["name"],
        "give its path",
        parse,
        _call(described.get("closed")),
        _call(described.get("open")),
    )


def _call(template: list[str] | None) -> Call | None:
    if template is None:
        return None

    def words(load: Load) -> list[str]:
        values = {
            "url": load.url,
            "connections": load.connections,
            "seconds": load.seconds,
            "rate": load.rate_per_s,
        }
        return [word.format_map(values) for word in template]

    return words
