"""Decodes the JSON output of a tool."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from wsgiload.audit.text import CutOff, quoted_end
from wsgiload.documents.typed import decode_json
from wsgiload.errors import UsageError

T = TypeVar("T")
# The length of the quoted end of a truncated file.
MAX_SHOWN_CHARACTERS = 60


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
