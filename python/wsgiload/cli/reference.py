"""Writes ``docs/options.md``, the reference of all options, from the commands.

``python -m wsgiload.cli.reference ROOT``, where ROOT is a checkout. A test fails if the page is
stale.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import click

from wsgiload.cli import wsgiload
from wsgiload.cli._options import options_by_name
from wsgiload.options import Section

COMMANDS = ("sweep", "load", "capacity")

_HEADER = """# Options

Generated from the declarations of the options by `make schemas`; do not edit.

The options of `wsgiload sweep`, `load` and `capacity`; `run` and `reproduce` have those of \
`sweep`. An option without a command is of all three. Each can be set by its flag, by the variable \
`WSGILOAD_` and its key in capitals, and by its key in [wsgiload.toml](your-app.md). In Python, \
the keys are the arguments of the functions and the fields of [the options objects](python.md). A \
key is the long flag with `_` for `-`; where it is not, it stands behind the flags.
"""


def options_page() -> str:
    """The content of ``docs/options.md``: a list for each section of the help."""
    parts = [_HEADER]
    for section in get_args(Section):
        parts.append(f"## {section}\n")
        commands_by_text = sorted(_commands_by_text(section).items())
        for (_, flags, text), names in commands_by_text:
            commands = "" if len(names) == len(COMMANDS) else f" ({', '.join(names)})"
            parts.append(f"- {flags}{commands}: {text}")
        parts.append("")
    return "\n".join(parts)


def _commands_by_text(section: str) -> dict[tuple[str, str, str], list[str]]:
    """The commands that have an option with this key, these flags and this help."""
    commands: dict[tuple[str, str, str], list[str]] = {}
    for name in COMMANDS:
        context = click.Context(wsgiload.commands[name])
        for key, option in options_by_name(context.command).items():
            if getattr(option, "section", None) == section:
                _, text = option.get_help_record(context) or ("", "")
                flags = ", ".join(f"`{flag}`" for flag in option.opts)
                if f"--{key.replace('_', '-')}" not in option.opts:
                    flags += f", key `{key}`"
                row = (key, flags, " ".join(text.split()))
                commands.setdefault(row, []).append(name)
    return commands


if __name__ == "__main__":
    (Path(sys.argv[1]) / "docs" / "options.md").write_text(options_page(), encoding="utf-8")
