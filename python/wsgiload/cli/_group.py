"""The program's commands, each imported only when it is used: `wsgiload --help` and `wsgiload load`
start without the code of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click

from wsgiload.cli._help import write_examples


class LazyCommand(NamedTuple):
    """Where a command is defined, and its line in the help of the program."""

    name: str
    module: str
    """In ``wsgiload.cli``."""
    attribute: str
    summary: str


class LazyCommands(Mapping[str, click.Command]):
    """Commands by name, in the order of the help; each is imported when it is looked up."""

    def __init__(self, members: Sequence[LazyCommand]) -> None:
        self.members = {member.name: member for member in members}

    def __getitem__(self, name: str) -> click.Command:
        member = self.members[name]
        command: click.Command = getattr(
            import_module(f"wsgiload.cli.{member.module}"), member.attribute
        )
        return command

    def get(self, name: str, default: Any = None) -> Any:
        """Unlike that of a mapping, it does not take a KeyError of the import for a missing name."""
        return self[name] if name in self.members else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)


class CommandGroup(click.Group):
    """A group of lazily imported commands, whose help opens with examples."""

    commands: Mapping[str, click.Command]  # type: ignore[assignment]  # none is added later

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

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the help."""
        return list(self.commands)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, then the description."""
        write_examples(self.examples, formatter)
        super().format_help_text(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line per command, from its entry: nothing is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(member.name, member.summary) for member in self.members])
