"""Every kind of file from elsewhere with every fault: refused in one line, soon, with little memory,
and nothing outside of the directory is read or written."""

from __future__ import annotations

import ctypes
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wsgiload
from wsgiload import cli, foreign_files
from wsgiload.errors import EXIT_OK, EXIT_USAGE, UsageError
from wsgiload.foreign_files import KINDS, replace_file, write_named

from .foreign_matrix import SECRET, USES, faults_of
from .report_fixture import write_run

MAX_S = 5
MAX_BYTES = 200 << 20
ROOT = Path(__file__).parents[2]
# Who may read files without the bounds, and why.
OWN_READERS = {
    "cli/_completion.py": "regular files of the current folder, when Tab is pressed",
    "cli/_init.py": "a regular file of the user's app, and the file that it creates",
    "cli/reference.py": "the documentation of this repository",
    "cli/_live_page.py": "the page that this command wrote",
    "documents/generate.py": "the documentation of this repository",
    "documents/schema/__init__.py": "files of this package",
    "experiment/redaction.py": "the key in the user's cache",
    "experiment/unused_settings.py": "a file of the installed app",
    "report/page.py": "files of this package",
    "report/terminal.py": "the null device",
    "cli/_output.py": "the null device",
    "results/run_lock.py": "locks the run directory and reads nothing of it",
    "results/store.py": "appends to a file of the run",
}


def without_override() -> None:
    """Give up root's permission to read every file, before the child starts."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.parametrize("name", USES)
def test_every_fault_of_a_file_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    use = USES[name]
    command = [sys.executable, "-m", "tests.unit.foreign_matrix", name, str(tmp_path)]

    completed = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        preexec_fn=without_override if os.geteuid() == 0 else None,
    )

    outcomes = json.loads(completed.stdout)
    assert set(outcomes) == set(faults_of(use))
    accepted = {"none"} | ({"link inside", "link outside"} if use.kind.is_named else set())
    for fault, outcome in outcomes.items():
        described = f"{fault}: {outcome}"
        assert outcome["seconds"] < MAX_S, described
        assert outcome["peak_bytes"] < MAX_BYTES, described
        if fault in accepted:
            assert outcome["code"] == EXIT_OK, described
        else:
            assert outcome["code"] == EXIT_USAGE, described
            assert outcome["errors"].count("\n") == 1, described
            assert Path(use.path).name in outcome["errors"], described


def test_every_kind_is_in_the_matrix() -> None:
    assert {use.kind for use in USES.values()} == set(KINDS)


def test_no_other_module_reads_files_from_elsewhere() -> None:
    package = Path(wsgiload.__file__).parent
    folders = "api analysis audit capacity_search cli documents experiment loads report results"
    sources = [path for folder in folders.split() for path in package.glob(f"{folder}/**/*.py")]
    readers = {
        str(path.relative_to(package))
        for path in sources
        if re.search(r"\.read_(text|bytes)\(|\bopen\(", path.read_text())
    }
    assert readers == set(OWN_READERS)


@pytest.mark.parametrize("name", ["report.html", "report.html.tmp", "resources.csv", "load/a.json"])
@pytest.mark.parametrize(
    "command",
    [("report", "run"), ("compare", "run", "run"), ("report", "--trend", "run", "run/../run"), ("sweep", "--resume", "run")],
    ids=" ".join,
)  # fmt: skip
def test_a_run_directory_with_a_link_is_neither_read_nor_written(
    name: str,
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run = write_run(tmp_path / "run")
    outside = tmp_path / "authorized_keys"
    outside.write_text(SECRET)
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(outside)
    before = sorted(run.rglob("*"))

    assert cli.run(list(command)) == EXIT_USAGE

    captured = capsys.readouterr()
    assert f"run/{name} is a link, not a file" in captured.err
    assert SECRET not in captured.out + captured.err
    assert outside.read_text() == SECRET
    assert sorted(run.rglob("*")) == before


def test_a_replaced_link_is_not_followed(tmp_path: Path) -> None:
    outside, link = tmp_path / "outside", tmp_path / "page.html"
    outside.write_text(SECRET)
    link.symlink_to(outside)

    replace_file(link, b"new")

    assert (link.read_text(), link.is_symlink(), outside.read_text()) == ("new", False, SECRET)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(0o600)

    write_named(path, b"new")

    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_failed_write_names_the_file_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.mkdir()  # which no file replaces

    with pytest.raises(OSError, match=r"a\.json") as raised:
        replace_file(path, b"new")

    assert raised.value.filename == str(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_result_may_go_to_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        write_named(pipe, b"new")
        assert reader.stdout is not None
        assert reader.stdout.read() == b"new"
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["har", "targets", "access-log", "headers"])
def test_a_file_may_be_a_pipe_with_a_slow_writer(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = USES[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(foreign_files, "_WRITER_MS", 100)
    os.mkfifo(use.path)
    script = 'exec 3>"$0"; sleep 0.5; printf "%s" "$1" >&3'
    with subprocess.Popen(["bash", "-c", script, use.path, str(use.content)]):
        assert cli.run(list(use.arguments)) == EXIT_OK


def test_a_bound_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fields"
    path.write_bytes(b"x" * (foreign_files.VARIABLES.max_bytes + 1))
    with pytest.raises(UsageError, match=r"larger than 1 MiB; .* WSGILOAD_FILE_BOUNDS=4 "):
        foreign_files.read_file(foreign_files.VARIABLES, path)

    monkeypatch.setenv(foreign_files.MULTIPLIER, "4")
    content = foreign_files.read_file(foreign_files.VARIABLES, path)
    assert len(content) == path.stat().st_size

    monkeypatch.setenv(foreign_files.MULTIPLIER, "0")
    with pytest.raises(UsageError, match="is not a whole number above 0"):
        foreign_files.read_file(foreign_files.VARIABLES, path)


def test_configuration_may_begin_with_a_byte_order_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wsgiload.toml").write_bytes(b"\xef\xbb\xbftimeout = '9s'\n")
    assert cli.run(["load", "http://127.0.0.1:9/", "--dry-run", "--json", "-"]) == EXIT_OK


def test_packed_files_are_read_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("har", "openapi", "access-log"):
        use = USES[name]
        packed = gzip.compress(str(use.content).encode())
        Path(use.path).write_bytes(packed)
        assert cli.run(list(use.arguments)) == EXIT_OK

    Path("a.har").write_bytes(gzip.compress(str(USES["har"].content).encode())[:-9])
    assert cli.run(list(USES["har"].arguments)) == EXIT_USAGE
    assert "the end of a.har is missing" in capsys.readouterr().err

    monkeypatch.setattr(foreign_files, "_MAX_COPIED_BYTES", 2 * foreign_files.MIB)
    for content, message in (
        (b"x" * (foreign_files.MIB + 1), "a.log has a line of more than 1 MiB"),
        (b"x\n" * (foreign_files.MIB + 1), "a.log has more than 2 MiB"),
    ):
        Path("a.log").write_bytes(gzip.compress(content))
        assert cli.run(list(USES["access-log"].arguments)) == EXIT_USAGE
        assert message in capsys.readouterr().err
