"""The command line. Results go to standard output, progress and warnings to standard error.

Only this package and ``report`` print, and only this package sets exit codes. Commands are imported
when they are called: `wsgiload --help` and `wsgiload load` start without the code of a sweep.
"""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import FrameType
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from wsgiload.cli._help import write_examples
from wsgiload.cli._output import complain, discard_stdout
from wsgiload.errors import (
    EXIT_INTERRUPTED,
    EXIT_INVALID,
    EXIT_OK,
    EXIT_USAGE,
    UsageError,
    WsgiloadError,
)
from wsgiload.foreign_text import message
from wsgiload.host.memory_guard import (
    VARIABLE,
    guard_memory,
    is_exceeded,
    lift_guard,
    limit_bytes,
    process_limit_error,
)


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


EXIT_CODES = """\b
Exit codes:
  0    valid result (warnings allowed)
  2    usage or configuration error
  97   server did not start, died, was OOM-killed or sent no correct response
  98   measurement invalid, question or threshold undecided, audit findings
  99   threshold or objective not met
  130  interrupted (partial results are kept)"""

EXAMPLES = (
    "wsgiload sweep myapp:app --rates 500,1000,2000",
    "wsgiload load http://127.0.0.1:8000/ -R 500",
    "wsgiload doctor",
)


# In the order of the help, with the main commands first.
COMMANDS = (
    LazyCommand("sweep", "_sweep", "sweep", "Measure and rank servers at several load levels."),
    LazyCommand("run", "_run", "run", "Run an experiment file."),
    LazyCommand("reproduce", "_reproduce", "reproduce", "Repeat a published comparison."),
    LazyCommand("load", "_load", "load", "Generate load against a URL."),
    LazyCommand("capacity", "_capacity", "capacity", "Find the highest rate that meets --slo."),
    LazyCommand("compare", "_compare", "compare", "Compare two stored runs."),
    LazyCommand("report", "_report", "report", "Print results of stored runs and rebuild reports."),
    LazyCommand(
        "import", "_import", "import_group", "Create a targets file from recorded requests."
    ),
    LazyCommand("servers", "_servers", "servers", "List, show, install and check servers."),
    LazyCommand(
        "doctor", "_doctor", "doctor", "List what would disturb measurements on this machine."
    ),
    LazyCommand(
        "calibrate", "_calibrate", "calibrate_command", "Measure this machine's noise floor."
    ),
    LazyCommand("audit", "_audit", "audit", "Find misleading results of other load generators."),
    LazyCommand("explain", "_explain", "explain", "Explain a check or an alarm."),
    LazyCommand("init", "_init", "init", "Write wsgiload.toml for the app in this folder."),
    LazyCommand("completion", "_completion", "completion", "Complete words in a shell at Tab."),
)


@click.group(
    cls=CommandGroup,
    examples=EXAMPLES,
    members=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)
@click.version_option(package_name="wsgiload")
def wsgiload() -> None:
    """Find the WSGI server and settings with the lowest tail latency for your app within your CPU
    and memory limits."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with the documented code. User errors cause no traceback."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    # Sent when the terminal is closed; under nohup, the run continues.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _as_interrupt)
    try:
        guard_memory()
    except UsageError as error:
        sys.exit(_complain(str(error), error.exit_code))
    except RuntimeError as error:
        sys.exit(_system_error(error))
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        words = sys.argv[1:] if arguments is None else arguments
        # The words are kept, so that a command can print itself with another option.
        code = wsgiload.main(words, prog_name="wsgiload", standalone_mode=False, obj=tuple(words))
    except click.UsageError as error:
        return _usage_error(error)
    except click.ClickException as error:
        return _complain(error.format_message(), EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt):
        if is_exceeded():
            return _out_of_memory()
        return _complain("interrupted", EXIT_INTERRUPTED)
    except WsgiloadError as error:
        return _complain(str(error), error.exit_code)
    except MemoryError:
        return _out_of_memory()
    except (BrokenPipeError, SystemExit):  # click exits
        return EXIT_OK  # the reader closed the pipe, such as head
    except OSError as error:
        if _is_closed_terminal(error):
            discard_stdout()
            return EXIT_INTERRUPTED
        return _system_error(error)
    except RuntimeError as error:
        return _system_error(error)
    if is_exceeded():
        return _out_of_memory()
    return code if isinstance(code, int) else EXIT_OK


def _system_error(error: OSError | RuntimeError) -> int:
    """Report an error of the system, and return the exit code. Raises errors of this program."""
    refused = process_limit_error(error)
    if refused is not None:
        return _complain(str(refused), refused.exit_code)
    if isinstance(error, OSError):
        return _complain(_system_words(error), EXIT_USAGE)
    raise error


def _out_of_memory() -> int:
    """Report that the process exceeded its own memory limit, and return the exit code."""
    max_bytes = limit_bytes()
    lift_guard()
    most = "" if max_bytes is None else f" (limit: {max_bytes / 2**30:.1f} GiB)"
    return _complain(
        f"out of memory{most}; completed results are stored; "
        f"file a bug, or set {VARIABLE}=16GiB if the experiment is very large",
        EXIT_INVALID,
    )


def _is_closed_terminal(error: OSError) -> bool:
    """Whether the error is that of writing to a closed terminal."""
    return error.errno == errno.EIO and error.filename is None


def _system_words(error: OSError) -> str:
    """The message of a system error, with the name of the file if there is one."""
    why = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {why}" if error.filename else f"system error: {why}"


def _usage_error(error: click.UsageError) -> int:
    command = error.ctx.command_path if error.ctx else "wsgiload"
    text = error.format_message().rstrip(".")
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(text, err=True)
        return EXIT_USAGE
    return _complain(f"{text}; see `{command} --help`", EXIT_USAGE)


def _complain(text: str, code: int) -> int:
    complain(message(text))  # escapes quoted user input
    return code


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
