"""Calibration: its verdict ignores lateness; noise floors are stored per machine and keep-alive."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from wsgiload.calibration.noise_floor import (
    Conditions,
    calibration,
    floor_of_plan,
    known_floor,
    machine_of,
    store_calibration,
)
from wsgiload.documents.load_plan import NoiseFloor
from wsgiload.documents.load_report import Distribution, Level, LoadReport, Reason, Verdict
from wsgiload.documents.run_info import Calibration, MachineFacts, NoiseFloorQuantiles
from wsgiload.errors import UsageError
from wsgiload.host.facts import host_facts
from wsgiload.loads import reference_server
from wsgiload.loads.build import require_possible
from wsgiload.loads.options import Level as LoadLevel
from wsgiload.loads.options import LoadSettings, load_plan
from wsgiload.loads.reference_server import find_reference_server
from wsgiload.loads.request import Request
from wsgiload.report.preflight import bias_sentences
from wsgiload.units import NS_PER_S

from .canned_load import canned_load

CONDITIONS = Conditions(1000.0, "on", 1, (1,), (0,))
MACHINE = MachineFacts(
    cpu_model="any", cpus=2, kernel="6.1", cpu_governor=None, clocksource=None, wsgiload="0"
)


def times(p50_ns: int) -> Distribution:
    return Distribution(
        count=1,
        min=p50_ns,
        mean=float(p50_ns),
        max=4 * p50_ns,
        quantiles={"0.5": p50_ns, "0.99": 2 * p50_ns, "0.999": 3 * p50_ns},
        intervals_95={},
        hdr_v2=None,
    )


def report(p50_ns: int, *reasons: tuple[str, Level]) -> LoadReport:
    report_reasons = tuple(
        Reason(check=check, level=level, message="", value=1, limit=0) for check, level in reasons
    )
    levels: list[Level] = [reason.level for reason in report_reasons]
    verdict = Verdict(
        status=min(levels, default="valid"),  # "invalid" before "warn"
        blame="host" if report_reasons else None,
        reasons=report_reasons,
    )

    return canned_load(
        response_time_ns=times(p50_ns),
        send_lag_ns=times(2_000),
        receive_delay_ns=None,
        verdict=verdict,
    )


def document(*reasons: tuple[str, Level], p50_ns: int = 1_030_000) -> Calibration:
    holds = {0: report(60_000, *reasons), 1_000_000: report(p50_ns), 10_000_000: report(10_020_000)}
    return calibration(CONDITIONS, holds, MACHINE)


def document_as_of(created_ns: int) -> Calibration:
    return msgspec.structs.replace(document(), created_ns=created_ns)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path))


def test_the_noise_floor_is_that_of_hold_0_with_null_for_missing_figures() -> None:
    floor = document().noise_floor
    assert floor.response_time_ns == NoiseFloorQuantiles(
        p50=60_000, p99=120_000, p99_9=180_000, max=240_000
    )
    assert floor.send_lag_ns is not None
    assert floor.send_lag_ns.p50 == 2_000
    assert floor.receive_delay_ns is None


@pytest.mark.parametrize(
    ("p50_ns", "missed", "message"),
    [
        (1_030_000, 0, "p50 error 30.0 µs (at most 50 µs, as expected on an idle machine)"),
        (1_060_000, 1, "p50 error 60.0 µs (more than the 50 µs expected on an idle machine)"),
        (999_000, 1, "impossible: below the service time"),
    ],
)
def test_the_median_may_be_at_most_50_us_late_and_never_early(
    p50_ns: int, missed: int, message: str
) -> None:
    calibration = document(p50_ns=p50_ns)
    assert sum(not bias.is_within for bias in calibration.bias) == missed
    assert message in " ".join(bias_sentences(calibration))


def test_lateness_does_not_affect_the_verdict() -> None:
    late = document(("send-lag", "invalid"), ("send-lag-absolute", "warn"))
    assert late.verdict.status == "valid"

    disturbed = document(("send-lag", "invalid"), ("run-queue-wait", "invalid")).verdict
    assert (disturbed.status, disturbed.blame) == ("invalid", "host")
    assert [reason.check for reason in disturbed.reasons] == ["run-queue-wait"]


def test_a_noise_floor_applies_only_to_its_machine_and_keepalive() -> None:
    assert known_floor("on", MACHINE) is None
    store_calibration(CONDITIONS, document())
    floor = known_floor("on", MACHINE)
    assert floor is not None
    assert floor == document_as_of(floor.created_ns)
    assert known_floor("off", MACHINE) is None
    assert known_floor("on", msgspec.structs.replace(MACHINE, kernel="6.2")) is None


def test_an_old_or_invalid_noise_floor_is_not_used() -> None:
    store_calibration(CONDITIONS, document_as_of(0))
    assert known_floor("on", MACHINE) is None

    store_calibration(CONDITIONS, document(("run-queue-wait", "invalid")))
    assert known_floor("on", MACHINE) is None

    store_calibration(CONDITIONS, document(("run-queue-wait", "warn")))
    assert known_floor("on", MACHINE) is not None


def test_a_known_noise_floor_is_part_of_every_plan() -> None:
    assert floor_of_plan("on") is None

    calibration = msgspec.structs.replace(document(), machine=machine_of(host_facts()))
    store_calibration(CONDITIONS, calibration)

    floor = floor_of_plan("on")
    assert floor == NoiseFloor(p50_ns=60_000, p99_ns=120_000, p999_ns=180_000)

    level = LoadLevel(rate_per_s=100.0)
    plan = load_plan("http://127.0.0.1:1/", Request(), LoadSettings(duration_ns=NS_PER_S), level, 1)
    require_possible(msgspec.structs.replace(plan, noise_floor=floor))


def test_a_cache_of_another_version_is_ignored(tmp_path: Path) -> None:
    path = store_calibration(CONDITIONS, document())
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 9'))
    assert known_floor("on", MACHINE) is None


def test_a_missing_reference_server_is_reported_with_a_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_server, "BUILT", tmp_path / "refsrv")
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(UsageError, match="wheels do not include it; build it with `cargo build"):
        find_reference_server()

    (tmp_path / "refsrv").touch(0o755)
    assert find_reference_server() == tmp_path / "refsrv"
    with pytest.raises(
        UsageError, match="is not executable; name the reference server with --refsrv"
    ):
        find_reference_server(tmp_path / "none")
