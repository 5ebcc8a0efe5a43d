"""Every command that wsgiload prints works as printed, in a fresh shell in the same folder.

Commands that measure get ``--dry-run`` appended, and a server is started and then stopped.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.command import SCRIPT
from tests.unit.capacity_fixture import write_search
from tests.unit.report_fixture import write_run
from wsgiload.sampling.listen_queue import listener_pids

from .programs import programs_of

pytestmark = pytest.mark.servers

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""
EXPERIMENT = """
app = "myapp:app"
servers = "waitress"
rates = "20"
duration = "1s"
"""
HAR = """{"log": {"entries": [{"startedDateTime": "2026-11-25T10:15:00Z", "request":
{"method": "GET", "url": "http://127.0.0.1:8000/cart", "headers": []}, "response": {"status": 200}}
]}}"""
OPENAPI = """{"openapi": "3.0.0", "info": {"title": "shop", "version": "1"}, "paths":
{"/cart": {"get": {"responses": {"200": {"description": "ok"}}}}}}"""
ACCESS_LOG = (
    '127.0.0.1 - - [25/Nov/2026:10:15:00 +0000] "GET /cart HTTP/1.1" 200 2 "-" "-"\n'
    '127.0.0.1 - - [25/Nov/2026:10:15:02 +0000] "GET / HTTP/1.1" 200 2 "-" "-"\n'
)
RESULTS = Path(__file__).parents[1] / "integration" / "foreign"
RESULT_OF = {
    "ab.txt": "ab-healthy.txt",
    "hey.txt": "hey-healthy.txt",
    "wrk-100.txt": "wrk-healthy.txt",
    "results/ab.txt": "ab-slow.txt",
}
BRIEFLY = "--rates 20 -d 1s --warmup 0s --cooldown 0s --settle 0s --servers waitress"
# What is printed, by the commands that print it. Fixed run directories are made by ``folder``.
SOURCES = (
    *(f"{name} --help" for name in ("sweep", "load", "capacity", "compare", "report", "run")),
    *(f"{name} --help" for name in ("reproduce", "servers", "explain", "doctor", "calibrate")),
    *(f"import {name} --help" for name in ("har", "access-log", "curl", "openapi")),
    "audit --help",
    "--help",
    "report sweeps/one",
    "report --verbose sweeps/one",
    "report --trend sweeps/one search",
    "compare sweeps/one other",
    "sweep --resume sweeps/one",
    "sweep --nonsense 3",
    "explain",
    "explain nagle",
    "explain contaminated",
    "explain rate-not-reached",
    "reproduce nope",
    "servers show nope",
    "servers show bjoern",
    "doctor",
    "audit ab.txt",
    f"sweep myapp:app {BRIEFLY}",
    f"sweep myapp:app {BRIEFLY} --slo p99<50ms --runs 1",
)
# Words that stand for something else, or only the name of a command, so the text is no command.
PLACEHOLDER = re.compile(
    r"…|\b(?:NAME|URL|RATE|RUN|FILE|HOST|PORT)\b|<|wsgiload (?:capacity|compare|load|report|run)$"
)
PROGRAM = r"(?:\S*/)?wsgiload|\S+ -m wsgiload"
COMMAND = re.compile(
    rf"`((?:{PROGRAM}) [^`]+)`|(?:run|details|results): ((?:{PROGRAM}) .+)$"
    rf"|^\s+(?:\$ )?((?:{PROGRAM}) .+)$",
    re.MULTILINE,
)
MEASURING = {"sweep", "load", "capacity", "calibrate", "reproduce", "run"}
# Usage errors have code 2; every other documented code is the result of a command that ran.
WORKED = {0, 97, 98, 99}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scratch folder with everything that the examples name."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "myapp.py").write_text(APP)
    (folder / "gunicorn.conf.py").write_text("threads = 2\n")
    (folder / "experiment.toml").write_text(EXPERIMENT)
    (folder / "shop.har").write_text(HAR)
    (folder / "shop.targets").write_text("GET http://127.0.0.1:8000/cart\n")
    (folder / "openapi.json").write_text(OPENAPI)
    (folder / "access.log").write_text(ACCESS_LOG)
    (folder / "results").mkdir()
    for name, result in RESULT_OF.items():
        shutil.copy(RESULTS / result, folder / name)
    (folder / "bin").mkdir()
    (folder / "bin" / "gunicorn").symlink_to(programs_of("gunicorn-gthread") / "gunicorn")
    runs = folder / ".wsgiload" / "runs"
    for name in ("BEFORE", "AFTER", "20261125T101500Z-hello-1a2b"):
        write_run(runs / name)
    write_run(folder / "sweeps" / "one")
    write_run(folder / "other", closed_loop=True)
    write_search(folder / "search", servers=("waitress",))
    return folder


def shell(line: str, folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    """Run the line in a fresh shell."""
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=environment(folder, path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def environment(folder: Path, path: str) -> dict[str, str]:
    """The environment of a fresh shell; the cache of servers is that of the tests."""
    kept = {"HOME": os.environ.get("HOME", str(folder)), "COLUMNS": "400", "NO_COLOR": "1"}
    cache = os.environ.get("WSGILOAD_CACHE_DIR")
    programs = f"{path}{os.pathsep}{folder / 'bin'}"
    return kept | {"PATH": programs} | ({"WSGILOAD_CACHE_DIR": cache} if cache else {})


WITHOUT_VENV = os.pathsep.join(("/usr/local/bin", "/usr/bin", "/bin"))
WITH_VENV = f"{SCRIPT.parent}{os.pathsep}{WITHOUT_VENV}"


def printed_by(source: str, folder: Path, path: str) -> list[str]:
    """The commands in the output of this command."""
    done = shell(f"{SCRIPT} {shlex.join(shlex.split(source))}", folder, path)
    text = done.stdout + done.stderr
    assert "Traceback" not in text, text
    found = ["".join(groups) for groups in COMMAND.findall(text)]
    return [one.strip() for one in found if not PLACEHOLDER.search(one)]


def as_tested(line: str) -> str:
    """The line, with ``--dry-run`` if it measures."""
    words = shlex.split(line, comments=True)
    command = next((word for word in words[1:] if word in MEASURING), None)
    measures = command in MEASURING and not {"--help", "--list", "--dry-run"} & set(words)
    # Examples end with a comment on their time.
    body, _, comment = line.partition("  #")
    return f"{body} --dry-run  #{comment}" if measures else line


@pytest.mark.parametrize("source", SOURCES)
def test_a_printed_command_runs_in_a_fresh_shell(source: str, folder: Path) -> None:
    for line in dict.fromkeys(printed_by(source, folder, WITH_VENV)):
        done = shell(as_tested(line), folder, WITH_VENV)
        assert done.returncode in WORKED, f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr


def test_without_the_program_on_the_path_its_path_is_printed(folder: Path) -> None:
    lines = [
        line
        for source in ("sweep --resume sweeps/one", f"sweep myapp:app {BRIEFLY}")
        for line in printed_by(source, folder, WITHOUT_VENV)
    ]
    assert lines
    for line in lines:
        assert shell(as_tested(line), folder, WITHOUT_VENV).returncode in WORKED, line


@pytest.fixture(scope="module")
def user_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new virtual environment, with a ``pip`` that installs into it."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", folder / "user"], check=True)
    return folder / "user" / "bin"


@pytest.mark.parametrize("server", ["waitress", "gunicorn-gthread", "cheroot", "bjoern"])
def test_the_printed_commands_install_and_start_the_server(
    server: str, folder: Path, user_venv: Path
) -> None:
    swept = shell(f"{SCRIPT} sweep myapp:app {BRIEFLY} --servers {server}", folder, WITH_VENV)
    block = swept.stdout.partition(f"To run {server} yourself:\n")[2]
    commands = re.match(r"(?:  .+\n)+", block)
    assert commands is not None, swept.stdout + swept.stderr
    lines = [line.strip() for line in commands[0].splitlines()]
    assert lines[0].startswith(("pip install ", "apt-get install "))

    path = f"{user_venv}{os.pathsep}{WITH_VENV}"
    start = next(line for line in lines if "8000" in line)
    for line in lines[: lines.index(start)]:
        if line.startswith("apt-get"):
            continue
        done = shell(line, folder, path)
        assert done.returncode == 0, done.stderr
    with started(start, folder, path):
        pass


class started:
    """The server of a printed command, until the block ends; it must listen on port 8000."""

    def __init__(self, line: str, folder: Path, path: str) -> None:
        if listener_pids(8000) != set():
            pytest.skip("another program listens on port 8000")
        self.process = subprocess.Popen(
            ["sh", "-c", line],
            cwd=folder,
            env=environment(folder, path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> None:
        until = time.monotonic() + 20
        while listener_pids(8000) == set() and time.monotonic() < until:
            assert self.process.poll() is None, "the command ended"
            time.sleep(0.05)
        assert listener_pids(8000) != set(), "the server does not listen"

    def __exit__(self, *_: object) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def test_the_sources_print_commands(folder: Path) -> None:
    """Most of them; otherwise the test above would check nothing."""
    counts = [len(printed_by(source, folder, WITH_VENV)) for source in SOURCES[:24]]
    assert sum(count > 0 for count in counts) >= 15
