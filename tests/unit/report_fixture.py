"""A synthetic run directory with the special cases of a report.

Eight servers at three rates: one cell failed to start, one is invalid because of the client, one
server does not honour keep-alive, and one is so overloaded that its upper quantiles are infinite.
The numbers follow simple queueing formulas with seeded noise; they describe no real server.
"""

from __future__ import annotations

import base64
import csv
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from wsgiload import Histogram
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.codec import encode, read
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.summary import ExperimentFacts, Summary

RATES = (1000, 2000, 3000)
DURATION_S = 20
WARMUP_S = 5
MEMORY_BYTES = 512 << 20
QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)
EPOCH_NS = 81_000_000_000_000
# A valid but empty histogram: the quantiles of these documents are computed, not recorded.
NO_VALUES = base64.b64encode(Histogram.from_values([]).to_hdr_v2()).decode()

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SyntheticServer:
    """The capacity, base latency and memory of a synthetic server."""

    name: str
    version: str
    capacity_per_s: float
    base_ns: float
    memory_mib: float
    processes: int
    keepalive: bool = True


SERVERS = (
    SyntheticServer("gunicorn-sync", "23.0.0", 2450, 820_000, 96, 3, keepalive=False),
    SyntheticServer("gunicorn-gthread", "23.0.0", 3350, 690_000, 104, 3),
    SyntheticServer("gunicorn-gevent", "23.0.0", 4300, 610_000, 131, 3),
    SyntheticServer("waitress", "3.0.2", 2960, 740_000, 58, 1),
    SyntheticServer("cheroot", "10.0.1", 2700, 980_000, 49, 1),
    SyntheticServer("gevent-pywsgi", "24.11.1", 3900, 560_000, 62, 1),
    SyntheticServer("wsgiref", "3.11.2", 1380, 1_150_000, 31, 1),
    SyntheticServer("uwsgi", "2.0.28", 7200, 240_000, 44, 3),
)


def write_run(directory: Path, *, runs: int = 1, closed_loop: bool = False) -> Path:
    """Write the synthetic run directory and return it."""
    (directory / "load").mkdir(parents=True)
    cells, intervals, samples = [], [], []

    for server in SERVERS:
        for rate in RATES:
            for run in range(1, runs + 1):
                builder = _CellBuilder(server, rate, run, closed_loop)
                cells.append(builder.cell())
                intervals += builder.intervals
                samples += builder.samples
                if cells[-1]["failure"] is None:
                    _write_json(directory / "load" / f"{builder.id}.json", builder.load())

    summary = _summary(cells, runs, closed_loop)
    _write_json(directory / "summary.json", summary)
    _write_json(directory / "run.json", _run(summary["experiment"]))
    _write_csv(directory / "intervals.csv", intervals)
    _write_csv(directory / "resources.csv", samples)
    return directory


def make_cell(server: str, rate: int, run: int) -> tuple[Json, Json]:
    """A cell of one of the servers at any rate, and its load report, as plain data."""
    model = next(model for model in SERVERS if model.name == server)
    builder = _CellBuilder(model, rate, run, closed_loop=False)

    return builder.cell(), builder.load()


def read_summary(directory: Path) -> Summary:
    """Read the stored summary."""
    return read(Summary, directory / "summary.json")


_FACTS = ExperimentFacts(
    name="hello",
    app="hello",
    path="/",
    rates=(1000.0,),
    connections=None,
    arrivals="poisson",
    on_busy="grow",
    duration_s=20.0,
    warmup_s=0.0,
    runs=1,
    cpus=None,
    memory_bytes=None,
    pids=None,
    server_cpus=None,
    client_cpus=None,
    servers=(),
)


def summary_of(cells: Sequence[CellResult] = (), **facts: object) -> Summary:
    """A summary of these cells, with these experiment facts."""
    return Summary(
        schema_version=1,
        status="complete",
        experiment=msgspec.structs.replace(_FACTS, **facts),
        order=(),
        seed=1,
        cells=tuple(cells),
    )


def store_summary(directory: Path, summary: Summary) -> None:
    """Replace the stored summary."""
    (directory / "summary.json").write_text(encode(summary), encoding="utf-8")


def write_many(directory: Path, servers: int, runs: int = 3) -> Path:
    """Write a sweep of this many servers, all with the results of waitress."""
    write_run(directory, runs=runs)
    summary = read_summary(directory)

    names = [f"server-number-{place}" for place in range(servers)]
    cells = [
        msgspec.structs.replace(cell, server=name, id=cell.id.replace("waitress", name))
        for name in names
        for cell in summary.cells
        if cell.server == "waitress"
    ]
    store_summary(directory, msgspec.structs.replace(summary, cells=tuple(cells)))

    for path in (directory / "load").glob("waitress@*.json"):
        for name in names:
            copy = path.with_name(path.name.replace("waitress", name))
            copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")

    for file in ("intervals.csv", "resources.csv"):
        header, *lines = (directory / file).read_text(encoding="utf-8").splitlines()
        original = [line for line in lines if line.startswith("waitress")]
        copies = [line.replace("waitress", name, 1) for name in names for line in original]
        (directory / file).write_text("\n".join([header, *copies]) + "\n", encoding="utf-8")
    return directory


def read_load(directory: Path, cell: str) -> LoadReport:
    """Read the load report of one cell."""
    return read(LoadReport, directory / "load" / f"{cell}.json")


class _CellBuilder:
    def __init__(self, server: SyntheticServer, rate: int, run: int, closed_loop: bool) -> None:
        self.server, self.rate, self.run, self.closed_loop = server, rate, run, closed_loop
        self.id = f"{server.name}@{rate}#{run}"
        self.random = random.Random(self.id)
        self.noise = math.exp(self.random.gauss(0, 0.06))
        self.utilisation = rate / server.capacity_per_s * self.noise
        self.failed = (server.name, rate) == ("cheroot", 3000)
        self.invalid = (server.name, rate) == ("uwsgi", 3000)
        self.intervals = [] if self.failed else self._intervals()
        self.samples = [] if self.failed else self._samples()
        self.outcomes = self._outcomes()

    @property
    def overloaded(self) -> bool:
        return self.utilisation >= 1

    def quantile_ns(self, probability: float) -> int:
        if self.overloaded:
            backlog_s = DURATION_S * (1 - 1 / self.utilisation)
            return int(1e9 * min(1.0, 0.05 + backlog_s * probability))
        scale_ns = self.server.base_ns * 0.55 / (1 - self.utilisation)
        return int(self.noise * (self.server.base_ns - math.log(1 - probability) * scale_ns))

    def _outcomes(self) -> Json:
        kinds = dict.fromkeys(
            (
                "ok",
                "http_status",
                "bad_body",
                "reset",
                "stale",
                "refused",
                "connect_timeout",
                "timeout",
                "dropped",
                "unfinished",
                "client_error",
            ),
            0,
        )

        scheduled = self.rate * DURATION_S + self.random.randrange(-300, 300)
        if self.overloaded:
            share = 1 - 1 / self.utilisation
            kinds["timeout"] = int(scheduled * share * 0.8)
            kinds["dropped"] = int(scheduled * share * 0.2)

        if self.server.name == "wsgiref":
            kinds["reset"] = int(scheduled * 0.004)
        if (self.server.name, self.rate) == ("waitress", 3000):
            kinds["http_status"] = int(scheduled * 0.007)
        if (self.server.name, self.rate) == ("gevent-pywsgi", 3000):
            kinds["stale"] = 3

        kinds["ok"] = scheduled - sum(kinds.values())
        return {"scheduled": scheduled, **kinds}

    def _bounds(self, probability: float) -> Json:
        low = self.quantile_ns(probability)
        not_ok = 1 - self.outcomes["ok"] / self.outcomes["scheduled"]
        return {"low": low, "high": low if not_ok < 1 - probability else None}

    def _histogram(self, factor: float) -> Json:
        values = {
            f"{quantile:g}": int(self.quantile_ns(quantile) * factor) for quantile in QUANTILES
        }
        intervals = {key: [int(value * 0.97), int(value * 1.04)] for key, value in values.items()}
        return {
            "count": self.outcomes["ok"],
            "min": int(self.server.base_ns * 0.6 * factor),
            "mean": self.quantile_ns(0.6) * factor,
            "max": int(values["0.9999"] * 1.4),
            "quantiles": values,
            "intervals_95": intervals,
            "hdr_v2": NO_VALUES,
        }

    def _uncertainty(self) -> Json:
        """Uncertainty if twenty requests are worth one independent request."""
        effective = self.outcomes["ok"] / 20
        known = {}
        for quantile in QUANTILES:
            value_ns, beyond = self.quantile_ns(quantile), effective * (1 - quantile)
            resolved = beyond >= 10
            known[f"{quantile:g}"] = {
                "interval_95_ns": [int(value_ns * 0.97), int(value_ns * 1.04)]
                if resolved
                else None,
                "effective_requests": effective,
                "resolution_status": "headline"
                if beyond >= 100
                else "resolved"
                if resolved
                else "not_resolved",
                "reason": None if resolved else "too_few_effective_requests",
            }
        return known

    def _both_uncertainties(self) -> Json:
        return {
            "offered_quantiles_ns": self._uncertainty(),
            "response_time_ns": self._uncertainty(),
        }

    def _verdict(self) -> Json:
        if self.failed:
            return {"status": "invalid", "blame": "server", "reasons": []}
        if self.invalid:
            message = "the generator's own lateness moved p99 by 8.3 %; give it a core of its own"
            return {
                "status": "invalid",
                "blame": "client",
                "reasons": [
                    {
                        "check": "send-lag",
                        "level": "invalid",
                        "message": message,
                        "value": 0.083,
                        "limit": 0.05,
                    }
                ],
            }
        if self.overloaded:
            message = (
                "the backlog grew through the whole measurement: the offered rate is above capacity"
            )
            return {
                "status": "warn",
                "blame": "server",
                "reasons": [
                    {
                        "check": "backlog-growth",
                        "level": "warn",
                        "message": message,
                        "value": 1.6,
                        "limit": 1.0,
                    }
                ],
            }
        return {"status": "valid", "blame": None, "reasons": []}

    def _rate_result(self) -> Json:
        ok, scheduled = self.outcomes["ok"] / DURATION_S, self.outcomes["scheduled"] / DURATION_S
        sent = scheduled - self.outcomes["dropped"] / DURATION_S
        achieved = ok + self.outcomes["http_status"] / DURATION_S
        offered = None if self.closed_loop else scheduled
        return {
            "offered_per_s": offered,
            "sent_per_s": sent,
            "achieved_per_s": achieved,
            "goodput_per_s": ok,
        }

    def _cpu_use(self) -> tuple[float, float]:
        """Mean CPU cores in use and the share of throttled periods."""
        ceiling = 2.0 if self.server.processes > 1 else 1.02
        cores = min(ceiling, 0.06 + ceiling * self.utilisation * 0.93)
        return cores, max(0.0, (cores / 2.0 - 0.82) * 2.3)

    def cell(self) -> Json:
        measured = not self.failed
        notes = []
        if not self.server.keepalive:
            notes.append("keep-alive not honoured: measured with a new connection per request")

        quantiles = {f"{quantile:g}": self._bounds(quantile) for quantile in QUANTILES}
        exit_code = (
            {"code": 1, "signal": None, "clean": False}
            if self.failed
            else {"code": 0, "signal": None, "clean": True}
        )

        failure = {
            "step": "readiness",
            "message": "no correct response within 30 s; the process ended with code 1",
            "log_tail": "ModuleNotFoundError: No module named 'jaraco'",
        }

        return {
            "id": self.id,
            "server": self.server.name,
            "variant": "gthread" if self.server.name.endswith("gthread") else None,
            "version": self.server.version,
            "python": "3.11.2",
            "rate": None if self.closed_loop else self.rate,
            "connections": self.rate // 10 if self.closed_loop else None,
            "run": self.run,
            "verdict": self._verdict(),
            "rate_result": self._rate_result() if measured else None,
            "outcomes": self.outcomes if measured else None,
            "response_time_ns": self._histogram(1.0) if measured else None,
            "service_time_ns": self._histogram(0.8) if measured else None,
            "send_lag_ns": self._histogram(0.02) if measured else None,
            "connect_time_ns": self._histogram(0.05)
            if measured and not self.server.keepalive
            else None,
            "offered_quantiles_ns": quantiles if measured else None,
            "uncertainty": self._both_uncertainties() if measured else None,
            "limits": {
                "backend": "cgroup-v1",
                "cpus": 2.0,
                "memory_bytes": MEMORY_BYTES,
                "pids": 256,
                "server_cpus": "0-1",
                "client_cpus": "2-3",
                "read_back": {"cpu_quota_us": 200_000},
                "not_enforced": [],
            },
            "resources": self._resources() if measured else None,
            "server_exit": exit_code,
            "failure": failure if self.failed else None,
            "warmup_s": WARMUP_S,
            "duration_s": DURATION_S,
            "keepalive_honoured": self.server.keepalive if measured else None,
            "notes": notes,
        }

    def _resources(self) -> Json:
        cores, throttled = self._cpu_use()
        memory = self.server.memory_mib * (1 << 20) * (1 + 0.08 * self.rate / 3000)
        return {
            "cpu_cores_mean": cores,
            "cpu_cores_peak": min(2.0, cores * 1.18),
            "cpu_ns_per_request": int(cores * 1e9 * DURATION_S / self.outcomes["ok"]),
            "memory_peak_bytes": int(memory),
            "memory_mean_bytes": int(memory * 0.94),
            "page_cache_peak_bytes": 3 << 20,
            "throttled_period_ratio": throttled,
            "oom_kills": 0,
            "psi_cpu_some_ratio": None,
            "listen_queue_peak": 128 if self.overloaded else 2,
            "listen_drops": 41 if self.overloaded else 0,
            "processes_peak": self.server.processes,
        }

    def _intervals(self) -> list[Json]:
        rows = []
        for second in range(DURATION_S):
            swing = math.exp(self.random.gauss(0, 0.10))
            stall = 3.5 if second == 13 and not self.overloaded else 1.0
            growth = (second + 1) / DURATION_S if self.overloaded else 1.0
            failed = int(self.rate * (1 - 1 / self.utilisation)) if self.overloaded else 0
            rows.append(
                {
                    "cell": self.id,
                    "start_ns": EPOCH_NS + second * 10**9,
                    "length_ns": 10**9,
                    "scheduled": self.rate,
                    "sent": self.rate,
                    "ok": self.rate - failed,
                    "failed": failed,
                    "p50_ns": int(self.quantile_ns(0.5) * swing * growth),
                    "p99_ns": int(self.quantile_ns(0.99) * swing * stall * growth),
                    "max_ns": int(
                        self.quantile_ns(0.99)
                        * swing
                        * stall
                        * growth
                        * self.random.uniform(1.3, 2.2)
                    ),
                }
            )
        return rows

    def _samples(self) -> list[Json]:
        cores, throttled = self._cpu_use()
        usage, cpu_periods, throttled_periods, rows = 0, 0, 0, []
        for step in range((DURATION_S + 2) * 5):
            step_ns = 200_000_000
            stall = 64 <= step - 5 < 70
            usage += int(
                step_ns * max(0.0, min(2.0, self.random.gauss(cores * (1.2 if stall else 1), 0.07)))
            )
            cpu_periods += 2
            chance = 0.7 if stall else throttled
            throttled_periods += sum(self.random.random() < chance for _ in range(2))
            rows.append(
                {
                    "cell": self.id,
                    "t_ns": EPOCH_NS - 10**9 + step * step_ns,
                    "cpu_usage_ns": usage,
                    "cpu_user_ns": usage * 7 // 10,
                    "cpu_system_ns": usage * 3 // 10,
                    "nr_periods": cpu_periods,
                    "nr_throttled": throttled_periods,
                    "throttled_ns": throttled_periods * 30_000_000,
                    "memory_bytes": int(self.server.memory_mib * (1 << 20)),
                    "memory_anon_bytes": int(self.server.memory_mib * (1 << 20)),
                    "memory_file_bytes": None,
                    "oom_kill": 0,
                    "pids": self.server.processes,
                    "psi_cpu_some_ns": None,
                    "psi_cpu_full_ns": None,
                    "psi_memory_some_ns": None,
                    "listen_queue": 0,
                    "listen_drops": 0,
                    "steal_ns": 0,
                }
            )
        return rows

    def _interval_histogram(self, row: Json) -> str | None:
        """A histogram of one in fifty responses, log-normal between the interval's p50 and p99."""
        count = row["ok"] // 50
        if not count:
            return None
        rng = random.Random(f"{self.id}-{row['start_ns']}")
        spread = math.log(row["p99_ns"] / row["p50_ns"]) / 2.33
        values = [int(row["p50_ns"] * math.exp(rng.gauss(0, spread))) for _ in range(count)]
        values = [min(value, row["max_ns"]) for value in values[1:]] + [row["max_ns"]]
        return base64.b64encode(Histogram.from_values(values).to_hdr_v2()).decode()

    def _flights(self) -> Json | None:
        """The slowest requests, mostly of the fourteenth second, and a sample of all requests."""
        if not self.intervals:
            return None
        rng = random.Random(f"{self.id}-flights")
        length_ns = self.intervals[13]["max_ns"]
        offsets_s = [13.0 + rng.random() for _ in range(30)]
        offsets_s += [rng.random() * DURATION_S for _ in range(6)]
        starts = [EPOCH_NS + int(offset_s * 1e9) for offset_s in offsets_s]
        sample = sorted(EPOCH_NS + int(rng.random() * DURATION_S * 1e9) for _ in range(100))

        parts = [int(share * length_ns) for share in (0.1, 0.05, 0.7, 0.05)]
        return {
            "slowest": [[start, start + length_ns] for start in starts],
            "slowest_parts": [None, *[parts] * (len(starts) - 1)],
            "sample": [[start, start + self.server.base_ns] for start in sample],
        }

    def _load_model(self) -> Json:
        if self.closed_loop:
            return {"closed": {"connections": self.rate // 10, "think_time_ns": 0}}
        open_loop = {
            "rate_per_s": self.rate,
            "arrivals": "poisson",
            "on_busy": "grow",
            "max_connections": None,
            "max_pending": None,
        }
        return {"open": open_loop}

    def load(self) -> Json:
        ok = self.outcomes["ok"]
        status_codes = {"200": ok}
        if self.outcomes["http_status"]:
            status_codes["503"] = self.outcomes["http_status"]
        opened = ok if not self.server.keepalive else 64

        keys = (
            "start_ns",
            "length_ns",
            "scheduled",
            "sent",
            "ok",
            "failed",
            "p50_ns",
            "p99_ns",
            "max_ns",
        )
        return {
            "schema_version": 1,
            "tool": {
                "name": "wsgiload",
                "version": "0.1.0",
                "build": {"profile": "release", "target_cpu": "x86-64-v2", "git_sha": None},
            },
            "plan": {
                "url": "http://127.0.0.1:8000/",
                "load": self._load_model(),
                "phases": {
                    "warmup_ns": WARMUP_S * 10**9,
                    "measure_ns": DURATION_S * 10**9,
                    "cooldown_ns": 0,
                    "drain_ns": None,
                },
                "keepalive": "on",
                "seed": 7,
            },
            "measured_ns": DURATION_S * 10**9,
            "verdict": self._verdict(),
            "diagnostics": [],
            "not_checked": [
                {
                    "check": "noise-floor",
                    "reason": "the noise floor of this machine is unknown",
                }
            ],
            "rate": self._rate_result(),
            "outcomes": self.outcomes,
            "status_codes": status_codes,
            "response_time_ns": self._histogram(1.0),
            "service_time_ns": self._histogram(0.8),
            "send_lag_ns": self._histogram(0.02),
            "pool_wait_ns": self._histogram(0.01),
            "connect_time_ns": None,
            "first_byte_ns": self._histogram(0.75),
            "transfer_ns": self._histogram(0.05),
            "receive_delay_ns": self._histogram(0.005),
            "offered_quantiles_ns": {
                f"{quantile:g}": self._bounds(quantile) for quantile in QUANTILES
            },
            "uncertainty": self._both_uncertainties(),
            "precision": None,
            "stationarity": {
                "state": "unstable" if self.overloaded else "stationary",
                "reason": None,
                "slice_ns": 10**9,
                "p50_drift": 0.01,
                "p99_drift": -0.02,
                "p50_kpss": 0.12,
                "p99_kpss": 0.09,
                "p50_range": 0.0,
                "changes": [],
                "settled_after_ns": None,
            },
            "in_system": {"mean": 3.2, "growth": 1.9 if self.overloaded else 0.04},
            "send_gaps": {
                "count": 10_000,
                "anderson_darling": 0.7,
                "kolmogorov_distance": 0.006,
                "dispersion_deviation": 1.1,
            },
            "connections": {
                "opened": opened,
                "reused": ok - opened,
                "closed_by_server": 0,
                "peak": 64,
                "max_connections": 1_000,
                "requests_per_connection": {"min": 1, "mean": ok / opened, "max": ok // opened + 1},
                "failures": {},
                "local_ports": {
                    "source_addresses": None,
                    "free": 28_232,
                    "needed_at_most": 1_000,
                    "warning": None,
                },
                "tracked": {"before": 12, "after": 90, "max": 262_144},
            },
            "client": {
                "cpu_seconds": 3.1,
                "cpu_per_request_ns": 52_000,
                "run_queue_wait_ns": 4_000_000,
                "max_send_lag_ns": 900_000,
                "busy_share": 0.11,
                "steal_share": 0.0,
                "scheduling": "realtime",
                "real_time_off_share": 0.0,
                "spin": {"window_ns": 60_000, "reason": "automatic"},
                "spin_off_share": 0.0,
                "spin_cpu_seconds": 0.4,
                "curtailed_spins": 0,
                "receive_stamps": "kernel",
                "user_timestamps": 3,
                "rejected_timestamps": {"count": 0, "clock_steps": 0},
                "stalls": {
                    "count": 0,
                    "total_ns": 0,
                    "longest_ns": 0,
                    "arrivals": 0,
                    "responses": 0,
                },
                "throttled_periods": 0,
            },
            "targets": [],
            "sessions": None,
            "intervals": [
                {key: row[key] for key in keys} | {"hdr_v2": self._interval_histogram(row)}
                for row in self.intervals
            ],
            "flights": self._flights(),
            "clock": {
                "monotonic_ns": EPOCH_NS,
                "realtime_ns": 1_790_000_000_000_000_000,
                "drift_ns": 40,
            },
        }


def _summary(cells: list[Json], runs: int, closed_loop: bool) -> Json:
    order = [cell["id"] for cell in cells]
    random.Random(7).shuffle(order)
    experiment = {
        "name": "hello",
        "app": "hello",
        "path": "/",
        "rates": None if closed_loop else list(RATES),
        "connections": [rate // 10 for rate in RATES] if closed_loop else None,
        "arrivals": None if closed_loop else "poisson",
        "on_busy": "grow",
        "duration_s": DURATION_S,
        "warmup_s": WARMUP_S,
        "runs": runs,
        "cpus": 2.0,
        "memory_bytes": MEMORY_BYTES,
        "pids": 256,
        "server_cpus": "0-1",
        "client_cpus": "2-3",
        "servers": [server.name for server in SERVERS],
    }
    return {
        "schema_version": 1,
        "status": "complete",
        "experiment": experiment,
        "order": order,
        "seed": 7,
        "cells": cells,
    }


def _run(experiment: Json) -> Json:
    host = {
        "kernel": "6.1.0",
        "cpu_model": "Invented CPU, 4 cores",
        "cpus": 4,
        "memory_bytes": 16 << 30,
        "python": "3.11.2",
        "wsgiload": "0.1.0",
    }
    return {
        "schema_version": 1,
        "status": "complete",
        "plan": experiment,
        "host": host,
        "started_utc": "2026-11-21T09:30:00Z",
    }


def _write_json(path: Path, document: Json) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")


def _write_csv(path: Path, rows: list[Json]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
