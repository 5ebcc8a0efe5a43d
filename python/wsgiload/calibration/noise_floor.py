"""The noise floor of a machine: what is measured of a server that responds at once. Pure, but
for its store.

A floor is shown as a systematic uncertainty; it is never subtracted from anything.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsgiload.environments.provision import cache_folder
from wsgiload.errors import UsageError
from wsgiload.host.facts import host_facts
from wsgiload.loads.options import Keepalive
from wsgiload.units import NS_PER_S

Json = dict[str, Any]

SCHEMA_VERSION = 1
DISTRIBUTIONS = ("response_time_ns", "send_lag_ns", "receive_delay_ns")
# How late the median of a known hold may be (method: [0, 50 µs]); earlier than the hold is
# impossible.
MOST_BIAS_NS = 50_000
# These compare lateness with the response time, which is what a floor consists of.
RELATIVE_CHECKS = frozenset({"send-lag", "send-lag-absolute", "noise-floor"})
# The host changes its ways: governors, neighbours, kernels.
MOST_AGE_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a floor depends on besides the machine: which other loads it holds for."""

    rate_per_s: float
    keepalive: Keepalive
    threads: int
    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]

    @property
    def key(self) -> str:
        """Floors of one mode replace each other."""
        cores = "+".join(map(str, self.client_cpus))
        return f"keepalive={self.keepalive} threads={self.threads} client_cpus={cores}"


def calibration(conditions: Conditions, holds: Mapping[int, Json], machine: Json) -> Json:
    """The document, from the report of a load for each hold in nanoseconds; 0 gives the floor."""
    floor = holds[0]
    return {
        "schema_version": SCHEMA_VERSION,
        "created_ns": time.time_ns(),
        "machine": machine,
        "rate_per_s": conditions.rate_per_s,
        "keepalive": conditions.keepalive,
        "threads": conditions.threads,
        "server_cpus": list(conditions.server_cpus),
        "client_cpus": list(conditions.client_cpus),
        "floor": {name: _figures(floor[name]) for name in DISTRIBUTIONS},
        "bias": [_bias(hold_ns, report) for hold_ns, report in sorted(holds.items()) if hold_ns],
        "verdict": _verdict(holds),
    }


def _figures(distribution: Json | None) -> Json | None:
    if distribution is None:
        return None
    quantiles = distribution["quantiles"]
    return {
        "p50": quantiles["0.5"],
        "p99": quantiles["0.99"],
        "p99.9": quantiles["0.999"],
        "max": distribution["max"],
    }


def _bias(hold_ns: int, report: Json) -> Json:
    """How much later than the hold the median answer was found."""
    times = report["response_time_ns"]
    p50_ns = None if times is None else times["quantiles"]["0.5"]
    bias_ns = None if p50_ns is None else p50_ns - hold_ns
    is_within = bias_ns is not None and 0 <= bias_ns <= MOST_BIAS_NS
    return {"hold_ns": hold_ns, "p50_ns": p50_ns, "bias_ns": bias_ns, "is_within": is_within}


def _verdict(holds: Mapping[int, Json]) -> Json:
    """What disturbed the loads. Lateness itself is the figure here, not a doubt about it."""
    found: dict[tuple[str, str], Json] = {}
    blames = []
    for report in holds.values():
        verdict = report["verdict"]
        for reason in verdict["reasons"]:
            if reason["check"] not in RELATIVE_CHECKS:
                found.setdefault((reason["check"], reason["level"]), reason)
                blames.append((reason["level"] != "invalid", verdict["blame"]))
    reasons = sorted(found.values(), key=lambda reason: str(reason["level"]) != "invalid")
    if not reasons:
        return {"status": "valid", "blame": None, "reasons": []}
    return {"status": reasons[0]["level"], "blame": min(blames)[1], "reasons": reasons}


def machine_of(host: Mapping[str, Any]) -> Json:
    """The facts by which a floor belongs to a machine."""
    return {
        name: host[name]
        for name in ("cpu_model", "cpus", "kernel", "cpu_governor", "clocksource", "wsgiload")
    }


def _file() -> Path:
    return cache_folder() / "floor.json"


def store_calibration(conditions: Conditions, document: Json) -> Path:
    """Keep it in the user's cache, in place of the last one of the same mode."""
    path = _file()
    unfinished = path.with_suffix(".unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(_read() | {conditions.key: document}, indent=1))
        unfinished.replace(path)
    except OSError as error:
        fix = "set WSGILOAD_CACHE_DIR to a writable directory"
        raise UsageError(f"cannot write {path}: {error.strerror}", fix) from error
    return path


def _read() -> dict[str, Json]:
    try:
        stored: dict[str, Json] = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return stored


def known_floor(keepalive: Keepalive, machine: Json) -> Json | None:
    """The newest floor of this machine for this connection mode; None where there is none younger
    than a day that was measured undisturbed."""
    usable = [
        document
        for document in _read().values()
        if document["schema_version"] == SCHEMA_VERSION
        and document["keepalive"] == keepalive
        and document["machine"] == machine
        and document["verdict"]["status"] != "invalid"
        and age_s(document) <= MOST_AGE_S
    ]
    return max(usable, key=lambda document: int(document["created_ns"]), default=None)


def floor_of_plan(keepalive: Keepalive) -> Json:
    """What a plan says of the floor, so that the generator can judge how near a figure is to it
    (check C6); nothing where no floor is known."""
    document = known_floor(keepalive, machine_of(host_facts()))
    figures = None if document is None else document["floor"]["response_time_ns"]
    if figures is None:
        return {}
    return {
        "floor": {"p50_ns": figures["p50"], "p99_ns": figures["p99"], "p999_ns": figures["p99.9"]}
    }


def age_s(document: Json) -> float:
    """How long ago it was made."""
    return float(time.time_ns() - document["created_ns"]) / NS_PER_S


def missed_biases(document: Json) -> Sequence[Json]:
    """The holds whose median was found too late, or too early."""
    return [bias for bias in document["bias"] if not bias["is_within"]]
