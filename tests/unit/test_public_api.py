"""What one may rely on from Python: the names, the error tree, and types that agree with the
compiled module."""

from __future__ import annotations

import importlib.resources
import inspect
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

import wsgiload
from wsgiload import _loadgen
from wsgiload.experiment.plan import Experiment

PUBLIC = {
    "AppImportError",
    "Handle",
    "Histogram",
    "LimitsError",
    "LoadError",
    "ProvisionError",
    "Reason",
    "Report",
    "ServerError",
    "SweepResult",
    "UsageError",
    "Verdict",
    "WsgiloadError",
    "aload",
    "load",
    "resume",
    "start",
    "sweep",
}


def test_the_public_names_are_these() -> None:
    """Adding one is a promise, and removing one breaks somebody."""
    assert set(wsgiload.__all__) == PUBLIC
    assert sorted(wsgiload.__all__) == list(wsgiload.__all__)
    assert all(hasattr(wsgiload, name) for name in PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_each_public_name_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(wsgiload, name))


@pytest.mark.parametrize("owner", [wsgiload.Report, wsgiload.Handle, wsgiload.SweepResult])
def test_each_public_method_says_what_it_does(owner: type) -> None:
    silent = [
        name
        for name, member in vars(owner).items()
        if not name.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property))
        and not inspect.getdoc(member)
    ]
    assert silent == []


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
def test_errors_form_one_tree_and_each_has_its_exit_code(
    error: type[wsgiload.WsgiloadError], parent: type, code: int
) -> None:
    assert error.__bases__ == (parent,)
    assert error.exit_code == code
    assert str(error("cause", "fix")) == "cause; fix"
    assert str(error("cause")) == "cause"


def test_the_stub_agrees_with_the_compiled_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "wsgiload._loadgen"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_sweep_takes_what_the_command_takes_of_samples_and_interventions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Experiment] = []
    monkeypatch.setattr(
        sys.modules["wsgiload.api"],
        "run_sweep",
        lambda experiment, events: asked.append(experiment),
    )
    wsgiload.sweep(rates=[100])
    wsgiload.sweep(rates=[100], intervene="cpu", sample_interval=0.01)
    assert [(one.intervene, one.sample_interval_ns) for one in asked] == [
        (None, 100_000_000),
        ("cpu", 10_000_000),
    ]
    with pytest.raises(
        wsgiload.UsageError, match="the sample interval must lie between 1ms and 1s"
    ):
        wsgiload.sweep(rates=[100], sample_interval=2)


def test_a_sweep_with_an_objective_compares_and_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Experiment] = []
    monkeypatch.setattr(
        sys.modules["wsgiload.api"],
        "run_sweep",
        lambda experiment, events: asked.append(experiment),
    )
    wsgiload.sweep(rates=[100], servers=["waitress"])
    wsgiload.sweep(rates=[100], servers=["waitress"], slo=["p99<50ms"])
    wsgiload.sweep(rates=[100], servers=["waitress"], slo=["p99<50ms"], runs=2)
    objective = ("p99<50ms", "error_rate<=0.1%")
    assert [(one.slo, one.runs) for one in asked] == [((), 1), (objective, 6), (objective, 2)]
    with pytest.raises(wsgiload.UsageError, match="gets no worse with the load"):
        wsgiload.sweep(rates=[100], slo=["goodput>=100"])
    with pytest.raises(wsgiload.UsageError, match="a closed loop offers none"):
        wsgiload.sweep(connections=[10], slo=["p99<50ms"])


def test_types_travel_with_the_package() -> None:
    package = importlib.resources.files("wsgiload")
    assert package.joinpath("py.typed").is_file()
    assert package.joinpath("_loadgen.pyi").is_file()


def test_the_clock_is_that_of_the_reports() -> None:
    import time

    before, ours, after = time.monotonic_ns(), _loadgen.monotonic_ns(), time.monotonic_ns()
    assert before <= ours <= after


def test_importing_starts_no_thread_and_touches_nothing() -> None:
    """Importing must be free of effects: no thread, no affinity, no file in the working
    directory."""
    text = (
        "import os, signal, threading; before = os.sched_getaffinity(0), "
        "signal.getsignal(signal.SIGINT);"
        "import wsgiload; after = os.sched_getaffinity(0), signal.getsignal(signal.SIGINT);"
        "assert before == after; print(len(os.listdir('/proc/self/task')), "
        "threading.active_count())"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert done.stdout.split() == ["1", "1"]
    assert done.stderr == ""


def test_a_wrong_argument_is_an_error_of_ours_before_any_thread_is_started() -> None:
    before = threading.active_count()
    with pytest.raises(wsgiload.UsageError, match="the rate -1 does not lie above 0"):
        wsgiload.start("http://127.0.0.1:9/", rate=-1)
    with pytest.raises(wsgiload.UsageError, match="-3 is not a duration in seconds"):
        wsgiload.start("http://127.0.0.1:9/", rate=1, duration=-3)
    with pytest.raises(wsgiload.UsageError, match="'A B' is not a request method"):
        wsgiload.start("http://127.0.0.1:9/", rate=1, method="A B")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"seed": -1}, "the seed -1 is no whole number"),
        ({"headers": "X: y"}, "headers are no text"),
        ({"headers": ["ab"]}, "'ab' is no name and value of a header field"),
        ({"headers": [("X",)]}, r"\('X',\) is no name and value of a header field"),
        ({"body": "text"}, "'text' is no body; give bytes"),
        ({"duration": "1s"}, "'1s' is not a duration in seconds"),
        ({"max_connections": 1.5}, "load.open.max_connections: invalid type: floating point `1.5`"),
    ]
    for options, expected in wrong:
        with pytest.raises(wsgiload.UsageError, match=expected):
            wsgiload.start("http://127.0.0.1:9/", rate=1, **options)
    with pytest.raises(wsgiload.UsageError, match=r"\(1,\) is no ramp"):
        wsgiload.start("http://127.0.0.1:9/", ramp=(1,))  # type: ignore[arg-type]
    with pytest.raises(wsgiload.UsageError, match="are no steps; give pairs"):
        wsgiload.start("http://127.0.0.1:9/", steps=[(1,)])  # type: ignore[list-item]
    assert threading.active_count() == before
