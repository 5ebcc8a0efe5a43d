"""Help texts: examples first, then options in sections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, TypeVar, get_args

import click

from wsgiload.errors import UsageError
from wsgiload.options import Section

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Option = Callable[[Decorated], Decorated]

MAX_U64 = 2**64 - 1


class Parsed(click.ParamType[Any]):
    """A value parsed by our own parser, whose UsageError becomes a click error."""

    envvar_list_splitter = "\n"  # header fields contain spaces

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse text; return a parsed value unchanged."""
        if isinstance(value, bool | dict | list):  # only from a configuration file
            self.fail(f"{value!r} is not a valid value", param, ctx)
        if not isinstance(value, str | int | float):
            return value
        try:
            return self.parse(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


class WholeNumber(click.IntRange):
    """An integer in a range. Help and messages state the range in words."""

    name = "integer"
    separator = ","

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert the value; the error message states the range."""
        number: int = click.INT.convert(value, param, ctx)
        is_low = self.min is not None and number < self.min
        is_high = self.max is not None and number > self.max
        if is_low or is_high:
            self.fail(f"{number} is out of range ({self._describe_range()})", param, ctx)
        return number

    def _describe_range(self) -> str:
        """The range for the help, such as "minimum: 1" or "1 to 99"."""
        if self.max is None:
            return f"minimum: {self._written(self.min)}"
        return f"{self._written(self.min)} to {self._written(self.max)}"

    def _written(self, bound: float | None) -> str:
        return "2^64-1" if bound == MAX_U64 else format(bound, self.separator)


class Port(WholeNumber):
    """A TCP port."""

    separator = ""


class SectionOption(click.Option):
    """An option in a section of the help."""

    def __init__(self, *flags: Any, section: Section, **attributes: Any) -> None:
        super().__init__(*flags, **attributes)
        self.section = section


def option(section: Section, *flags: str, **attributes: Any) -> Option[Any]:
    """An option in this section. The help shows its default unless it is a flag or has none."""
    has_default = attributes.get("default") is not None and not attributes.get("is_flag")
    attributes.setdefault("show_default", has_default)
    return click.option(*flags, **{"cls": SectionOption, "section": section, **attributes})


def together(*options: Option[Any]) -> Option[Any]:
    """Combine options into one decorator; the help lists them in this order."""

    def decorate(function: Decorated) -> Decorated:
        for add in reversed(options):
            function = add(function)
        return function

    return decorate


class HelpfulCommand(click.Command):
    """A command whose help starts with examples and groups the options in sections."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.examples = examples

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then the description."""
        write_examples(self.examples, formatter)
        super().format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section; without sections, as click does."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in get_args(Section)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(param, "section", "Options"), []).append(record)
        if not any(sections[name] for name in get_args(Section)):
            super().format_options(ctx, formatter)
            return
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        rare = [param.opts[-1] for param in self.get_params(ctx) if _is_rare(param)]
        if rare:
            with formatter.section("Rarely needed"):
                formatter.write_text("see docs/options.md: " + ", ".join(rare))


def _is_rare(param: click.Parameter) -> TypeGuard[SectionOption]:
    return isinstance(param, SectionOption) and param.hidden


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write the examples at the top of a help text."""
    if examples:
        with formatter.section("Examples"):
            formatter.write("".join(f"  {example}\n" for example in examples))
