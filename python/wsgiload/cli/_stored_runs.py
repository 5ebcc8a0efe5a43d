"""Reads the documents of stored runs, reports damaged ones, and prints capacity searches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsgiload.analysis.repeats import NOTHING_LEARNED, Learned, Session, learn, session_of
from wsgiload.documents.base import decode_json
from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.codec import read
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.foreign_files import RefusedFile, require_plain
from wsgiload.report import print_capacity, print_capacity_screen, terminal
from wsgiload.results import stored_plan

# Newer runs say more about a host than older ones.
MAX_SIBLINGS = 50
BUNDLED_APPS = ("wsgiload", "catalogue", "apps")


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
    return stored_plan.read_summary(run, is_lean=True)


def host_of(run: Path) -> HostFacts | None:
    """The host of a run; None if it is not stored."""
    try:
        return read(RunInfo, run / "run.json").host
    except RefusedFile:
        raise
    except UsageError:
        return None  # a summary can be compared without run.json


def learned_for(first: Path, second: Path) -> Learned:
    """What the runs in the folders of these two show about the spread between sessions on the host
    of the first. The second one does not count, because it is what the question is about."""
    one = read_session(first)
    if one is None:
        return NOTHING_LEARNED
    known = {run.resolve() for run in (first, second)}
    siblings = {
        run.resolve(): run
        for folder in (first.resolve().parent, second.resolve().parent)
        for run in folder.iterdir()
        if (run / "summary.json").exists() and run.resolve() not in known
    }
    newest = sorted(siblings.values(), key=lambda run: run.name)[-MAX_SIBLINGS:]
    sessions = (read_session(run) for run in newest)
    return learn(one, [session for session in sessions if session is not None])


def read_session(run: Path, summary: Summary | None = None) -> Session | None:
    """A stored sweep as a session; None if it cannot be read or used."""
    try:
        require_plain(run)
        info = read(RunInfo, run / "run.json")
        folder = decode_json(info.plan, dict[str, object]).get("app_dir")
        is_bundled = Path(str(folder)).parts[-len(BUNDLED_APPS) :] == BUNDLED_APPS
        return session_of(summary or read_summary(run), info.host, is_bundled=is_bundled)
    except (UsageError, ValueError, ArithmeticError, LookupError, OSError):
        return None


def print_search(document: CapacityResult, run_dir: Path, *, verbose: bool) -> None:
    """Print the result, with limits and settings from the run directory."""
    if verbose:
        print_capacity(document, terminal())
    else:
        print_capacity_screen(document, _summary(run_dir), terminal())


def _summary(run_dir: Path) -> Summary | None:
    """The summary with the cells of the search; None for a URL, which has no summary."""
    try:
        return read(Summary, run_dir / "summary.json")
    except UsageError:
        return None
