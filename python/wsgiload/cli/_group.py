"""Lazily imported commands: `wsgiload --help` and `wsgiload load` start without importing the code
of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from wsgiload.cli._help import write_examples


class LazyCommand(NamedTuple):
    """The location of a command, and its line in the program's help."""

    name: str
    module: str
    """The module in ``wsgiload.cli``."""
    attribute: str
    summary: str


class LazyCommands(Mapping[str, click.Command]):
    """Commands by name, in the order of the help. A command is imported on lookup."""

    def __init__(self, members: Sequence[LazyCommand]) -> None:
        self.members = {member.name: member for member in members}

    def __getitem__(self, name: str) -> click.Command:
        member = self.members[name]
        command: click.Command = getattr(
            import_module(f"wsgiload.cli.{member.module}"), member.attribute
        )
        return command

    def get(self, name: str, default: Any = None) -> Any:
        """Unlike ``Mapping.get``, does not treat a KeyError during the import as a missing name."""
        return self[name] if name in self.members else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)


class CommandGroup(click.Group):
    """A group of lazily imported commands whose help starts with examples."""

    commands: Mapping[str, click.Command]  # type: ignore[assignment]  # read-only

    def __init__(
        self,
        *arguments: Any,
        examples: Sequence[str] = (),
        members: Sequence[LazyCommand] = (),
        **attributes: Any,
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.examples = examples
        self.members = members
        self.commands = LazyCommands(members)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, without importing them."""
        if not incomplete or incomplete[0].isalnum():
            return [
                CompletionItem(member.name, help=member.summary)
                for member in self.members
                if member.name.startswith(incomplete)
            ]
        return super().shell_complete(ctx, incomplete)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands in the order of the help."""
        return list(self.commands)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then the description."""
        write_examples(self.examples, formatter)
        super().format_help_text(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line per command without importing it."""
        with formatter.section("Commands"):
            formatter.write_dl([(member.name, member.summary) for member in self.members])
