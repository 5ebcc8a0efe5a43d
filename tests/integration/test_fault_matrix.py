"""The rows of the fault matrix that have no module of their own: whatever happens to a sweep,
finished cells stay readable, nothing is left, and the message names the true cause.

``make test-long`` runs all cases, other runs a few, which the seed chooses.
"""

from __future__ import annotations

import codecs
import itertools
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from encodings.aliases import aliases
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.selection import IS_LONG, SEED
from wsgiload.limits.select import bases_of
from wsgiload.limits.sweep import remove_directory
from wsgiload.scratch import scratch_prefix

from .command import SCRIPT, Command, CommandResult, RunningCommand, read_json, until
from .kill_table import (
    CLEANUP_TIMEOUT_S,
    cells_of,
    check_stored_cells,
    leftovers,
    make_template,
    roles_of,
)
from .target import CountingServer

pytestmark = [pytest.mark.servers, pytest.mark.limits, pytest.mark.timeout(3600)]

KILLS = 100 if IS_LONG else 6
PAIRS = 10 if IS_LONG else 1
# Without those that encode bytes, and one that is only defined on Windows.
ENCODINGS = sorted(
    name
    for name in set(aliases.values()) - {"mbcs"}
    if codecs.lookup(name)._is_text_encoding  # type: ignore[attr-defined]
)
BRIEFLY = shlex.split("--duration 300ms --warmup 0s --cooldown 0s --settle 0s --quiet")
THREE_CELLS = ("sweep", "--servers", "wsgiref", "--rates", "40,50,60", *BRIEFLY)
CELLS = ["wsgiref@40#1", "wsgiref@50#1", "wsgiref@60#1"]
STOPPED_S = 5.0
STOPPABLE = ("orchestrator", "generator", "server")
SUBSETS = [subset for count in (1, 2, 3) for subset in itertools.combinations(STOPPABLE, count)]
SUBSETS.append(("worker",))
# A user waits for the stopped worker; others go on. A single server gets all requests.
LOADS = {
    True: "--servers gunicorn --cpus 2 --connections 8",
    False: "--servers waitress --rates 50",
}
# Waits for a load, then uses all memory.
LEAK = """
import os
os.environ["WSGILOAD_OWN_MEMORY"] = "64GiB"
import wsgiload.sweeps.cell as cell
from wsgiload.cli import main

read_listen_queue, ports, leaks = cell.read_listen_queue, [], []

def leak(port):
    ports.append(port)
    while len(ports) > 1:
        leaks.append(bytearray(b"1") * 2**20)
    return read_listen_queue(port)

cell.read_listen_queue = leak
main()
"""


def in_namespace(flags: str, setup: str = ":", program: Sequence[object] = (SCRIPT,)) -> list[str]:
    """A command line that runs the program in a namespace after a shell command; skips the test if
    there is no such namespace."""
    enter = ["unshare", *shlex.split(flags), "/bin/sh", "-c", f'{setup} && exec "$@"', "sh"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"needs root and `unshare {flags}`")
    return [*enter, *map(str, program)]


def words_of(result: CommandResult) -> str:
    """The output without line breaks."""
    return " ".join((result.out + result.err).split())


def runs_of(command: Command) -> list[Path]:
    return list((command.folder / ".wsgiload" / "runs").glob("*"))


def require_readable(command: Command, count: int = 1) -> None:
    """Fail unless there are so many run directories, all complete and intact."""
    runs = runs_of(command)
    assert len(runs) == count
    for run in runs:
        assert cells_of(run) == read_json(run / "summary.json")["order"]
        assert check_stored_cells(run, cells_of(run)) == []


def test_kills_at_random_moments(command: Command, tmp_path: Path) -> None:
    began_s = time.monotonic()
    assert command.run(*THREE_CELLS).code in (0, 98)
    usual_s = time.monotonic() - began_s

    moments, slowest_s, found, resumed = random.Random(SEED), 0.0, 0, 0
    for number in range(KILLS):
        victim = Command(tmp_path / f"kill-{number}")
        limits = moments.choice(["strict", "none"])
        running = victim.start(*THREE_CELLS, "--limits", limits)
        try:
            time.sleep(moments.uniform(0, usual_s))
            os.kill(running.pid, signal.SIGKILL)
            slowest_s = max(slowest_s, seconds_until_clean(victim, running))
            for run in runs_of(victim):
                found += 1
                resumed += require_kept(victim, run)
        finally:
            victim.clean_up()
    sys.stdout.write(
        f"{KILLS} kills: nothing left after at most {slowest_s:.2f} s, {found} runs readable, "
        f"{resumed} resumed\n"
    )


def seconds_until_clean(command: Command, running: RunningCommand) -> float:
    running.process.wait()
    began_s = time.monotonic()
    until(lambda: leftovers(command, running.pid) == [], "the cleanup", CLEANUP_TIMEOUT_S)
    return time.monotonic() - began_s


def require_kept(command: Command, run: Path) -> bool:
    """Finished cells are readable, and a resumed sweep measures only the others; returns whether
    there was something to resume."""
    if not (run / "summary.json").exists():
        refused = command.run("sweep", "--resume", run)
        assert (refused.code, len(refused.messages)) == (2, 1)
        return False
    finished = cells_of(run)
    assert check_stored_cells(run, finished) == []
    if sorted(finished) == CELLS:  # killed after the last cell
        assert command.run("report", run).code in (0, 98)
        return False
    loads = {cell: (run / "load" / f"{cell}.json").read_bytes() for cell in finished}
    assert command.run("sweep", "--quiet", "--resume", run).code in (0, 98)
    assert cells_of(run) == read_json(run / "summary.json")["order"]
    assert sorted(cells_of(run)) == CELLS
    assert loads == {cell: (run / "load" / f"{cell}.json").read_bytes() for cell in finished}
    assert check_stored_cells(run, CELLS) == []
    return True


FULL_DISKS = {
    "runs": (*THREE_CELLS, "--out", "{disk}/runs"),
    "load": ("load", "{url}", "-R", "50", "-d", "300ms", "--json", "{disk}/out.json"),
    "page": ("report", "{disk}/run"),
    "cache": ("sweep", "--servers", "waitress", "--rates", "50", *BRIEFLY),
}


def full_disk(folder: Path, copied: Path | None = None) -> str:
    """A shell command that mounts a full disk, with a copy of a folder."""
    folder.mkdir(exist_ok=True)
    copy = f"cp -r {copied} {folder}/run && " if copied else ""
    mount = f"mount -t tmpfs -o size=2m tmpfs {folder} && {copy}"
    return f"{mount}! dd if=/dev/zero of={folder}/full 2>&-"


@pytest.mark.parametrize("stage", FULL_DISKS)
def test_a_full_disk_is_named(
    stage: str, command: Command, target: CountingServer, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    setup = full_disk(disk, make_template(command) if stage == "page" else None)
    if stage == "cache":
        setup += f" && export WSGILOAD_CACHE_DIR={disk}"

    words = [word.format(disk=disk, url=target.url) for word in FULL_DISKS[stage]]
    result = command.run(*words, program=in_namespace("--mount", setup))

    assert result.code in (2, 97), result.err
    assert "no space left" in words_of(result).lower()
    assert str(disk) in words_of(result)


def test_a_full_disk_for_temporary_files_is_avoided(command: Command) -> None:
    program = in_namespace("--mount", full_disk(command.temporary))
    running = command.start(*THREE_CELLS, program=program)
    assert running.end().code in (0, 98), running.err
    command.require_no_leftovers()
    assert list(Path("/tmp").glob(f"{scratch_prefix(running.pid)}*")) == []
    require_readable(command)


def test_too_few_descriptors_are_refused_before_anything_starts(command: Command) -> None:
    result = command.run(
        "sweep",
        "--servers",
        "wsgiref",
        "--connections",
        "50",
        *BRIEFLY,
        program=["prlimit", "--nofile=100", str(SCRIPT)],
    )
    assert (result.code, runs_of(command)) == (2, [])
    assert "need 114 file descriptors" in words_of(result)
    assert "ulimit -n 114" in words_of(result)


def test_too_few_ports_are_not_blamed_on_the_server(command: Command) -> None:
    port_range = "ip link set lo up && echo 40000 40000 > /proc/sys/net/ipv4/ip_local_port_range"
    result = command.run(*THREE_CELLS, program=in_namespace("--net", port_range))
    assert result.code in (2, 97, 98)
    assert "no free local port" in words_of(result)


def test_too_few_processes_in_the_group_are_named(command: Command) -> None:
    server = f"mine={shlex.quote(sys.executable)} -m http.server --bind {{host}} {{port}}"
    options = ("--command", server, "--rates", 50, "--pids", 1, "--ready-timeout", "10m", *BRIEFLY)
    result = command.run("sweep", *options)
    assert result.code == 97, result.err
    assert "needs more processes or threads than --pids allows" in words_of(result)
    (cell,) = result.cells.values()
    assert cell["failure"]["step"] == "readiness"


@contextmanager
def memory_group(size: int) -> Iterator[Path]:
    """A control group whose processes may use so much memory."""
    for base in bases_of():
        group, limits = base / f"fault-matrix-{os.getpid()}", base / "memory.limit_in_bytes"
        if limits.exists():
            group.mkdir()
            (group / limits.name).write_text(str(size))
            try:
                yield group
            finally:
                until(lambda group=group: remove_directory(group), f"the end of {group}")  # type: ignore[misc]
            return
    pytest.skip("needs a memory controller of cgroup v1")


def test_the_kernel_kills_a_sweep_that_uses_all_memory(command: Command) -> None:
    with memory_group(300 << 20) as group:
        enter = f'echo 0 > {group}/cgroup.procs && exec "$@"'
        program = ["/bin/sh", "-c", enter, "sh", sys.executable, "-c", LEAK]
        running = command.start(*THREE_CELLS, "--limits", "none", program=program)
        assert running.end().code == -signal.SIGKILL
        seconds_until_clean(command, running)
    (run,) = runs_of(command)
    assert len(cells_of(run)) == 1
    assert require_kept(command, run)


@pytest.mark.parametrize("offset_s", [1_000_000, -600])
def test_another_time_namespace(offset_s: int, command: Command) -> None:
    flags = f"--time --fork --boottime={offset_s} --monotonic={offset_s}"
    result = command.run(*THREE_CELLS, program=in_namespace(flags))
    assert result.code in (0, 98), result.err
    assert all(cell["outcomes"]["ok"] > 0 for cell in result.cells.values())
    require_readable(command)


def test_a_sweep_killed_in_another_time_namespace(command: Command) -> None:
    flags = "--time --fork --boottime=1000000 --monotonic=1000000"
    running = command.start(*THREE_CELLS, "--limits", "strict", program=in_namespace(flags))
    until(lambda: any(map(cells_of, runs_of(command))), "the first cell")
    # A child has its parent's command line until it executes another program.
    pid = min(
        pid for pid, line in command.processes().items() if line.split()[1:2] == [str(SCRIPT)]
    )
    os.kill(pid, signal.SIGKILL)
    running.process.wait()
    until(lambda: leftovers(command, pid) == [], "the cleanup", CLEANUP_TIMEOUT_S)
    (run,) = runs_of(command)
    assert require_kept(command, run)


def test_two_sweeps_in_one_folder_at_once(command: Command) -> None:
    for _ in range(PAIRS):
        sweeps = [command.start(*THREE_CELLS) for _ in range(2)]
        assert {sweep.end().code for sweep in sweeps} <= {0, 98}
    command.require_no_leftovers()
    require_readable(command, 2 * PAIRS)


def test_two_resumes_of_one_run(tmp_path: Path) -> None:
    for number in range(PAIRS):
        command = Command(tmp_path / f"pair-{number}")
        run = make_template(command)
        pair = [command.start("sweep", "--quiet", "--resume", run) for _ in range(2)]
        pids = [resume.pid for resume in pair]
        results = [resume.end() for resume in pair]

        (refused,) = [result for result in results if result.code == 2]
        owner = pids[1 - results.index(refused)]
        assert f"is being written by process {owner}" in refused.err
        command.require_no_leftovers()
        require_readable(command)


def test_the_lock_of_a_killed_resume_is_free(command: Command) -> None:
    run = make_template(command)
    first = command.start("sweep", "--quiet", "--resume", run)
    until(lambda: "generator" in roles_of(command.processes(), first.pid), "the load")
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()

    assert command.start("sweep", "--quiet", "--resume", run).end().code in (0, 98)
    seconds_until_clean(command, first)
    require_readable(command)


@pytest.mark.parametrize("is_cold", [False, True])
def test_without_a_network(
    is_cold: bool, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("sweep", "--servers", "waitress", "--rates", 50, *BRIEFLY)
    if is_cold:
        monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(command.folder / "cache"))
    else:
        command.run(*words, "--dry-run")
        assert command.run(*words).code in (0, 98)
    result = command.run(*words, program=in_namespace("--net", "ip link set lo up"))

    if is_cold:
        assert result.code == 97
        assert "waitress cannot be downloaded: no network" in words_of(result)
    else:
        assert result.code in (0, 98), result.err
        assert result.cells["waitress@50#1"]["outcomes"]["ok"] > 0


@pytest.mark.parametrize(
    "stopped", SUBSETS if IS_LONG else [SUBSETS[SEED % len(SUBSETS)]], ids="+".join
)
def test_stopped_processes(stopped: tuple[str, ...], command: Command) -> None:
    options = f"{LOADS['worker' in stopped]} --duration 8s --warmup 0s --cooldown 0s --settle 0s"
    running = command.start("sweep", "--quiet", *shlex.split(options))
    until(lambda: "generator" in roles_of(command.processes(), running.pid), "the load")
    time.sleep(1)
    roles = roles_of(command.processes(), running.pid)
    roles["worker"] = [max(roles["server"], key=cpu_time_s)]
    send(signal.SIGSTOP, roles, stopped)
    time.sleep(STOPPED_S)
    send(signal.SIGCONT, roles, stopped)

    result = running.end()
    command.require_no_leftovers()
    assert result.code in (0, 98), result.err
    require_readable(command)
    (cell,) = result.cells.values()
    sys.stdout.write(f"{stopped}: {cell['verdict']}, {cell['outcomes']}\n")
    require_true_cause(stopped, cell)


def cpu_time_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def send(signal_number: int, roles: dict[str, list[int]], names: Sequence[str]) -> None:
    for name in names:
        for pid in roles[name]:
            os.kill(pid, signal_number)


def require_true_cause(stopped: Sequence[str], cell: dict[str, Any]) -> None:
    verdict = cell["verdict"]
    reasons = {reason["check"]: reason for reason in verdict["reasons"]}
    if "worker" in stopped:
        assert reasons.keys() & {"closed-loop-stalls", "server-stall"}
        return
    assert ("missing-samples" in reasons) == ("orchestrator" in stopped)
    assert (verdict["status"] == "invalid") == ("generator" in stopped)
    # A stopped generator cannot tell whether the server would have responded.
    has_stalled = "server" in stopped and "generator" not in stopped
    assert ("server-stall" in reasons) == has_stalled
    if has_stalled:
        assert STOPPED_S - 0.5 < reasons["server-stall"]["value"] < STOPPED_S + 0.5
        assert "the server gave no response for" in reasons["server-stall"]["message"]
    if "generator" in stopped:
        assert verdict["blame"] == "client"
        assert "the generator stalled" in reasons["client-stalls"]["message"]
    if stopped != ("orchestrator",):  # the stop explains the changes
        assert not reasons.keys() & {"stationarity", "backlog-growth"}


def test_a_report_in_every_encoding(command: Command) -> None:
    assert command.run(*THREE_CELLS).code in (0, 98)
    (run,) = runs_of(command)
    for encoding in ENCODINGS if IS_LONG else random.Random(SEED).sample(ENCODINGS, 5):
        done = subprocess.run(
            [SCRIPT, "report", "--verbose", run],
            capture_output=True,
            check=False,
            env=command.environment | {"PYTHONIOENCODING": encoding},
        )
        assert (done.returncode, done.stderr) == (0, b""), encoding
        assert "wsgiref" in done.stdout.decode(encoding), encoding
