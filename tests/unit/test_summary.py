"""The summary of cell records in summary.json, and the exit code of a sweep."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from jsonschema import Draft202012Validator

from wsgiload.catalogue.names import load_catalogue
from wsgiload.documents.attribution_result import AttributionResult
from wsgiload.documents.cell_result import CellFailure, CellResult, ExitStatus
from wsgiload.documents.codec import read, to_plain
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.schema import load_schema
from wsgiload.documents.summary import Summary
from wsgiload.errors import LoadError, ProvisionError, ServerError, UsageError
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.findings.external_counts import max_sent_requests
from wsgiload.findings.trial import STOP_SIGNAL
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits import Enforcement, Limits
from wsgiload.limits.model import Counters
from wsgiload.loads.options import Level, LoadSettings
from wsgiload.loads.request import Request
from wsgiload.results.record import CellRecord, Setting, failure_of
from wsgiload.results.summary import SweepProgress, exit_code, summarise_cell, summarise_sweep
from wsgiload.sampling.external_counters import ExternalReading, TcpCounts
from wsgiload.sampling.processes import ProcessUsage
from wsgiload.sampling.sampler import Sample
from wsgiload.serving.launch import ServerExit
from wsgiload.units import NS_PER_S

from .filled import reason, times, verdict
from .filled import settings as server_settings
from .report_fixture import write_run

FOUND = {found.id: found for found in load_catalogue().select(["wsgiref", "gunicorn"])}
LEVEL = Level(rate_per_s=1000.0)
CELL = Cell("wsgiref", LEVEL, run=1, seed=7)
OTHER = Cell("gunicorn-gthread", LEVEL, run=1, seed=7)
EXPERIMENT = Experiment(
    name="hello",
    app="hello:app",
    app_dir=Path("/apps"),
    request=Request(),
    load=LoadSettings(duration_ns=20 * NS_PER_S, warmup=5.0),
    levels=(LEVEL,),
)
ENFORCED = Enforcement("cgroup-v1", {"cpus": 1.0}, ())
FAILURE = failure_of(ServerError("it fell over", "hold it", step="start", log_tail="Traceback"))


def setting(*, shared_cores: bool = False) -> Setting:
    limits = Limits(cpus=1.0, memory_bytes=2**29, pids=64)
    return Setting(EXPERIMENT, CpuPlan((1,), (0,), shared_cores), limits)


@pytest.fixture(scope="module")
def valid_load(tmp_path_factory: pytest.TempPathFactory) -> LoadReport:
    """The report of a valid load of 20 s, which started at 81,000 s on the monotonic clock."""
    directory = write_run(tmp_path_factory.mktemp("invented") / "run") / "load"
    load = read(LoadReport, directory / "waitress@1000#1.json")
    assert load.verdict.status == "valid"
    phases = msgspec.structs.replace(
        load.plan.phases, warmup_ns=5 * NS_PER_S, measure_ns=20 * NS_PER_S
    )
    return msgspec.structs.replace(load, plan=msgspec.structs.replace(load.plan, phases=phases))


@pytest.fixture
def record(valid_load: LoadReport) -> CellRecord:
    """A cell measured without failures, which used half a core and at most 64 MiB."""
    start_ns = valid_load.clock.monotonic_ns
    samples = [
        Sample(
            start_ns + second * NS_PER_S,
            0,
            Counters(cpu_usage_ns=second * NS_PER_S // 2, memory_anon_bytes=2**25),
        )
        for second in range(30)
    ]

    return CellRecord(
        CELL,
        load=valid_load,
        samples=samples,
        enforcement=ENFORCED,
        starting_peak_bytes=2**26,
        oom_kills=0,
        keepalive_honoured=True,
        server_exit=ServerExit(0, None, True, 0.1),
    )


def changed(record: CellRecord, **parts: Any) -> CellRecord:
    """A copy of the record in which these fields of the load report are replaced."""
    assert record.load is not None
    return replace(record, load=msgspec.structs.replace(record.load, **parts))


def with_verdict(record: CellRecord, status: str, blame: str | None) -> CellRecord:
    reasons = [] if status == "valid" else [reason("send-lag", status, "m", 2)]
    return changed(record, verdict=verdict(status, blame, *reasons))


def summary_of(
    *records: CellRecord,
    status: Literal["complete", "interrupted", "failed"] = "complete",
    on: Setting | None = None,
) -> Summary:
    progress = SweepProgress([CELL, OTHER], records, status)
    return summarise_sweep(FOUND, on or setting(), progress)


def checks_of(cell: CellResult) -> list[str]:
    assert cell.verdict is not None
    return [reason.check for reason in cell.verdict.reasons]


def status_of(cell: CellResult) -> tuple[str, str | None]:
    assert cell.verdict is not None
    return cell.verdict.status, cell.verdict.blame


def errors(summary: Summary) -> list[str]:
    return [
        error.json_path
        for error in Draft202012Validator(load_schema("summary-1")).iter_errors(to_plain(summary))
    ]


# --- cells


def test_a_measured_cell_has_the_figures_of_generator_and_kernel(
    record: CellRecord, valid_load: LoadReport
) -> None:
    cell = summarise_cell(record, FOUND["wsgiref"], setting())

    assert (cell.id, cell.server, cell.variant) == ("wsgiref@1000#1", "wsgiref", "default")
    assert (cell.rate, cell.connections, cell.run) == (1000.0, None, 1)
    assert cell.verdict == valid_load.verdict
    assert cell.rate_result == valid_load.rate
    assert cell.outcomes == valid_load.outcomes
    assert cell.response_time_ns == valid_load.response_time_ns

    assert cell.limits is not None and cell.resources is not None
    assert cell.limits.backend == "cgroup-v1"
    assert (cell.limits.server_cpus, cell.limits.client_cpus) == ((1,), (0,))
    assert cell.resources.cpu_cores_mean == 0.5
    assert cell.resources.memory_peak_bytes == 2**26
    assert cell.resources.oom_kills == 0

    assert cell.server_exit == ExitStatus(code=0, signal=None, clean=True)
    assert cell.failure is None
    assert cell.keepalive_honoured is True
    assert (cell.warmup_s, cell.duration_s) == (5, 20)


def test_a_variant_is_distinguished_from_its_server(record: CellRecord) -> None:
    cell = summarise_cell(replace(record, cell=OTHER), FOUND["gunicorn-gthread"], setting())
    assert (cell.server, cell.variant, cell.id) == (
        "gunicorn",
        "gthread",
        "gunicorn-gthread@1000#1",
    )


def test_a_failed_cell_has_its_failure_and_null_for_unmeasured_values() -> None:
    failed = CellRecord(CELL, failure=FAILURE, enforcement=ENFORCED, oom_kills=1)
    cell = summarise_cell(failed, FOUND["wsgiref"], setting())

    assert cell.failure == CellFailure(
        step="start", message="it fell over; hold it", log_tail="Traceback"
    )
    assert status_of(cell) == ("invalid", "server")
    assert {name for name, value in to_plain(cell).items() if value is None} >= {
        "rate_result",
        "outcomes",
        "response_time_ns",
        "service_time_ns",
        "send_lag_ns",
        "connect_time_ns",
        "offered_quantiles_ns",
        "server_exit",
    }

    assert cell.resources is not None
    assert cell.resources.oom_kills == 1
    assert cell.resources.cpu_cores_mean is None


def test_an_unsupported_interpreter_is_a_provisioning_failure() -> None:
    failure = failure_of(UsageError("meinheld runs on Python <=3.12", "leave it out"))
    assert failure.step == "provision"
    assert "leave it out" in failure.message


def test_a_cell_without_an_environment_has_neither_versions_nor_limits() -> None:
    unbuilt = CellRecord(CELL, failure=failure_of(ProvisionError("no compiler", step="provision")))
    cell = summarise_cell(unbuilt, FOUND["wsgiref"], setting())
    assert cell.failure is not None and cell.failure.step == "provision"
    assert (cell.version, cell.python, cell.limits, cell.resources) == (
        None,
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("valid", None), ("warn", "host")),
        (("warn", "server"), ("warn", "server")),
        (("invalid", "client"), ("invalid", "client")),
    ],
)
def test_shared_cores_add_a_warning_to_the_verdict_of_the_generator(
    record: CellRecord, before: tuple[str, str | None], after: tuple[str, str]
) -> None:
    cell = summarise_cell(
        with_verdict(record, *before), FOUND["wsgiref"], setting(shared_cores=True)
    )
    assert status_of(cell) == after
    assert cell.verdict is not None
    last = cell.verdict.reasons[-1]
    assert (last.check, last.level) == ("shared-cores", "warn")
    assert "share cores" in last.message


@pytest.mark.parametrize("stopped_by", [None, "SIGINT", "SIGKILL"])
def test_a_server_that_ignores_its_stop_signal_is_reported(
    record: CellRecord, stopped_by: str | None
) -> None:
    ended = ServerExit(0, None, True, 0.1, stopped_by)
    slow = replace(record, server_exit=ended, settings=server_settings())
    cell = summarise_cell(slow, FOUND["wsgiref"], setting())
    assert cell.verdict is not None
    signals = [one.value for one in cell.verdict.reasons if one.check == STOP_SIGNAL.name]
    assert signals == ([stopped_by] if stopped_by else [])


@pytest.mark.parametrize(
    ("keepalive", "checks"),
    [(None, ["no-keepalive"]), ("on", ["no-keepalive"]), (7, ["no-keepalive"]), ("off", [])],
)
def test_a_server_that_ignores_keep_alive_has_a_warning(
    record: CellRecord, keepalive: Any, checks: list[str]
) -> None:
    closing = replace(record, keepalive_honoured=False)
    cell = summarise_cell(closing, replace(FOUND["wsgiref"], keepalive=keepalive), setting())
    assert checks_of(cell) == checks
    assert status_of(cell)[0] == ("warn" if checks else "valid")


def test_external_counts_are_stored_and_checked(record: CellRecord) -> None:
    assert record.load is not None
    sent = max_sent_requests(record.load)
    assert sent is not None
    watched = replace(record, external=ExternalReading(sent + 1_000, TcpCounts(2, 0, 0, 0)))
    cell = summarise_cell(watched, FOUND["wsgiref"], setting())

    assert status_of(cell) == ("invalid", "client")
    assert checks_of(cell) == ["app-calls"]
    assert cell.external_counts is not None
    assert cell.external_counts.requests_seen == sent + 1_000
    assert [note for note in cell.notes if note.startswith("this host retransmitted TCP segments")]
    assert errors(summary_of(watched)) == []

    without_calls = replace(record, external=ExternalReading(None, TcpCounts(0, 0, 0, 0)))
    unwatched = summarise_cell(without_calls, FOUND["wsgiref"], setting())
    assert unwatched.not_checked is not None
    assert [one.check for one in unwatched.not_checked] == ["noise-floor", "app-calls"]
    assert status_of(unwatched)[0] == "valid"


def _attribution(foreign: float, waited: float | None) -> AttributionResult:
    return AttributionResult(
        resolution_ns=1,
        exposures=(),
        fingerprints=(),
        slowest=None,
        slowest_ratio=None,
        worker_imbalance=None,
        other_cpu_ratio=foreign,
        cpu_wait_ratio=waited,
    )


def _processes(waited_ms: int) -> list[ProcessUsage]:
    """One process that waited so long in a second."""
    ends = ((0, 0), (NS_PER_S, waited_ms * 1_000_000))
    return [ProcessUsage(t_ns, 1, None, 0, wait_ns, 1) for t_ns, wait_ns in ends]


@pytest.mark.parametrize(
    ("foreign", "waited", "processes", "message"),
    [
        (0.4, 0.003, [], None),
        (0.4, None, _processes(3), None),
        (
            0.4,
            0.2,
            [],
            "the server waited 20 % of the time for a core, while other processes used 40 %",
        ),
        (0.4, None, _processes(200), "the server waited 20 % of the time for a core, while other"),
        (0.4, None, [], "other processes used 40 % of the machine's CPU time; whether the server"),
        (0.0, 0.2, [], "the server waited 20 % of the time for a core that other processes used"),
        (0.0, None, _processes(200), None),
    ],
)
def test_other_processes_contaminate_a_trial_only_by_their_effect(
    record: CellRecord,
    foreign: float,
    waited: float | None,
    processes: list[ProcessUsage],
    message: str | None,
) -> None:
    assert record.load is not None and record.load.client is not None
    client = msgspec.structs.replace(record.load.client, run_queue_wait_ns=0)
    busy = replace(
        changed(record, client=client),
        attribution=_attribution(foreign, waited),
        processes=processes,
    )
    verdict = summarise_cell(busy, FOUND["wsgiref"], setting()).verdict
    assert verdict is not None
    found = [reason.message for reason in verdict.reasons if reason.check == "contaminated"]
    assert bool(found) == (message is not None)
    assert message is None or found[0].startswith(message)


def test_an_unenforced_limit_is_listed_and_named_in_a_warning(record: CellRecord) -> None:
    unenforced = replace(record, enforcement=Enforcement("none", {}, ("memory", "pids")))
    cell = summarise_cell(unenforced, FOUND["wsgiref"], setting())
    assert cell.limits is not None and cell.verdict is not None
    assert cell.limits.not_enforced == ("memory", "pids")
    assert status_of(cell) == ("warn", "host")
    (reason,) = cell.verdict.reasons
    assert reason.message == "limits not enforced: memory, pids"


def test_an_unenforced_cpu_limit_is_not_reported_as_unused(
    record: CellRecord,
) -> None:
    assert record.load is not None
    rate = msgspec.structs.replace(record.load.rate, achieved_per_s=1, goodput_per_s=1)
    behind = changed(record, rate=rate)
    four_cores = replace(setting(), limits=Limits(cpus=4.0))

    def checks(one: CellRecord) -> list[str]:
        return checks_of(summarise_cell(one, FOUND["wsgiref"], four_cores))

    assert checks(behind) == ["rate-not-reached", "idle-server"]
    assert checks(replace(behind, enforcement=Enforcement("none", {}, ("cpus",)))) == [
        "limits",
        "rate-not-reached",
    ]


def test_summarising_does_not_change_the_verdict_of_the_generator(
    record: CellRecord, valid_load: LoadReport
) -> None:
    before = to_plain(valid_load.verdict)
    summarise_cell(record, FOUND["wsgiref"], setting(shared_cores=True))
    assert to_plain(valid_load.verdict) == before


# --- the summary


def test_a_summary_has_the_planned_order_and_only_measured_cells(
    record: CellRecord,
) -> None:
    summary = summary_of(record, status="interrupted")
    assert summary.order == ("wsgiref@1000#1", "gunicorn-gthread@1000#1")
    assert [cell.id for cell in summary.cells] == ["wsgiref@1000#1"]
    assert summary.status == "interrupted"
    assert summary.seed == 1
    assert summary.experiment.servers == tuple(FOUND)


def test_every_kind_of_cell_is_accepted_by_the_schema(record: CellRecord) -> None:
    failed = CellRecord(OTHER, failure=FAILURE, enforcement=ENFORCED, oom_kills=1)
    unbuilt = CellRecord(OTHER, failure=FAILURE)
    unenforced = replace(record, enforcement=Enforcement("none", {}, ("cpus",)))
    assert (
        errors(summary_of(record, failed, unbuilt, unenforced, on=setting(shared_cores=True))) == []
    )
    assert errors(summary_of(status="failed")) == []


# --- exit codes


@pytest.fixture
def causes(record: CellRecord) -> dict[int, CellRecord]:
    """A cell for each exit code that a cell can cause."""
    return {
        0: with_verdict(record, "warn", "server"),
        97: CellRecord(CELL, failure=FAILURE),
        98: with_verdict(record, "invalid", "client"),
    }


@pytest.mark.parametrize("code", [0, 97, 98])
def test_each_cause_alone_has_its_exit_code(causes: dict[int, CellRecord], code: int) -> None:
    assert exit_code(summary_of(causes[code])) == code


def test_a_failed_threshold_is_99_unless_something_worse_happened(
    causes: dict[int, CellRecord],
) -> None:
    assert exit_code(summary_of(causes[0]), thresholds_failed=True) == 99
    assert exit_code(summary_of(causes[98]), thresholds_failed=True) == 98
    assert exit_code(summary_of(causes[97]), thresholds_failed=True) == 97


def test_an_undecided_threshold_is_98_even_if_another_failed(
    causes: dict[int, CellRecord],
) -> None:
    assert exit_code(summary_of(causes[0]), thresholds_undecided=True) == 98
    assert exit_code(summary_of(causes[0]), thresholds_undecided=True, thresholds_failed=True) == 98
    assert exit_code(summary_of(causes[97]), thresholds_undecided=True) == 97


def test_the_first_of_several_causes_in_the_documented_order_counts(
    causes: dict[int, CellRecord],
) -> None:
    for size in (2, 3):
        for codes in combinations(causes, size):
            expected = next(code for code in (97, 98, 0) if code in codes)
            chosen = [causes[code] for code in codes]
            assert (
                exit_code(summary_of(*chosen))
                == exit_code(summary_of(*reversed(chosen)))
                == expected
            )


def test_an_interrupted_sweep_is_130_whatever_else_happened(causes: dict[int, CellRecord]) -> None:
    everything = summary_of(*causes.values(), status="interrupted")
    assert exit_code(everything, thresholds_failed=True) == 130


def test_a_generator_crash_is_98_because_no_server_is_at_fault() -> None:
    broken = CellRecord(
        CELL, failure=failure_of(LoadError("the generator ended with code -11 and no report"))
    )
    summary = summary_of(broken)
    assert status_of(summary.cells[0]) == ("invalid", "client")
    assert exit_code(summary) == 98
    assert exit_code(summary_of(broken, CellRecord(OTHER, failure=FAILURE))) == 97


def transferred(record: CellRecord, *times_ns: int) -> CellRecord:
    return changed(record, transfer_ns=times(*times_ns))


def test_bodies_that_wait_for_a_delayed_acknowledgement_are_a_warning(
    record: CellRecord,
) -> None:
    one_in_five = transferred(record, *[0] * 80, *[42_000_000] * 20)
    cell = summarise_cell(one_in_five, FOUND["wsgiref"], setting())
    assert status_of(cell) == ("warn", "server")
    assert cell.verdict is not None
    [reason] = cell.verdict.reasons
    assert (reason.check, reason.value) == ("nagle-delay", 0.2)
    assert "in 20 % of the responses" in reason.message
    assert "TCP_NODELAY" in reason.message


@pytest.mark.parametrize(
    "times_ns",
    [
        [0] * 60 + [30_400_000] * 40,
        [60_400_000] * 100,
        [0] * 1_000 + [42_000_000] * 5,
        [ms * 1_000_000 for ms in range(100)],
    ],
    ids=["faster", "slower", "rare", "uniform"],
)
def test_other_transfer_times_are_not_delayed_acknowledgements(
    record: CellRecord, times_ns: list[int]
) -> None:
    cell = summarise_cell(transferred(record, *times_ns), FOUND["wsgiref"], setting())
    assert checks_of(cell) == []


def test_a_server_that_never_became_ready_still_has_its_memory_use(
    record: CellRecord,
) -> None:
    unready = replace(
        record, load=None, samples=(), oom_kills=1, starting_peak_bytes=2**26, failure=FAILURE
    )
    resources = summarise_cell(unready, FOUND["wsgiref"], setting()).resources
    assert resources is not None
    assert (resources.oom_kills, resources.memory_peak_bytes) == (1, 2**26)
    assert resources.cpu_cores_mean is None


def test_missing_samples_are_a_warning_that_names_wsgiload_itself(record: CellRecord) -> None:
    """SIGSTOP of the orchestrator stops the sampler, but not the load."""
    stopped = replace(record, samples=[*record.samples[:8], *record.samples[13:]])
    (whole,), (cell,) = summary_of(record).cells, summary_of(stopped).cells
    assert "missing-samples" not in checks_of(whole)
    assert status_of(cell) == ("warn", "host")
    assert cell.verdict is not None
    (missing,) = [one for one in cell.verdict.reasons if one.check == "missing-samples"]
    assert missing.message.startswith(
        "no resources were sampled for 6.0 s, because wsgiload itself"
    )
    assert (missing.value, missing.limit) == (6.0, 1.0)
