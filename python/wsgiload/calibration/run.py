"""Measures the noise floor with loads on the reference server. It delays (holds) every response by
0, 1 or 10 ms, so the correct medians are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wsgiload.calibration.noise_floor import Conditions, calibration, machine_of, store_calibration
from wsgiload.documents.calibration import Calibration
from wsgiload.host.cpus import CpuPlan, pinned
from wsgiload.host.facts import host_facts
from wsgiload.loads.drive import drive
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.reference_server import serving_reference
from wsgiload.loads.request import Request

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
