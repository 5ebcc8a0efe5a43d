"""Every error that wsgiload raises on purpose, and the exit code of the command for each.

    WsgiloadError
    ├── UsageError            2   a flag, a plan, a name or a configuration file that cannot be used
    │   └── LimitsError       2   a requested limit that this machine or user cannot enforce
    ├── ServerError          97   a server under test could not be built, started or kept alive
    │   ├── ProvisionError   97   its environment could not be built
    │   └── AppImportError   97   the app exists but importing it fails
    └── LoadError            98   the load generator could not carry out the plan

A message has a cause and, if known, a fix: a command or an option.
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
    """Base of all: ``cause`` says what is wrong, ``fix`` what to do about it."""

    exit_code = EXIT_USAGE

    def __init__(self, cause: str, fix: str | None = None) -> None:
        # Either may quote what an app raised or a server sent.
        self.cause = message(cause)
        self.fix = None if fix is None else message(fix)
        super().__init__(self.cause, self.fix)

    def __str__(self) -> str:
        return f"{self.cause}; {self.fix}" if self.fix else self.cause


class UsageError(WsgiloadError):
    """A flag, a plan, a name or a configuration file that cannot be used."""


class LimitsError(UsageError):
    """A requested limit that this machine or this user cannot enforce."""


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
    """The environment of a server could not be made."""


class AppImportError(ServerError):
    """The app exists but fails while it is imported."""


class LoadError(WsgiloadError):
    """The load generator could not carry out the plan."""

    exit_code = EXIT_INVALID


def require(holds: bool, cause: str, fix: str | None = None) -> None:
    """Refuse what cannot be used."""
    if not holds:
        raise UsageError(cause, fix)
