"""The machines of `make test-vm`: what is said where they cannot be run, and what their archives
hold."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.vm import __main__ as guests
from tests.vm.archive import Archive


def entries(archive: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content by name, read as the kernel does."""
    data, found, place = archive.read_bytes(), {}, 0
    while True:
        assert data[place : place + 6] == b"070701"
        fields = [
            int(data[place + 6 + 8 * field : place + 14 + 8 * field], 16) for field in range(13)
        ]
        mode, size, name_length = fields[1], fields[6], fields[11]
        name = data[place + 110 : place + 110 + name_length - 1].decode()
        start = place + (110 + name_length + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, data[start : start + size])
        place = start + (size + 3) // 4 * 4


def test_an_archive_holds_files_links_and_the_folders_above_them(tmp_path: Path) -> None:
    private = tmp_path / "tree/private"
    private.mkdir(parents=True, mode=0o700)
    (private / "file").write_bytes(b"abc")
    (private / "file").chmod(0o600)
    (private / "link").symlink_to("file")
    (private / "left_out").mkdir()
    with Archive(tmp_path / "archive", {"/", str(tmp_path)}) as archive:
        archive.add_tree(tmp_path / "tree", lambda path: path.name != "left_out")
    found = entries(tmp_path / "archive")
    inside = str(private).lstrip("/")
    assert list(found) == [
        str(tmp_path / "tree").lstrip("/"),
        inside,
        f"{inside}/file",
        f"{inside}/link",
    ]
    assert found[f"{inside}/file"] == (stat.S_IFREG | 0o644, b"abc"), (
        "every user of the guest may read it"
    )
    assert stat.S_IMODE(found[inside][0]) == 0o755
    assert found[f"{inside}/link"][1] == b"file" and stat.S_ISLNK(found[f"{inside}/link"][0])


def test_without_qemu_nothing_is_run_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = {"qemu-system-x86_64", "mmdebstrap"}
    monkeypatch.setattr(
        guests.shutil, "which", lambda name: None if name in missing else f"/usr/bin/{name}"
    )
    assert guests.main([]) == 0
    fix = "as root run: apt-get install qemu-system-x86 mmdebstrap"
    assert (
        capsys.readouterr().out == f"test-vm: not run: qemu-system-x86, mmdebstrap missing; {fix}\n"
    )


def test_a_guest_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert guests.main(["windows"]) == 2
    assert (
        capsys.readouterr().out
        == "test-vm: there is no guest windows; choose from direct, systemd, systemd-root\n"
    )
