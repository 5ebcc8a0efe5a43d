"""Cells of large sweeps are stored one by one, and read back with those of summary.json."""

from __future__ import annotations

from pathlib import Path

import msgspec

from wsgiload.documents.cell_result import CellResult
from wsgiload.results.store import MAX_REWRITTEN, RunDirectory
from wsgiload.results.stored_plan import NAME, read_summary

from .invented_cells import runs_of
from .report_fixture import summary_of, write_run


def stored(folder: Path, cells: list[CellResult]) -> RunDirectory:
    directory = RunDirectory(folder, "run", is_resumable=True)
    for count in range(1, len(cells) + 1):
        directory.keep_cell(count, cells[count - 1], lambda: summary_of(cells[:count]))  # noqa: B023
    return directory


def test_every_cell_of_a_killed_run_is_read(tmp_path: Path) -> None:
    cells = runs_of("a", [1e6] * (MAX_REWRITTEN + 3))
    directory = stored(tmp_path, cells)
    assert (directory.path / NAME).read_bytes().count(b"\n") == 3
    assert list(read_summary(directory.path).cells) == cells

    with (directory.path / NAME).open("ab") as file:
        file.write(b'{"id": "half')
    assert list(read_summary(directory.path).cells) == cells

    directory.write_summary(summary_of(cells))
    assert not (directory.path / NAME).exists()
    assert list(read_summary(directory.path).cells) == cells


def test_storing_a_cell_of_many_does_not_rewrite_the_others(tmp_path: Path) -> None:
    directory = stored(tmp_path, runs_of("a", [1e6] * MAX_REWRITTEN))
    before = (directory.path / "summary.json").stat()
    directory.keep_cell(MAX_REWRITTEN + 1, runs_of("b", [1e6])[0], summary_of)
    assert (directory.path / "summary.json").stat().st_mtime_ns == before.st_mtime_ns


def test_a_lean_summary_lacks_only_what_no_report_shows(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    full, lean = (read_summary(tmp_path / "run", is_lean=is_lean) for is_lean in (False, True))
    assert [cell.id for cell in lean.cells] == [cell.id for cell in full.cells]
    assert msgspec.structs.replace(lean, cells=()) == msgspec.structs.replace(full, cells=())
    for one, other in zip(full.cells, lean.cells, strict=True):
        assert one.offered_quantiles_ns == other.offered_quantiles_ns
        if one.response_time_ns is not None and other.response_time_ns is not None:
            assert one.response_time_ns.quantiles == other.response_time_ns.quantiles
            assert other.response_time_ns.hdr_v2 is None
    settings = {id(cell.settings) for cell in lean.cells if cell.settings is not None}
    assert len(settings) <= len({id(cell.settings) for cell in full.cells})
