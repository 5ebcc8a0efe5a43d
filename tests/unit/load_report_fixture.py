"""A report by the real generator without a server, and one of a successful load."""

from __future__ import annotations

import functools

from msgspec.structs import replace

from wsgiload.documents.load_report import (
    Bounds,
    Distribution,
    LoadReport,
    Outcomes,
    Rates,
    Verdict,
)
from wsgiload.loads.handle import Handle
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.request import Request
from wsgiload.units import NS_PER_S

SECONDS, RATE = 10, 1_000
SENT = SECONDS * RATE


@functools.cache
def stopped_report() -> LoadReport:
    """The report of a load on a closed port that was stopped at once."""
    settings = LoadSettings(duration_ns=SECONDS * NS_PER_S)
    level = Level(rate_per_s=float(RATE))
    plan = load_plan("http://127.0.0.1:9/", Request(), settings, level, seed=3)
    with Handle(plan) as handle:
        handle.stop()
        return handle.result().document


def healthy_report() -> LoadReport:
    """A report in which every response was correct, on schedule and took 1 ms."""
    report = stopped_report()
    no_requests = dict.fromkeys(Outcomes.__struct_fields__, 0)
    rate = float(RATE)

    return replace(
        report,
        verdict=Verdict(status="valid", blame=None, reasons=()),
        measured_ns=SECONDS * NS_PER_S,
        outcomes=Outcomes(**no_requests | {"scheduled": SENT, "ok": SENT}),
        rate=Rates(offered_per_s=rate, sent_per_s=rate, achieved_per_s=rate, goodput_per_s=rate),
        status_codes={"200": SENT},
        offered_quantiles_ns={
            name: Bounds(low=1_000_000, high=1_000_000) for name in ("0.5", "0.9", "0.95", "0.99")
        },
        response_time_ns=_all_in_1_ms(),
        service_time_ns=_all_in_1_ms(),
        intervals=(),
        connections=replace(report.connections, opened=2, failures={})
        if report.connections is not None
        else None,
    )


def _all_in_1_ms() -> Distribution:
    names = ("0.5", "0.9", "0.95", "0.99", "0.999", "0.9999")
    return Distribution(
        count=SENT,
        min=1_000_000,
        mean=1_000_000.0,
        max=1_000_000,
        quantiles=dict.fromkeys(names, 1_000_000),
        intervals_95=dict.fromkeys(names, None),
        hdr_v2=None,
    )
