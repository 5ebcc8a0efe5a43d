"""Judge and store the results of `wsgiload reproduce`, and write docs/studies.md.

Examples:
    python -m studies judge .wsgiload/runs/RUN    print the judged claims and the original tables
    python -m studies store .wsgiload/runs/*      store the newest run of each experiment file
    python -m studies write                       write docs/studies.md and its charts
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from studies.claims import judged
from studies.extract import extract
from studies.originals import original_of
from studies.page import files
from studies.results import StudyRun, read_runs, write_run
from studies.runs import loads_of
from studies.tables import claims_tables, tables_markdown, tool_tables
from wsgiload import UsageError
from wsgiload.report.cells import read_sweep
from wsgiload.report.run_files import read_run

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
    judge = actions.add_parser("judge", help="print the judged claims and the original tables")
    judge.add_argument("run", type=Path, metavar="RUN", help="run directory")
    actions.add_parser("write", help="write docs/studies.md and its charts")
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the wsgiload checkout (default: this one)"
    )
    arguments = parser.parse_args(words)
    try:
        if arguments.action == "judge":
            _judge(arguments.run)
        elif arguments.action == "store":
            _store(arguments.root, arguments.runs)
        else:
            _write(arguments.root)
    except UsageError as error:
        print(f"studies: {error}", file=sys.stderr)
        return 2
    return 0


def _judge(directory: Path) -> None:
    files = read_run(directory)
    name = files.summary.experiment.name
    original = original_of(directory, name)
    claims = claims_tables(judged(str(name), files.summary, loads_of(files)))
    tables = tool_tables(original.tables, read_sweep(files.summary), loads_of(files))
    print(tables_markdown([*claims, *tables]))


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
