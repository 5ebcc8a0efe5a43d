"""Any other generator, described in a TOML file.

    name = "mine"
    program = "/path/to/mine"
    closed = ["--users", "{connections}", "--for", "{seconds}", "{url}"]
    open = ["--rate", "{rate}", "--users", "{connections}", "--for", "{seconds}", "{url}"]
    requests = 'answered: (\\d+)'
    quantile_unit = "ms"                   # ns, us, ms or s
    quantiles = { "0.5" = 'p50 ([\\d.]+)', "0.99" = 'p99 ([\\d.]+)' }

Either ``closed`` or ``open`` can be omitted; the quantiles are optional.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from bench.generators import Call, Dialect, Generator, find_program
from bench.load import Load, Output, OutputError

_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_KEYS = {"name", "program", "closed", "open", "requests", "quantile_unit", "quantiles"}


def read_description(path: Path) -> Generator:
    """The generator that a file describes. Raises ValueError with the reason if the file is not
    valid."""
    try:
        described = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    unknown = set(described) - _KEYS
    missing = {"name", "program", "requests"} - set(described)
    wrong_keys = [f"unknown key {key}" for key in sorted(unknown)]
    wrong_keys += [f"missing key {key}" for key in sorted(missing)]
    if wrong_keys:
        raise ValueError(f"{path}: {', '.join(wrong_keys)}")
    if described.get("quantile_unit", "us") not in _MICROSECONDS:
        raise ValueError(f"{path}: quantile_unit must be one of {', '.join(_MICROSECONDS)}")
    try:
        return Generator(described["name"], _dialect(described), _program(described["program"]))
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: {error}") from None


def _program(name: str) -> Path:
    program = find_program(name)
    if program is None:
        raise ValueError(f"program {name!r} does not exist or is not executable")
    return program.absolute()


def _pattern(key: str, text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ValueError(f"{key}: {text!r} is not a regular expression: {error}") from None
    if not pattern.groups:
        raise ValueError(f"{key}: {text!r} has no group (...) around the number")
    return pattern


def _dialect(described: dict[str, Any]) -> Dialect:
    requests = _pattern("requests", described["requests"])
    quantiles = {
        name: _pattern(f"quantile {name}", text)
        for name, text in described.get("quantiles", {}).items()
    }

    def parse(text: str) -> Output:
        count = requests.search(text)
        if count is None:
            raise OutputError(
                f"the output of {described['name']} does not match '{described['requests']}'"
            )
        scale = _MICROSECONDS[described.get("quantile_unit", "us")]
        matches = {name: pattern.search(text) for name, pattern in quantiles.items()}
        return Output(
            requests=int(count[1]),
            quantiles_us={
                name: float(match[1]) * scale for name, match in matches.items() if match
            },
        )

    return Dialect(
        described["name"],
        "set its path in the description",
        parse,
        _call("closed", described.get("closed")),
        _call("open", described.get("open")),
    )


def _call(key: str, template: list[str] | None) -> Call | None:
    if template is None:
        return None
    if not isinstance(template, list) or not all(isinstance(word, str) for word in template):
        raise ValueError(
            f"{key} must be a list of words, such as ['--users', '{{connections}}', '{{url}}']"
        )

    def words(load: Load) -> list[str]:
        values = {
            "url": load.url,
            "connections": load.connections,
            "seconds": load.seconds,
            "rate": load.rate_per_s,
        }
        return [word.format_map(values) for word in template]

    try:
        words(Load("http://127.0.0.1/", 1, 1, 1))
    except LookupError as error:
        known = "{url}, {connections}, {seconds} and {rate}"
        raise ValueError(
            f"{key}: unknown placeholder {{{error.args[0]}}}; known are {known}"
        ) from None
    return words
