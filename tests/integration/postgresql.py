"""A PostgreSQL server of the test's own: Debian's, on a cluster that is made for it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from wsgiload.serving.launch import free_port

# It refuses to run as root, so root hands it to the user whom nothing else belongs to.
NOBODY = 65534
# Debian leaves the programs of the server out of PATH.
DEBIAN = "usr/lib/postgresql/*/bin"


@dataclass(frozen=True, slots=True)
class Cluster:
    """An initialised cluster, and how its programs are started."""

    folder: Path
    programs: Path
    port: int

    def command(self, *words: object) -> str:
        """One of its programs with these words, as its user."""
        program, *rest = map(str, words)
        return shlex.join([*as_its_user(), str(self.programs / program), *rest])

    @property
    def serve(self) -> str:
        """The command that starts the server in the foreground."""
        return self.command(
            "postgres", "-D", self.folder / "data", "-k", self.folder, "-p", self.port
        )

    @property
    def is_ready(self) -> str:
        """The command that exits with 0 once it accepts queries."""
        return self.command("pg_isready", "-q", "-h", "127.0.0.1", "-p", self.port)


def as_its_user() -> list[str]:
    """What a command line begins with, so that it does not run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def programs_folder() -> Path:
    """Where the server's programs are; without them the test is skipped."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/").glob(DEBIAN))
    if not folders:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return folders[-1]


@contextmanager
def fresh_cluster() -> Iterator[Cluster]:
    """A cluster whose only user is called shop and needs no password."""
    programs = programs_folder()
    # Not below pytest's folder, which only its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        cluster = Cluster(folder, programs, free_port())
        options = ("--username=shop", "--auth=trust", "--no-sync", "--locale=C.UTF-8")
        initdb = cluster.command("initdb", "--pgdata", folder / "data", *options)
        subprocess.run(shlex.split(initdb), cwd="/", check=True, capture_output=True, timeout=120)
        yield cluster
    finally:
        shutil.rmtree(folder)
