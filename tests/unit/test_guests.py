"""The virtual machines of `make test-vm`: the archives of their files, and what is reported if they
cannot be run."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.vm import __main__ as guests
from tests.vm.archive import Archive


def entries(archive: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each file by its name, parsed as the kernel does."""
    data, files, offset = archive.read_bytes(), {}, 0
    while True:
        assert data[offset : offset + 6] == b"070701"
        fields = [
            int(data[offset + 6 + 8 * field : offset + 14 + 8 * field], 16) for field in range(13)
        ]
        mode, size, name_length = fields[1], fields[6], fields[11]
        name = data[offset + 110 : offset + 110 + name_length - 1].decode()
        start = offset + (110 + name_length + 3) // 4 * 4
        if name == "TRAILER!!!":
            return files
        files[name] = (mode, data[start : start + size])
        offset = start + (size + 3) // 4 * 4


def test_an_archive_contains_files_links_and_their_parent_directories(tmp_path: Path) -> None:
    private = tmp_path / "tree/private"
    private.mkdir(parents=True, mode=0o700)
    (private / "file").write_bytes(b"abc")
    (private / "file").chmod(0o600)
    (private / "link").symlink_to("file")
    (private / "excluded").mkdir()
    with Archive(tmp_path / "archive", {"/", str(tmp_path)}) as archive:
        archive.add_tree(tmp_path / "tree", lambda path: path.name != "excluded")
    archived = entries(tmp_path / "archive")
    directory = str(private).lstrip("/")

    assert list(archived) == [
        str(tmp_path / "tree").lstrip("/"),
        directory,
        f"{directory}/file",
        f"{directory}/link",
    ]
    assert archived[f"{directory}/file"] == (stat.S_IFREG | 0o644, b"abc"), (
        "every user of the guest must be able to read it"
    )
    assert stat.S_IMODE(archived[directory][0]) == 0o755
    assert archived[f"{directory}/link"][1] == b"file" and stat.S_ISLNK(
        archived[f"{directory}/link"][0]
    )


def test_without_qemu_the_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = {"qemu-system-x86_64", "mmdebstrap"}
    monkeypatch.setattr(
        guests.shutil, "which", lambda name: None if name in missing else f"/usr/bin/{name}"
    )

    assert guests.main([]) == 0
    packages = "qemu-system-x86 mmdebstrap"
    assert capsys.readouterr().out == (
        f"test-vm: not run: missing packages; as root run: apt-get install {packages}\n"
    )


def test_an_unknown_guest_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert guests.main(["windows"]) == 2
    assert (
        capsys.readouterr().out
        == "test-vm: unknown guest windows; choose from direct, systemd, systemd-root\n"
    )
