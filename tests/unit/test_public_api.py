"""The public Python API: names, errors, and types that match the compiled module."""

from __future__ import annotations

import dataclasses
import importlib.resources
import inspect
import os
import subprocess
import sys
import threading
import typing
from collections.abc import Callable
from typing import Any

import pytest

import wsgiload
from wsgiload import LoadOptions, Ramp, RequestOptions, SweepOptions, _loadgen, cli
from wsgiload.cli._declared import descriptions
from wsgiload.experiment.plan import Experiment
from wsgiload.units import NS_PER_S as S

PUBLIC = {
    "AppImportError",
    "Cell",
    "CellResult",
    "Handle",
    "Histogram",
    "LimitsError",
    "LoadError",
    "LoadOptions",
    "LoadReport",
    "ProvisionError",
    "Ramp",
    "Reason",
    "Replay",
    "Report",
    "RequestOptions",
    "ResourceLimits",
    "ServerCommand",
    "ServerError",
    "ServerOptions",
    "SessionPlan",
    "Steps",
    "Summary",
    "SupportingService",
    "SweepEvents",
    "SweepOptions",
    "SweepResult",
    "TransportOptions",
    "UsageError",
    "Verdict",
    "WeightedRequest",
    "WsgiloadError",
    "aload",
    "load",
    "resume",
    "start",
    "sweep",
}


def test_the_public_names_are_unchanged() -> None:
    """A new name is a commitment; removing one breaks users."""
    assert set(wsgiload.__all__) == PUBLIC
    assert sorted(wsgiload.__all__) == list(wsgiload.__all__)
    assert all(hasattr(wsgiload, name) for name in PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_each_public_name_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(wsgiload, name))


@pytest.mark.parametrize(
    "owner",
    [wsgiload.Report, wsgiload.Handle, wsgiload.SweepResult, wsgiload.SweepEvents],
)
def test_each_public_method_is_documented(owner: type) -> None:
    undocumented = [
        name
        for name, member in vars(owner).items()
        if not name.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property))
        and not inspect.getdoc(member)
    ]
    assert undocumented == []


@pytest.mark.parametrize(
    ("error", "parent", "code"),
    [
        (wsgiload.WsgiloadError, Exception, 2),
        (wsgiload.UsageError, wsgiload.WsgiloadError, 2),
        (wsgiload.LimitsError, wsgiload.UsageError, 2),
        (wsgiload.ServerError, wsgiload.WsgiloadError, 97),
        (wsgiload.ProvisionError, wsgiload.ServerError, 97),
        (wsgiload.AppImportError, wsgiload.ServerError, 97),
        (wsgiload.LoadError, wsgiload.WsgiloadError, 98),
    ],
)
def test_each_error_has_a_base_class_and_an_exit_code(
    error: type[wsgiload.WsgiloadError], parent: type, code: int
) -> None:
    assert error.__bases__ == (parent,)
    assert error.exit_code == code
    assert str(error("cause", "fix")) == "cause; fix"
    assert (error("cause", "fix").cause, error("cause", "fix").fix) == ("cause", "fix")
    assert str(error("cause")) == "cause"


def test_the_stub_agrees_with_the_compiled_module() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "wsgiload._loadgen"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_a_sweep_takes_the_options_for_samples_and_interventions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiments: list[Experiment] = []
    monkeypatch.setattr(
        sys.modules["wsgiload.api"],
        "run_sweep",
        lambda experiment, events: experiments.append(experiment),
    )
    wsgiload.sweep(rates=[100])
    wsgiload.sweep(rates=[100], options=SweepOptions(intervene="cpu", sample_interval=0.01))

    assert [(one.intervene, one.sample_interval_ns) for one in experiments] == [
        (None, 100_000_000),
        ("cpu", 10_000_000),
    ]
    with pytest.raises(wsgiload.UsageError, match="the sample interval must be between 1ms and 1s"):
        wsgiload.sweep(rates=[100], options=SweepOptions(sample_interval=2))


def test_a_sweep_with_an_objective_stores_it_and_is_a_race_unless_the_runs_are_fixed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiments: list[Experiment] = []
    monkeypatch.setattr(
        sys.modules["wsgiload.api"],
        "run_sweep",
        lambda experiment, events: experiments.append(experiment),
    )
    wsgiload.sweep(rates=[100], servers=["waitress"])
    for options in (SweepOptions(slo=["p99<50ms"]), SweepOptions(slo=["p99<50ms"], runs=2)):
        wsgiload.sweep(rates=[100], servers=["waitress"], options=options)
    objective = ("p99<50ms", "error_rate<=0.1%")

    assert [(one.slo, one.is_race) for one in experiments] == [
        ((), False),
        (objective, True),
        (objective, False),
    ]
    with pytest.raises(wsgiload.UsageError, match="it must get worse as the load increases"):
        wsgiload.sweep(rates=[100], options=SweepOptions(slo=["goodput>=100"]))
    with pytest.raises(wsgiload.UsageError, match="a closed loop has none"):
        wsgiload.sweep(connections=[10], options=SweepOptions(slo=["p99<50ms"]))


def test_the_package_ships_its_types() -> None:
    package = importlib.resources.files("wsgiload")
    assert package.joinpath("py.typed").is_file()
    assert package.joinpath("_loadgen.pyi").is_file()


def test_the_clock_of_reports_is_pythons_monotonic_clock() -> None:
    import time

    before, reported, after = time.monotonic_ns(), _loadgen.monotonic_ns(), time.monotonic_ns()
    assert before <= reported <= after


def test_importing_has_no_side_effects() -> None:
    """No thread, no change of affinity, no file in the working directory."""
    text = (
        "import os, signal, threading; before = os.sched_getaffinity(0), "
        "signal.getsignal(signal.SIGINT);"
        "import wsgiload; after = os.sched_getaffinity(0), signal.getsignal(signal.SIGINT);"
        "assert before == after; print(len(os.listdir('/proc/self/task')), "
        "threading.active_count())"
    )
    process = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )

    assert process.stdout.split() == ["1", "1"]
    assert process.stderr == ""


def test_an_invalid_argument_is_a_usage_error_before_any_thread_starts() -> None:
    before = threading.active_count()
    with pytest.raises(wsgiload.UsageError, match=r"the rate must be above 0 .*, not -1"):
        wsgiload.start("http://127.0.0.1:9/", rate=-1)
    with pytest.raises(wsgiload.UsageError, match="-3 is not a duration in seconds"):
        wsgiload.start("http://127.0.0.1:9/", rate=1, duration=-3)

    def with_options(**wrong: Any) -> dict[str, Any]:
        return {"options": LoadOptions(**wrong)}

    def with_request(**wrong: Any) -> dict[str, Any]:
        return {"request": RequestOptions(**wrong)}

    wrong: list[tuple[dict[str, Any], str]] = [
        (with_request(method="A B"), "'A B' is not a request method"),
        (with_options(seed=-1), "the seed must be an integer from 0 to 2\\^64 - 1, not -1"),
        (with_request(headers="X: y"), "headers must not be a string: 'X: y'"),
        (with_request(headers=["ab"]), r"'ab' is not a \(name, value\) pair"),
        (with_request(headers=[("X",)]), r"\('X',\) is not a \(name, value\) pair"),
        (with_request(body="text"), "the body must be bytes, not 'text'"),
        (with_request(path="/x"), "the URL already has a path; omit path"),
        ({"duration": "1s"}, "'1s' is not a duration in seconds"),
        (with_options(warmup="1s"), "'1s' is not a duration in seconds"),
        (with_options(threads=0), "plan: threads must"),
        (with_options(precision="p99:5%"), "precision needs max_duration"),
        (
            with_options(max_connections=1.5),
            "load.open.max_connections: invalid type: floating point `1.5`",
        ),
        ({"schedule": Ramp(1, 2)}, "rate and schedule are mutually exclusive"),
    ]
    for arguments, expected in wrong:
        with pytest.raises(wsgiload.UsageError, match=expected):
            wsgiload.start("http://127.0.0.1:9/", rate=1, **arguments)
    assert threading.active_count() == before


# --- types for editors


FUNCTIONS = (wsgiload.load, wsgiload.aload, wsgiload.start, wsgiload.sweep)
OPTIONS = (
    wsgiload.LoadOptions,
    wsgiload.RequestOptions,
    wsgiload.TransportOptions,
    wsgiload.ServerOptions,
    wsgiload.SweepOptions,
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_argument_is_typed_and_none_is_collected(function: Callable[..., Any]) -> None:
    signature, hints = inspect.signature(function), typing.get_type_hints(function)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert hints.keys() == {*signature.parameters, "return"}
    assert Any not in hints.values()


def test_load_start_and_aload_have_the_same_arguments() -> None:
    load, aload, start = (
        inspect.signature(function).parameters
        for function in (wsgiload.load, wsgiload.aload, wsgiload.start)
    )
    assert load == aload == start


@pytest.mark.parametrize("kind", OPTIONS, ids=lambda kind: kind.__name__)
def test_every_field_of_an_options_object_is_described_and_frozen(kind: type) -> None:
    names = [field.name for field in dataclasses.fields(kind)]
    assert list(descriptions(kind)) == names
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(kind(), names[0], None)


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        (wsgiload.LoadOptions, "load"),
        (wsgiload.TransportOptions, "load"),
        (wsgiload.RequestOptions, "sweep"),
        (wsgiload.ServerOptions, "sweep"),
        (wsgiload.SweepOptions, "sweep"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_fields_are_named_like_flags(kind: type, command: str) -> None:
    """Some fields of LoadOptions are flags of sweep only; fields with several values are plural."""
    named = {"headers": "header", "check_thresholds": "check_threshold"}
    named["expect_body"] = "expect_body_file"
    flags = {
        flag.lstrip("-").replace("-", "_").replace("http1.0", "http1_0")
        for name in (command, "sweep")
        for param in cli.wsgiload.commands[name].params
        for flag in param.opts
    }
    fields = {field.name for field in dataclasses.fields(kind)}

    assert {named.get(field, field) for field in fields} - flags == set()


def test_the_options_of_a_sweep_reach_its_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    experiments: list[Experiment] = []
    monkeypatch.setattr(
        sys.modules["wsgiload.api"],
        "run_sweep",
        lambda experiment, events: experiments.append(experiment),
    )
    wsgiload.sweep(
        connections=[5],
        servers=["waitress"],
        duration=3,
        load=LoadOptions(warmup=0.5, think_time=0.1, keepalive="off", max_connections=7, seed=9),
        request=RequestOptions(path="/x", headers={"A": "b"}, expect_status=204),
        server=wsgiload.ServerOptions(server_threads=3, profile="stock", ready_timeout=4),
        limits=wsgiload.ResourceLimits(cpus=0.5),
        options=SweepOptions(name="mine", runs=2, settle=1, reruns=0),
        out="elsewhere",
    )
    (experiment,) = experiments
    load, request = experiment.load, experiment.request

    assert (load.duration_ns, load.warmup_ns, load.cooldown_ns) == (3 * S, S // 2, S)
    assert (load.think_time, load.keepalive, load.max_connections) == (0.1, "off", 7)
    assert (request.path, request.headers, request.statuses) == ("/x", (("A", "b"),), (204,))
    assert (experiment.seed, experiment.name, experiment.runs) == (9, "mine", 2)
    assert (experiment.profile, experiment.sizes[0].threads) == ("stock", 3)
    assert (experiment.ready_timeout_ns, experiment.limits.cpus) == (4 * S, 0.5)
    assert (experiment.procedure.settle_ns, experiment.procedure.reruns) == (S, 0)
    assert str(experiment.out) == "elsewhere"
    with pytest.raises(wsgiload.UsageError, match="--max-duration applies only to"):
        wsgiload.sweep(load=LoadOptions(precision="5%", max_duration=60))
    with pytest.raises(wsgiload.UsageError, match="--processes applies only to"):
        wsgiload.sweep(load=LoadOptions(processes=2))
