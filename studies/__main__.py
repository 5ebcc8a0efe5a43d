"""Store the results of `wsgiload reproduce` and write docs/studies.md.

Examples:
    python -m studies store .wsgiload/runs/*      store the newest run of each experiment file
    python -m studies write                       write docs/studies.md and its charts
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from studies.extract import extract
from studies.page import files
from studies.results import StudyRun, read_runs, write_run
from wsgiload.errors import UsageError

ROOT = Path(__file__).parent.parent


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 0: done, 2: usage error or unreadable file."""
    parser = argparse.ArgumentParser(
        prog="python -m studies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True)
    store = actions.add_parser("store", help="store the newest run of each experiment file")
    store.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory")
    actions.add_parser("write", help="write docs/studies.md and its charts")
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the wsgiload checkout (default: this one)"
    )
    arguments = parser.parse_args(words)
    try:
        if arguments.action == "store":
            _store(arguments.root, arguments.runs)
        else:
            _write(arguments.root)
    except UsageError as error:
        print(f"studies: {error}", file=sys.stderr)
        return 2
    return 0


def _store(root: Path, directories: Sequence[Path]) -> None:
    """Of several runs of an experiment file, the last in the list; its name has the latest time."""
    newest: dict[str, StudyRun] = {}
    for directory in directories:
        run = extract(directory, root / "experiments")
        newest[run.name] = run
    for run in newest.values():
        print(f"{run.name}: {write_run(root, run)}")


def _write(root: Path) -> None:
    for path, text in files(read_runs(root)).items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(target)


if __name__ == "__main__":
    sys.exit(main())
