"""Runs Debian's PostgreSQL server on a new cluster for a test."""

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

# PostgreSQL refuses to run as root; tests run as root start it as the user nobody.
NOBODY = 65534
# Debian does not add the server's programs to PATH.
DEBIAN = "usr/lib/postgresql/*/bin"


@dataclass(frozen=True, slots=True)
class Cluster:
    """An initialised cluster, and the commands of its programs."""

    folder: Path
    programs: Path
    port: int

    def command(self, *args: object) -> str:
        """The command line that runs a program with these arguments as the server's user."""
        program, *arguments = map(str, args)
        return shlex.join([*as_server_user(), str(self.programs / program), *arguments])

    @property
    def serve(self) -> str:
        """The command that starts the server in the foreground."""
        return self.command(
            "postgres", "-D", self.folder / "data", "-k", self.folder, "-p", self.port
        )

    @property
    def is_ready(self) -> str:
        """The command that exits with 0 once the server accepts queries."""
        return self.command("pg_isready", "-q", "-h", "127.0.0.1", "-p", self.port)


def as_server_user() -> list[str]:
    """The prefix of a command line that must not run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def programs_folder() -> Path:
    """The directory of the server's programs; skips the test if there is none."""
    initdb = shutil.which("initdb")
    folders = [Path(initdb).resolve().parent] if initdb else sorted(Path("/").glob(DEBIAN))
    if not folders:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return folders[-1]


@contextmanager
def fresh_cluster() -> Iterator[Cluster]:
    """A new cluster, whose only user is named shop and needs no password."""
    programs = programs_folder()
    # Not in pytest's temporary directory, which only its owner can access.
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
