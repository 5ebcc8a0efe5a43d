"""A user who may start no further process gets one line that names the limit."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import wsgiload

NOBODY = 65534
SYSTEM_PYTHON = Path("/usr/bin/python3")
PATHS = [str(Path(wsgiload.__file__).parents[1]), *(p for p in sys.path if "site-packages" in p)]


def as_nobody(limit: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user with few processes; root has no such limit."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        return subprocess.run(
            ["prlimit", f"--nproc={limit}", SYSTEM_PYTHON, "-m", "wsgiload", *words],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd=folder,
            env={
                "HOME": folder,
                "WSGILOAD_CACHE_DIR": folder,
                "PATH": os.environ["PATH"],
                "PYTHONPATH": ":".join(PATHS),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="starts a process of another user")
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 8])
def test_the_limit_on_processes_is_named(limit: int) -> None:
    if as_nobody(4096, "--version").returncode != 0:
        pytest.skip(f"another user cannot run wsgiload with {SYSTEM_PYTHON}")
    server = f"mine={SYSTEM_PYTHON} -m http.server --bind {{host}} {{port}}"
    brief = ["--rates", "20", "-d", "1s", "--warmup", "0s", "--settle", "0s", "--limits", "none"]
    done = as_nobody(limit, "sweep", "--command", server, *brief)
    words = " ".join((done.stdout + done.stderr).split())
    assert done.returncode in (2, 97, 98)
    assert "Traceback" not in words
    assert "ulimit -u 4096" in words, words
