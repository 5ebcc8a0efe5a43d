"""Reads numbers and lines from the text output of a tool, and decodes its JSON output."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NoReturn, TypeVar

import msgspec

from wsgiload.audit.run import Part
from wsgiload.documents.audit import ErrorKind, Figures
from wsgiload.documents.base import decode_json
from wsgiload.errors import UsageError
from wsgiload.experiment.redaction import public_url
from wsgiload.foreign_text import quotation
from wsgiload.units import NS_PER_S

T = TypeVar("T")

_UNITS_NS = {
    "ns": 1.0,
    "us": 1e3,
    "µs": 1e3,
    "μs": 1e3,
    "ms": 1e6,
    "s": 1e9,
    "m": 60e9,
    "h": 3600e9,
}
NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
DURATION = rf"(?:{NUMBER}(?:ns|us|µs|μs|ms|s|m|h))+"
_DURATION_PART = re.compile(rf"({NUMBER})(ns|us|µs|μs|ms|s|m|h)")
# The part of a file that is read for a quotation.
MAX_CHARACTERS = 4_000
# The length of the quoted end of a truncated file.
MAX_SHOWN_CHARACTERS = 60
# A number with more digits is not a number of requests.
MAX_DIGITS = 18

# Error messages of Go, Rust and the kernel, by their meaning; the first match counts.
_MESSAGES: tuple[tuple[str, ErrorKind], ...] = (
    (r"too many open files|cannot assign requested address|no buffer space", "client"),
    (r"timeout|timed out|deadline exceeded", "timeout"),
    (r"refused|dial |tcp connect|error trying to connect|client error \(connect\)", "connect"),
    (r"eof|reset by peer|connection closed|incompletemessage|broken pipe", "read"),
)


class CutOff(UsageError):
    """The file ends before the tool had finished."""


def duration_ns(text: str) -> int:
    """``1.05ms``, ``2m30.5s``: nanoseconds."""
    return round(
        sum(float(number) * _UNITS_NS[unit] for number, unit in _DURATION_PART.findall(text))
    )


def seconds_ns(text: str) -> int:
    """A number of seconds in nanoseconds."""
    return round(float(text) * NS_PER_S)


def milliseconds_ns(text: str) -> int:
    """A number of milliseconds in nanoseconds."""
    return round(float(text) * 1e6)


def quoted(content: str) -> str:
    """The beginning of a text from the file: printable, and without passwords and tokens in
    URLs."""
    return quotation(public_url(content[:MAX_CHARACTERS]))


def quoted_end(content: str, max_characters: int) -> str:
    """The end of a text from the file, in the same form."""
    return quotation(public_url(content[-MAX_CHARACTERS:])[-max_characters:])


def count(text: str) -> int:
    """A number of requests."""
    if len(text) > MAX_DIGITS:
        raise UsageError(f"{quoted(text)} is not a number of requests")
    return int(text)


def find(pattern: str, text: str) -> re.Match[str] | None:
    """The first matching line."""
    return re.search(pattern, text, re.MULTILINE)


def find_count(pattern: str, text: str) -> int | None:
    """The number in the first matching line."""
    match = find(pattern, text)
    return None if match is None else count(match[1])


def required(pattern: str, text: str, what: str) -> re.Match[str]:
    """The first matching line. Raises CutOff if there is none."""
    return find(pattern, text) or cut_off(text, what)


def cut_off(text: str, what: str) -> NoReturn:
    """Raise CutOff for a file that ends before this line."""
    lines = text.rstrip().split("\n")
    raise CutOff(
        f"cut off at line {len(lines)} ({quoted(lines[-1])!r}): the line with {what} is missing",
        "repeat the run, or restore the file",
    )


def has_line(pattern: str) -> Callable[[str], bool]:
    """Whether a file has a line like ``pattern``."""
    return lambda content: find(pattern, content) is not None


def each_run(start: str, figures: Callable[[str], Figures]) -> Callable[[str], Sequence[Part]]:
    """Reads the runs in a file, each of which begins with a line like ``start``."""

    def parse(content: str) -> Sequence[Part]:
        begins = [match.start() for match in re.finditer(start, content, re.MULTILINE)]
        pieces = [content[begin:end] for begin, end in pairwise([*begins, len(content)])]
        if len(pieces) == 1:
            return [Part(figures(pieces[0]))]
        return [Part(figures(piece), f"run {place}") for place, piece in enumerate(pieces, start=1)]

    return parse


def kind_of_error(text: str) -> ErrorKind:
    """The meaning of a client's error message."""
    for pattern, kind in _MESSAGES:
        if re.search(pattern, text, re.IGNORECASE):
            return kind
    return "other"


def present(errors: dict[ErrorKind, int]) -> dict[ErrorKind, int]:
    """The kinds that occurred."""
    return {kind: number for kind, number in errors.items() if number > 0}


def decode(content: str, kind: type[T], tool: str) -> T:
    """The content as this type. Raises UsageError for anything else, or CutOff, which quotes the
    end, for a truncated file."""
    try:
        return decode_json(content.strip(), kind)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"not a result of {tool}: {error}", f"write it with {tool}'s own option for JSON"
        ) from error
    except msgspec.DecodeError as error:
        if "truncated" not in str(error):
            raise UsageError(f"not JSON: {error}", "repeat the run, or restore the file") from error
        lines = content.rstrip().split("\n")
        end = quoted_end(lines[-1], MAX_SHOWN_CHARACTERS)
        raise CutOff(
            f"cut off at line {len(lines)} ({end!r}): incomplete JSON",
            "repeat the run, or restore the file",
        ) from error
    except RecursionError as error:
        raise UsageError("not a result: its JSON is nested too deeply") from error
