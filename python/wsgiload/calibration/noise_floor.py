"""The noise floor of a machine: the response times measured against a server that responds
immediately. Its error is measured with delays of 0, 1 and 10 ms, whose medians are known.

The noise floor is shown as a systematic uncertainty; it is never subtracted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from wsgiload.documents.base import decode_json
from wsgiload.documents.load_plan import NoiseFloor
from wsgiload.documents.load_report import Blame, Distribution, LoadReport, Reason, Verdict
from wsgiload.documents.run_info import (
    Calibration,
    HostFacts,
    MachineFacts,
    MeasuredNoiseFloor,
    MedianBias,
    NoiseFloorQuantiles,
)
from wsgiload.environments.cache import cache_folder
from wsgiload.errors import UsageError
from wsgiload.foreign_files import replace_file
from wsgiload.host.cpus import CpuPlan, pinned
from wsgiload.host.facts import host_facts
from wsgiload.loads.drive import drive
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.public_options import Keepalive
from wsgiload.loads.reference_server import serving_reference
from wsgiload.loads.request import Request
from wsgiload.units import NS_PER_S

# The allowed delay of the median after a known hold (method: [0, 50 µs]). It cannot be earlier than
# the hold.
MAX_BIAS_NS = 50_000
# These checks compare lateness with the response time, which here consists of lateness.
RELATIVE_CHECKS = frozenset({"send-lag", "send-lag-absolute", "noise-floor"})
# Hosts change: governors, neighbors, kernels.
MAX_AGE_S = 24 * 3600
# No response takes longer.
MAX_RESPONSE_TIME_NS = 3600 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a noise floor depends on in addition to the machine; it applies to loads with the same
    conditions."""

    rate_per_s: float
    keepalive: Keepalive
    threads: int
    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]

    @property
    def key(self) -> str:
        """The key of a stored noise floor; a new one replaces an older one with the same key."""
        cores = "+".join(map(str, self.client_cpus))
        return f"keepalive={self.keepalive} threads={self.threads} client_cpus={cores}"


def calibration(
    conditions: Conditions, holds: Mapping[int, LoadReport], machine: MachineFacts
) -> Calibration:
    """Build the document from the load reports by hold time in ns; 0 gives the noise floor."""
    floor = holds[0]
    return Calibration(
        schema_version=1,
        created_ns=time.time_ns(),
        machine=machine,
        rate_per_s=conditions.rate_per_s,
        keepalive=conditions.keepalive,
        threads=conditions.threads,
        server_cpus=conditions.server_cpus,
        client_cpus=conditions.client_cpus,
        noise_floor=MeasuredNoiseFloor(
            response_time_ns=_figures(floor.response_time_ns),
            send_lag_ns=_figures(floor.send_lag_ns),
            receive_delay_ns=_figures(floor.receive_delay_ns),
        ),
        bias=tuple(_bias(hold_ns, load) for hold_ns, load in sorted(holds.items()) if hold_ns),
        verdict=_verdict(holds),
    )


def _figures(distribution: Distribution | None) -> NoiseFloorQuantiles | None:
    if distribution is None:
        return None
    quantiles = distribution.quantiles
    return NoiseFloorQuantiles(
        p50=quantiles["0.5"],
        p99=quantiles["0.99"],
        p99_9=quantiles["0.999"],
        max=distribution.max,
    )


def _bias(hold_ns: int, load: LoadReport) -> MedianBias:
    """The difference between the measured median and the hold time."""
    times = load.response_time_ns
    p50_ns = None if times is None else times.quantiles["0.5"]
    bias_ns = None if p50_ns is None else p50_ns - hold_ns
    is_within = bias_ns is not None and 0 <= bias_ns <= MAX_BIAS_NS
    return MedianBias(service_time_ns=hold_ns, p50_ns=p50_ns, bias_ns=bias_ns, is_within=is_within)


def _verdict(holds: Mapping[int, LoadReport]) -> Verdict:
    """The disturbances of the loads. Lateness is the measured figure here, so it is not a
    disturbance."""
    reasons_by_check: dict[tuple[str, str], Reason] = {}
    invalid_blames: list[Blame | None] = []
    warn_blames: list[Blame | None] = []
    for load in holds.values():
        for reason in load.verdict.reasons:
            if reason.check not in RELATIVE_CHECKS:
                reasons_by_check.setdefault((reason.check, reason.level), reason)
                blames = invalid_blames if reason.level == "invalid" else warn_blames
                blames.append(load.verdict.blame)

    reasons = sorted(reasons_by_check.values(), key=lambda reason: reason.level != "invalid")
    if not reasons:
        return Verdict(status="valid", blame=None, reasons=())
    blamed = [blame for blame in invalid_blames or warn_blames if blame is not None]
    blame: Blame | None = min(blamed, key=str, default=None)
    return Verdict(status=reasons[0].level, blame=blame, reasons=tuple(reasons))


def machine_of(host: HostFacts) -> MachineFacts:
    """The facts that identify the machine of a noise floor."""
    return MachineFacts(
        cpu_model=host.cpu_model,
        cpus=host.cpus,
        kernel=host.kernel,
        cpu_governor=host.cpu_governor,
        clocksource=host.clocksource,
        wsgiload=host.wsgiload,
    )


def _file() -> Path:
    return cache_folder() / "floor.json"


def store_calibration(conditions: Conditions, document: Calibration) -> Path:
    """Store the noise floor in the user's cache, replacing the last one with the same key."""
    path = _file()
    stored = _read() | {conditions.key: document}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.format(msgspec.json.encode(stored), indent=1))
    except OSError as error:
        fix = "set WSGILOAD_CACHE_DIR to a writable directory"
        raise UsageError(f"cannot write {path}: {error.strerror}", fix) from error
    return path


def _read() -> dict[str, Calibration]:
    """The stored noise floors; empty if they are unreadable or from another version."""
    try:
        return decode_json(_file().read_bytes(), dict[str, Calibration])
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return {}


def _is_plausible(document: Calibration) -> bool:
    """Whether the document is plausible: created in the past, with ordered quantiles."""
    figures = document.noise_floor.response_time_ns
    if figures is None or figures.p50 is None or figures.p99 is None or figures.p99_9 is None:
        return True
    is_ordered = figures.p50 <= figures.p99 <= figures.p99_9 <= MAX_RESPONSE_TIME_NS
    return is_ordered and document.created_ns <= time.time_ns()


def known_floor(keepalive: Keepalive, machine: MachineFacts) -> Calibration | None:
    """The newest noise floor of this machine for this keep-alive mode, at most a day old and valid;
    None if there is none."""
    usable = [
        document
        for document in _read().values()
        if document.keepalive == keepalive
        and document.machine == machine
        and document.verdict.status != "invalid"
        and age_s(document) <= MAX_AGE_S
        and _is_plausible(document)
    ]
    return max(usable, key=lambda document: document.created_ns, default=None)


def floor_of_plan(keepalive: Keepalive) -> NoiseFloor | None:
    """The noise floor for a load plan, so the generator can compare its figures with it (check
    noise-floor); None: unknown."""
    document = known_floor(keepalive, machine_of(host_facts()))
    figures = None if document is None else document.noise_floor.response_time_ns
    if figures is None or figures.p50 is None or figures.p99 is None or figures.p99_9 is None:
        return None
    return NoiseFloor(p50_ns=figures.p50, p99_ns=figures.p99, p999_ns=figures.p99_9)


def age_s(document: Calibration) -> float:
    """The age of the document in seconds."""
    return (time.time_ns() - document.created_ns) / NS_PER_S


HOLDS_NS = (0, 1_000_000, 10_000_000)


@dataclass(frozen=True, slots=True)
class CalibrationPlan:
    """The load and the cores of a calibration."""

    program: Path
    load: LoadSettings
    rate_per_s: float
    seed: int
    cpu_plan: CpuPlan


def calibrate(
    plan: CalibrationPlan, log: Callable[[str], None] = lambda text: None
) -> tuple[Calibration, Path]:
    """Measure and store the noise floor. Returns the document and its path."""
    holds = {}
    with pinned(plan.cpu_plan.orchestrator_cpus):
        for hold_ns in HOLDS_NS:
            log(f"delaying every response by {hold_ns / 1e6:g} ms …")
            with serving_reference(plan.program, hold_ns, plan.cpu_plan.server_cpus) as url:
                level = Level(rate_per_s=plan.rate_per_s)
                load = load_plan(url, Request(), plan.load, level, plan.seed)
                holds[hold_ns] = drive(load, plan.cpu_plan)

    conditions = Conditions(
        plan.rate_per_s,
        plan.load.keepalive,
        plan.load.threads,
        plan.cpu_plan.server_cpus,
        plan.cpu_plan.client_cpus,
    )

    document = calibration(conditions, holds, machine_of(host_facts()))
    return document, store_calibration(conditions, document)
