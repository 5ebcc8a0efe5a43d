"""Reading stored runs: their documents, and what to say if they are damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsgiload.documents.codec import read
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError


@contextmanager
def sensible(*runs: Path) -> Iterator[None]:
    """Stored documents can be of the right shape and hold what no run has: a cell twice, a time
    before its beginning."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        files = " or ".join(str(run / "summary.json") for run in runs)
        raise UsageError(
            f"{files} is damaged ({type(error).__name__}: {error})",
            "restore it, or measure again",
        ) from error


def read_summary(run: Path) -> Summary:
    """The summary of a run directory; anything else is refused."""
    return read(Summary, run / "summary.json")


def host_of(run: Path) -> HostFacts | None:
    """Where a run was made; None where that is not stored."""
    try:
        return read(RunInfo, run / "run.json").host
    except UsageError:
        return None  # a summary alone can be compared, too
