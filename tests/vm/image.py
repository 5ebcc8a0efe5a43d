"""Builds a guest's file system: a minimal Debian (cached), followed by this checkout.

The guest runs this machine's interpreter, virtual environment and sources at the same paths. It has
this machine's distribution and release, so that the C libraries match.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.vm.archive import Archive

PROJECT = Path(__file__).resolve().parents[2]
CACHE = PROJECT / "target" / "vm"
GUEST_FILES = Path(__file__).parent / "guest"
USER = "tester"
USER_ID = 1000
PACKAGES = "systemd,systemd-sysv,dbus-user-session,libpam-systemd,iproute2"
EXCLUDED_FROM_DEBIAN = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*")
KERNEL_PACKAGES = {"debian": "linux-image-cloud-amd64", "ubuntu": "linux-image-virtual"}
# The parts that the tests need.
PROJECT_PARTS = ("python", "servers", "tests", "pyproject.toml", ".venv")
# Files and directories that no test in a guest needs.
EXCLUDED_NAMES = {
    *("test", "idlelib", "ensurepip", "tkinter", "pip", "setuptools"),
    *("mypy", "mypyc", "maturin", "ruff", "target"),
}
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
# The guest has its own C library, of the same release.
C_LIBRARY = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv))\.so.*")


def release() -> tuple[str, str]:
    """The distribution and the code name of its release, such as ``("debian", "bookworm")``."""
    fields = platform.freedesktop_os_release()
    return fields["ID"], fields.get("VERSION_CODENAME", "")


def base_image() -> Path:
    """The cached archive of a minimal Debian without files of this project."""
    codename = release()[1]
    tar, image = CACHE / f"{codename}.tar", CACHE / f"{codename}.cpio"
    if image.exists() and _directories_file(image).exists():
        return image

    CACHE.mkdir(parents=True, exist_ok=True)
    options = ["--quiet", "--variant=minbase", f"--include={PACKAGES}", *_hooks()]
    _run("mmdebstrap", *options, codename, str(tar))

    # Renamed when complete, so that an interrupted build leaves no image.
    unfinished = image.with_suffix(".unfinished")
    with Archive(unfinished) as archive:
        archive.add_tar(tar)
    tar.unlink()
    _directories_file(image).write_text(json.dumps(sorted(archive.directories)))
    unfinished.rename(image)
    return image


def _hooks() -> Iterator[str]:
    for pattern in EXCLUDED_FROM_DEBIAN:
        yield f"--dpkgopt=path-exclude={pattern}"
    yield (
        f'--customize-hook=chroot "$1" useradd --create-home --uid {USER_ID} --shell /bin/sh {USER}'
    )
    # Start the user's service manager at boot, without a login.
    linger = "$1/var/lib/systemd/linger"
    yield f'--customize-hook=mkdir -p "{linger}" && touch "{linger}/{USER}"'
    # Do not empty /tmp at boot: the checkout may be in it.
    yield '--customize-hook=ln -s /dev/null "$1/etc/tmpfiles.d/tmp.conf"'


def _directories_file(image: Path) -> Path:
    return image.with_suffix(".directories")


def kernel() -> Path:
    """The cached kernel of the same release."""
    distribution, codename = release()
    image = CACHE / f"{codename}.kernel"
    if image.exists():
        return image

    CACHE.mkdir(parents=True, exist_ok=True)
    depends = _run("apt-cache", "depends", KERNEL_PACKAGES[distribution])
    dependency = re.search(r"Depends: (linux-image-\S+)", depends)
    if dependency is None:
        raise RuntimeError(f"unknown package {KERNEL_PACKAGES[distribution]}; run: apt-get update")

    for old in CACHE.glob("linux-image-*.deb"):
        old.unlink()
    _run("apt-get", "--quiet=2", "download", dependency[1], cwd=CACHE)
    (package,) = CACHE.glob("linux-image-*.deb")
    image.write_bytes(_packaged_file(package, "/boot/vmlinuz-"))
    package.unlink()
    return image


def _packaged_file(package: Path, name: str) -> bytes:
    """The content of the first file in a Debian package whose path contains ``name``."""
    command = ["dpkg-deb", "--fsys-tarfile", package]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as extraction,
        tarfile.open(fileobj=extraction.stdout, mode="r|") as tar,
    ):
        contents = [
            content.read()
            for member in tar
            if name in member.name and (content := tar.extractfile(member))
        ]
    return contents[0]


def project_image(base: Path, environments: Path) -> Path:
    """Write the archive of the interpreter, the project and the servers' environments."""
    image = CACHE / "project.cpio"
    with Archive(image, set(json.loads(_directories_file(base).read_text()))) as archive:
        for part in PROJECT_PARTS:
            _add(archive, PROJECT / part)
        for directory in (STANDARD_LIBRARY, environments):
            _add(archive, directory)

        programs = [_interpreter(), *_native_modules(archive)]
        for path in _links_to(_interpreter()):
            archive.add_path(path)
        for library in sorted(_libraries(programs)):
            archive.add_path(library)

        for path in sorted(GUEST_FILES.rglob("*")):
            if path.is_file():
                archive.add_path(path, "/" + str(path.relative_to(GUEST_FILES)))
        archive.add("/vm/project", 0o100644, f"{PROJECT}\n{environments}\n".encode())
    return image


def _add(archive: Archive, path: Path) -> None:
    if path.is_dir():
        archive.add_tree(path, _is_included)
    else:
        archive.add_path(path)


def _is_included(path: Path) -> bool:
    is_excluded = path.name in EXCLUDED_NAMES or path.suffix == ".a" or "__mypyc." in path.name
    return not is_excluded and path != STANDARD_LIBRARY / "site-packages"


def _interpreter() -> Path:
    return Path(sys.executable).resolve()


def _links_to(program: Path) -> Iterator[Path]:
    """The program and the symbolic links to it."""
    yield program
    base = Path(sys.base_prefix) / "bin"
    yield from (
        path
        for path in sorted(base.glob("python3*"))
        if path.is_symlink() and path.resolve() == program
    )


def _native_modules(archive: Archive) -> Iterator[Path]:
    """The extension modules in the archive."""
    for directory in sorted(archive.directories):
        if directory.startswith((str(PROJECT), sys.base_prefix + "/lib/python")):
            yield from Path(directory).glob("*.so")


def _libraries(programs: Iterable[Path]) -> set[Path]:
    """The shared libraries that these programs load, under all names that the loader uses."""
    listing = subprocess.run(
        ["ldd", *map(str, programs)], capture_output=True, text=True, check=False
    ).stdout

    libraries = {Path(name) for name in re.findall(r"=> (/\S+)", listing)}
    return {
        Path(os.path.realpath(path.parent)) / name
        for path in libraries
        if not path.is_relative_to(PROJECT) and not C_LIBRARY.fullmatch(path.name)
        for name in {path.name, path.resolve().name}
    }


def _run(*command: str, cwd: Path | None = None) -> str:
    """The output of a command, which must succeed."""
    process = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"{command[0]} failed: {process.stderr.strip()}")
    return process.stdout
