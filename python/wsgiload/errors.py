"""The errors that wsgiload raises deliberately, and their exit codes.

    WsgiloadError
    ├── UsageError            2   an invalid option, plan, name or configuration file
    │   └── LimitsError       2   a requested limit that this machine or user cannot enforce
    ├── ServerError          97   a server under test could not be built, started or kept alive
    │   ├── ProvisionError   97   its environment could not be built
    │   └── AppImportError   97   the app exists but importing it fails
    └── LoadError            98   the load generator could not carry out the plan

A message states the cause and, if known, the fix: a command or an option.
"""

from __future__ import annotations

from wsgiload.foreign_text import message, tail

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_SERVER = 97
EXIT_INVALID = 98
EXIT_THRESHOLD = 99
EXIT_INTERRUPTED = 130


class WsgiloadError(Exception):
    """Base class of all errors. ``cause`` says what is wrong, ``fix`` how to correct it."""

    exit_code = EXIT_USAGE

    def __init__(self, cause: str, fix: str | None = None) -> None:
        # Both may quote text from an app or a server.
        self.cause = message(cause)
        self.fix = None if fix is None else message(fix)
        super().__init__(self.cause, self.fix)

    def __str__(self) -> str:
        return f"{self.cause}; {self.fix}" if self.fix else self.cause


class UsageError(WsgiloadError):
    """An invalid option, plan, name or configuration file."""


class LimitsError(UsageError):
    """A requested limit that this machine or user cannot enforce."""


class ServerError(WsgiloadError):
    """A server under test could not be built, started or kept alive."""

    exit_code = EXIT_SERVER

    def __init__(
        self, cause: str, fix: str | None = None, *, step: str = "server", log_tail: str = ""
    ) -> None:
        super().__init__(cause, fix)
        self.step = step
        self.log_tail = tail(log_tail)


class ProvisionError(ServerError):
    """The environment of a server could not be built."""


class AppImportError(ServerError):
    """The app exists but importing it fails."""


class LoadError(WsgiloadError):
    """The load generator could not carry out the plan."""

    exit_code = EXIT_INVALID


def require(holds: bool, cause: str, fix: str | None = None) -> None:
    """Raise UsageError unless the condition holds."""
    if not holds:
        raise UsageError(cause, fix)
