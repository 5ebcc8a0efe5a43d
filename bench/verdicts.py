"""Tests verdicts and error budgets with known disturbances, against a server that logs its times.

Examples:
    python -m bench.verdicts                 six servers, with and without nine disturbances
    python -m bench.verdicts --rounds 2      the same, twice
    python -m bench.verdicts --idle          undisturbed loads only: how many are invalid?

The true time of a request is the time in the server's log, from the kernel's timestamp of the
request to the write of its response. A figure is *wrong* if it differs from the true value by more
than 10 % and 100 µs. Prints one line per load, and then:

- how many of the bounded figures are outside their band;
- how many loads are invalid, of those whose generator was stopped, starved or out of resources;
- how many of the invalid loads are wrong;
- how wide the band of undisturbed loads is, relative to the sampling interval.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.placement import ORDINARY_NICENESS, choose_cores, real_time_permitted

Json = dict[str, Any]

QUANTILES = (0.5, 0.9, 0.95, 0.99)
JUDGED = (0.5, 0.99)
OFF_SHARE, OFF_NS = 0.10, 100_000
DURATION_S = 3.0
START_S = 0.25
TARGET = Path(__file__).parents[1] / "target" / "distribution"
CGROUP_CPU = Path("/sys/fs/cgroup/cpu")


@dataclass(frozen=True, slots=True)
class Served:
    """A distribution of delays by the server, and the rate of the load."""

    name: str
    hold: str
    rate: int


@dataclass(slots=True)
class Running:
    """A running load, which a disturbance acts on."""

    client: subprocess.Popen[bytes]
    server: subprocess.Popen[bytes]
    cores: tuple[int, int]
    hogs: list[subprocess.Popen[bytes]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A disturbance of a load. ``unbounded``: the generator is stopped, starved or out of
    resources, so the error has no bound."""

    name: str
    unbounded: bool
    act: Callable[[Running], None]
    prepare: Callable[[], None] | None = None
    # No effect on a real-time process: it ignores CFS quotas and preempts SCHED_OTHER processes.
    needs_ordinary: bool = False

    @property
    def is_none(self) -> bool:
        """Whether the load is undisturbed."""
        return self.act is nothing and self.prepare is None


def weibull(shape: float, scale_ms: float, seed: int) -> str:
    """A list of delays with a Weibull distribution."""
    draw = random.Random(seed)
    return "list:" + ",".join(f"{draw.weibullvariate(scale_ms, shape):.3f}ms" for _ in range(997))


def uniform(low_ms: float, high_ms: float, seed: int) -> str:
    """A list of delays with a uniform distribution."""
    draw = random.Random(seed)
    return "list:" + ",".join(f"{draw.uniform(low_ms, high_ms):.3f}ms" for _ in range(997))


SERVERS = (
    Served("weibull", weibull(0.8, 4.0, 1), 800),
    Served("uniform", uniform(0.3, 2.5, 2), 1500),
    Served("exponential", "exp:6ms", 500),
    Served("two modes", "bimodal:2ms,30ms,40", 1000),
    Served("heavy tail", "pareto:2.2,1ms,2s", 1000),
    Served("narrow", uniform(9.0, 11.0, 3), 400),
)


# --- disturbances


def nothing(running: Running) -> None:
    """An undisturbed load."""


def stop_client(*pauses_s: float) -> Callable[[Running], None]:
    """Stop the generator for these times, spread evenly over the load."""

    def act(running: Running) -> None:
        for pause_s in pauses_s:
            time.sleep(DURATION_S / (len(pauses_s) + 2))
            running.client.send_signal(signal.SIGSTOP)
            time.sleep(pause_s)
            running.client.send_signal(signal.SIGCONT)

    return act


def stop_server(pause_s: float) -> Callable[[Running], None]:
    """Stop the server once. Its log contains this delay."""

    def act(running: Running) -> None:
        time.sleep(DURATION_S / 2)
        running.server.send_signal(signal.SIGSTOP)
        time.sleep(pause_s)
        running.server.send_signal(signal.SIGCONT)

    return act


def hog(place: int, length_s: float, *, urgent: bool = False) -> Callable[[Running], None]:
    """Run another process on the generator's core (0) or on the server's (1)."""

    def act(running: Running) -> None:
        time.sleep(0.5)
        core = running.cores[place]

        def before() -> None:
            os.sched_setaffinity(0, [core])
            if urgent:
                os.setpriority(os.PRIO_PROCESS, 0, -20)

        process = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=before)
        running.hogs.append(process)
        time.sleep(length_s)
        process.kill()
        process.wait()

    return act


def few_files() -> None:
    """The generator can open only six connections."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (70, 70))


@contextlib.contextmanager
def quota(share: float) -> Iterator[Callable[[Running], None]]:
    """A cgroup (v1) with this share of a core for the generator."""
    group = CGROUP_CPU / f"bench-verdicts-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text(str(int(100_000 * share)))

        def act(running: Running) -> None:
            (group / "cgroup.procs").write_text(str(running.client.pid))

        yield act
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.05)


def disturbances(throttle: Callable[[Running], None] | None) -> list[Disturbance]:
    """Every disturbance that is possible on this machine."""
    possible = [
        Disturbance("nothing", False, nothing),
        Disturbance("nothing again", False, nothing),
        Disturbance("client stopped 8 ms, twice", False, stop_client(0.008, 0.008)),
        Disturbance("client stopped 120 ms, three times", True, stop_client(0.12, 0.12, 0.12)),
        Disturbance("client stopped 600 ms", True, stop_client(0.6)),
        Disturbance("server stopped 150 ms", False, stop_server(0.15)),
        Disturbance("other process on the client's core, 1 s", False, hog(0, 1.0)),
        Disturbance(
            "niceness -20 on the client's core, 2 s", True, hog(0, 2.0, urgent=True), None, True
        ),
        Disturbance("other process on the server's core, 1 s", False, hog(1, 1.0)),
        Disturbance("client out of file descriptors", True, nothing, few_files),
    ]
    if throttle is not None:
        possible.append(
            Disturbance("client throttled to 4 % of a core", True, throttle, None, True)
        )
    return possible


# --- one load


@dataclass(frozen=True, slots=True)
class Load:
    """The report of one load and the true quantiles."""

    served: str
    disturbance: Disturbance
    report: Json
    truth_ns: dict[float, float]

    @property
    def status(self) -> str:
        return str(self.report["verdict"]["status"])

    def value_ns(self, quantile: float) -> int | None:
        budget = self.report["error_budget_ns"].get(f"{quantile:g}")
        return None if budget is None else int(budget["value"])

    def is_wrong(self, quantile: float) -> bool:
        """Whether the quantile is missing, or wrong by more than 10 % and 100 µs."""
        value_ns, truth_ns = self.value_ns(quantile), self.truth_ns[quantile]
        if value_ns is None:
            return True
        difference = abs(value_ns - truth_ns)
        return difference > OFF_NS and difference > OFF_SHARE * truth_ns

    def has_lost(self) -> bool:
        """Whether requests failed in the generator, so the load differed from the plan."""
        outcomes = self.report["outcomes"]
        return bool(outcomes["client_error"] > 0.001 * outcomes["scheduled"])

    def bounded(self) -> list[tuple[float, Json]]:
        """The quantiles with a bounded error."""
        if self.status == "invalid":
            return []
        budgets = self.report["error_budget_ns"]
        return [
            (quantile, budgets[f"{quantile:g}"])
            for quantile in QUANTILES
            if budgets.get(f"{quantile:g}", {}).get("bound_status") == "bounded"
            and budgets[f"{quantile:g}"]["band"] is not None
        ]

    def outside(self, path_ns: float) -> list[float]:
        """Quantiles outside their band, which is extended by the time between server and client."""
        quantiles = []
        for quantile, budget in self.bounded():
            low_ns, high_ns = budget["band"]
            truth_ns = self.truth_ns[quantile]
            if not low_ns - path_ns <= truth_ns <= (high_ns or float("inf")):
                quantiles.append(quantile)
        return quantiles


def carry_out(served: Served, disturbance: Disturbance, seed: int, *, real_time: bool) -> Load:
    """One load of three seconds, with the server's log."""
    _, server_core = choose_cores()
    with tempfile.TemporaryDirectory() as folder:
        log, report = Path(folder) / "log.csv", Path(folder) / "report.json"
        server = subprocess.Popen(
            [TARGET / "refsrv", "--hold", served.hold, "--log", log, "--log-queued"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=_placed(server_core, real_time=real_time),
        )
        try:
            assert server.stdout is not None
            address = server.stdout.readline().decode().split()[-1]
            _load(served, disturbance, (address, report, seed), server, real_time=real_time)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
        times = sorted(_times(log))
        document = json.loads(report.read_text())
    return Load(served.name, disturbance, document, {q: _rank(times, q) for q in QUANTILES})


def _load(
    served: Served,
    disturbance: Disturbance,
    where: tuple[str, Path, int],
    server: subprocess.Popen[bytes],
    *,
    real_time: bool,
) -> None:
    address, report, seed = where
    cores = choose_cores()
    command: Sequence[str | Path] = [
        TARGET / "loadgen",
        f"http://{address}/",
        "--rate",
        str(served.rate),
        "--duration",
        f"{DURATION_S}s",
        "--seed",
        str(seed),
        "--timeout",
        "5s",
        "--quiet",
        "--json",
        report,
    ]
    placed = _placed(cores[0], real_time=real_time)

    def before() -> None:
        placed()
        if disturbance.prepare is not None:
            disturbance.prepare()

    client = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=before)
    running = Running(client, server, cores)
    time.sleep(START_S)
    actor = threading.Thread(target=disturbance.act, args=(running,))
    actor.start()
    try:
        client.wait(60)
    finally:
        actor.join()
        if client.poll() is None:
            client.kill()
            client.wait()


def _placed(core: int, *, real_time: bool) -> Callable[[], None]:
    def apply() -> None:
        os.sched_setaffinity(0, [core])
        if real_time:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
        else:
            os.nice(ORDINARY_NICENESS)

    return apply


def _times(log: Path) -> Iterator[int]:
    with log.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["write_ns"] and row["queued_ns"]:
                yield int(row["write_ns"]) - int(row["queued_ns"])


def _rank(times: Sequence[int], quantile: float) -> float:
    if not times:
        return float("inf")
    return float(times[max(0, -(-int(quantile * 1e6) * len(times) // 10**6) - 1)])


# --- the shares


def path_ns(loads: Sequence[Load]) -> float:
    """The usual time between server and client: the median difference between the median times at
    both, in undisturbed loads."""
    quiet = [load for load in loads if load.disturbance.is_none]
    return median(float(load.value_ns(0.5) or 0) - load.truth_ns[0.5] for load in quiet)


def print_shares(loads: Sequence[Load]) -> None:
    """Print the shares that the module docstring lists."""
    path = max(0.0, path_ns(loads))
    published = sum(len(load.bounded()) for load in loads)
    outside = sum(len(load.outside(path)) for load in loads)
    unbounded = [load for load in loads if load.disturbance.unbounded]
    caught = sum(load.status == "invalid" for load in unbounded)
    invalid = [load for load in loads if load.status == "invalid"]
    wrong = sum(
        load.has_lost() or any(load.is_wrong(quantile) for quantile in JUDGED) for load in invalid
    )
    quiet = [load for load in loads if load.disturbance.is_none]
    quiet_invalid = sum(load.status == "invalid" for load in quiet)

    print(f"\nloads: {len(loads)}; median time between server and client: {path / 1e3:.0f} µs")
    print(f"bounded figures outside their band: {_share(outside, published)}")
    print(f"loads without a bound that are invalid: {_share(caught, len(unbounded))}")
    print(f"invalid loads with a wrong figure: {_share(wrong, len(invalid))}")
    print(f"undisturbed loads that are invalid: {_share(quiet_invalid, len(quiet))}")
    widths = list(_widths(quiet))
    if widths:
        print(f"width of the band / sampling interval: {median(widths):.2f} (median, undisturbed)")


def _widths(loads: Sequence[Load]) -> Iterator[float]:
    for load in loads:
        for _, budget in load.bounded():
            (low, high), (sampled_low, sampled_high) = budget["band"], budget["sampling_95"]
            if high is not None and sampled_high is not None and sampled_high > sampled_low:
                yield (high - low) / (sampled_high - sampled_low)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.0f} %)" if whole else "")


def _line(load: Load) -> str:
    figures = "  ".join(
        f"p{quantile * 100:g} {(load.value_ns(quantile) or 0) / 1e6:.3f} ms"
        f" (log {load.truth_ns[quantile] / 1e6:.3f} ms"
        f"{', wrong' if load.is_wrong(quantile) else ''})"
        for quantile in JUDGED
    )
    reasons = ",".join(reason["check"] for reason in load.report["verdict"]["reasons"])
    return f"{load.served:12} {load.disturbance.name:44} {load.status:8} {figures}  {reasons}"


def main() -> int:
    """Run the loads and print the results; the exit code is always 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1, help="number of rounds [default: 1]")
    parser.add_argument("--idle", action="store_true", help="run only undisturbed loads")
    parser.add_argument("--ordinary", action="store_true", help="do not use real-time priority")
    arguments = parser.parse_args()

    real_time = real_time_permitted() and not arguments.ordinary
    loads: list[Load] = []
    with contextlib.ExitStack() as stack:
        throttle = stack.enter_context(quota(0.04)) if CGROUP_CPU.is_dir() else None
        kinds = disturbances(throttle)
        if arguments.idle:
            kinds = [kind for kind in kinds if kind.is_none]
        plan = [
            (served, kind, seed)
            for seed in range(arguments.rounds)
            for served in SERVERS
            for kind in kinds
        ]
        random.Random(7).shuffle(plan)
        for number, (served, kind, seed) in enumerate(plan):
            is_urgent = real_time and not kind.needs_ordinary
            load = carry_out(served, kind, 1000 * seed + number, real_time=is_urgent)
            loads.append(load)
            print(_line(load), flush=True)
    print_shares(loads)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
