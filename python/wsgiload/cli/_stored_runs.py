"""Reads the documents of stored runs and reports damaged ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsgiload.documents.codec import read
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.foreign_files import RefusedFile


@contextmanager
def reporting_damage(*runs: Path) -> Iterator[None]:
    """Turn errors from inconsistent documents into a UsageError. A document can match its schema
    and still be impossible, for example with a duplicate cell or a negative duration."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        files = " or ".join(str(run / "summary.json") for run in runs)
        raise UsageError(
            f"{files} is damaged ({type(error).__name__}: {error})",
            "restore it, or measure again",
        ) from error


def read_summary(run: Path) -> Summary:
    """Read the summary of a run directory. Raises UsageError if there is none."""
    return read(Summary, run / "summary.json")


def host_of(run: Path) -> HostFacts | None:
    """The host of a run; None if it is not stored."""
    try:
        return read(RunInfo, run / "run.json").host
    except RefusedFile:
        raise
    except UsageError:
        return None  # a summary can be compared without run.json
