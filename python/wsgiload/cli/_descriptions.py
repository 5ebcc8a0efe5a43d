"""Help texts of options, taken from the docstrings of the options objects in the Python API.

The command line and editors thus show the same texts.
"""

from __future__ import annotations

import inspect
import re
from functools import cache

_FIELD = re.compile(r"^ {4}(\w+): (.*)$")
_DEFAULT = re.compile(r"\s*Default: (.*)\.$")


@cache
def descriptions(kind: type) -> dict[str, str]:
    """The descriptions in the ``Args`` section of a docstring, by field; none without docstrings
    (``python -OO``)."""
    _, _, section = (inspect.getdoc(kind) or "").partition("Args:\n")
    fields: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        start = _FIELD.match(line)
        if start:
            name = start[1]
            fields[name] = start[2]
        elif line.startswith("        "):
            fields[name] += f" {line.strip()}"
        else:
            break
    return fields


def described(kind: type, field: str, default: str | None = None) -> str:
    """The help text of a field's option. A default in words is formatted like click's defaults;
    ``default`` replaces it."""
    text = descriptions(kind).get(field, "")
    return _DEFAULT.sub(lambda found: f"  [default: {default or found[1]}]", text)
