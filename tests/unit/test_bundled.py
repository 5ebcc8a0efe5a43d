"""Bundled apps: their responses, requests and services."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from wsgiload import RequestOptions, ServerOptions
from wsgiload.catalogue.bundled import BUNDLED, DEFAULT_APP
from wsgiload.cli import run
from wsgiload.cli._declared import descriptions
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import Experiment, experiment_facts
from wsgiload.experiment.stored_secrets import public_request, restore_secrets
from wsgiload.loads.request import Request

DOCS = Path(__file__).parents[2] / "docs"
# The server marks the end of these bodies.
WITHOUT_LENGTH = {"unsized"}


@pytest.fixture(scope="module", autouse=True)
def upstream_server() -> Iterator[None]:
    """Run the server from which the app ``upstream`` fetches."""
    upstream = BUNDLED["upstream"].upstream
    assert upstream is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    process = subprocess.Popen([sys.executable, upstream.program, str(port)])
    try:
        _wait_until_listening(port, process)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(upstream.variable, f"127.0.0.1:{port}")
            yield
    finally:
        process.terminate()
        process.wait()


def _wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + 30
    while time.monotonic() < deadline_s and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    pytest.fail("upstream_source.py does not listen")


def call_app(name: str, query: str | None = None, body: bytes | None = None) -> tuple[Any, ...]:
    """Call a bundled app as in PEP 3333; return the status, headers and body of its response."""
    bundled = BUNDLED[name]
    module = importlib.import_module(f"wsgiload.catalogue.apps.{bundled.module}")
    path, _, default_query = bundled.path.partition("?")
    request_body = (bundled.body or b"") if body is None else body

    environ: dict[str, object] = {
        "REQUEST_METHOD": bundled.method,
        "PATH_INFO": path,
        "QUERY_STRING": default_query if query is None else query,
        "SCRIPT_NAME": "",
        "CONTENT_LENGTH": str(len(request_body)),
        "wsgi.input": io.BytesIO(request_body),
    }

    setup_testing_defaults(environ)
    responses: list[tuple[str, dict[str, str]]] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], exc_info: object = None, /
    ) -> Callable[[bytes], object]:
        responses.append((status, dict(headers)))
        return lambda data: None

    result = validator(module.app)(environ, start_response)
    response_body = b"".join(result)
    result.close()  # type: ignore[attr-defined]

    ((status, headers),) = responses
    return status, headers, response_body


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_app_sends_its_expected_body(name: str) -> None:
    bundled = BUNDLED[name]
    status, headers, body = call_app(name)

    assert status == "200 OK"
    assert body == bundled.expected_body
    assert headers.get("Content-Length") == (None if name in WITHOUT_LENGTH else str(len(body)))
    assert headers["Content-Type"]

    assert bundled.summary.endswith(".")
    assert (bundled.app_dir / f"{bundled.module}.py").is_file()
    assert "wsgiload" not in "".join(
        line
        for line in (bundled.app_dir / f"{name}.py").read_text().splitlines()
        if "import" in line
    )


def test_json1k_is_1024_bytes_of_json() -> None:
    body = BUNDLED["json1k"].expected_body
    assert len(body) == 1024
    assert json.loads(body)["items"]


def test_the_default_app_exists() -> None:
    assert BUNDLED[DEFAULT_APP].app == "hello:app"


# --- the apps of the published comparisons


def test_events_are_selected_by_the_query() -> None:
    assert 900 < len(BUNDLED["events"].expected_body) < 1_150
    numbers = [event["id"] for event in json.loads(call_app("events")[2])["events"]]
    assert numbers == list(range(25, 33))
    since_31 = json.loads(call_app("events", "since=31")[2])["events"]
    assert [event["id"] for event in since_31] == [32]
    assert len(json.loads(call_app("events", "")[2])["events"]) == 32


def test_files_sleeps_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    started_s = time.monotonic()
    headers = call_app("files")[1]
    elapsed_s = time.monotonic() - started_s

    name, _, reported_ms = headers["Server-Timing"].partition(";dur=")
    assert name == "app"
    assert 0.1 <= float(reported_ms) / 1000 <= elapsed_s
    assert list(tmp_path.iterdir()) == []


def test_database_serves_more_concurrent_requests_than_it_has_threads() -> None:
    bodies: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: bodies.append(call_app("database")[2])) for _ in range(25)
    ]

    started_s = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert bodies == [BUNDLED["database"].expected_body] * 25
    # Sequential requests would sleep for almost two seconds.
    assert 0.075 <= time.monotonic() - started_s < 1.5


def test_upstream_waits_for_its_server_and_reports_its_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started_s = time.monotonic()
    call_app("upstream")
    assert time.monotonic() - started_s >= 0.02

    upstream = importlib.import_module("wsgiload.catalogue.apps.upstream")
    monkeypatch.setattr(upstream, "fetch", lambda: (503, b"busy"))
    status, _, body = call_app("upstream")
    assert (status, body) == ("502 Bad Gateway", b"busy")


@pytest.mark.parametrize("size", [0, 1, 65_536, 200_001])
def test_echo_returns_the_request_body(size: int) -> None:
    body = bytes(number % 251 for number in range(size))
    assert call_app("echo", body=body)[2] == body


# --- in an experiment


def experiment(**options: Any) -> Experiment:
    request = options.pop("request", RequestOptions())
    return experiment_of(SweepSpec(server=ServerOptions(**options), request=request))


def test_echo_expects_its_request_body() -> None:
    app = BUNDLED["echo"]
    default = experiment(app_name="echo").request
    assert (default.method, default.body, default.expected_body) == ("POST", app.body, app.body)

    options = RequestOptions(method="PUT", body=b"mine")
    custom = experiment(app_name="echo", request=options).request
    assert (custom.method, custom.body, custom.expected_body) == ("PUT", b"mine", None)
    assert custom.expected_sha256 == hashlib.sha256(b"mine").hexdigest()

    checked = RequestOptions(body=b"mine", expect_body=b"other")
    assert experiment(app_name="echo", request=checked).request.expected_body == b"other"


def test_each_app_of_a_grid_has_a_different_request() -> None:
    plan = experiment(grid={"app": ["echo", "hello"]})
    echo, hello = (plan.served(name).request for name in ("echo", "hello"))
    assert (echo.method, echo.body) == ("POST", BUNDLED["echo"].body)
    assert (hello.method, hello.body) == ("GET", None)
    assert hello.expected_body == BUNDLED["hello"].expected_body

    assert experiment_facts(plan, ()).method is None
    assert experiment_facts(experiment(app_name="echo"), ()).method == "POST"


def test_resume_restores_the_body_of_a_bundled_app() -> None:
    request = experiment(app_name="echo").request
    stored = public_request(request)
    assert stored.body != request.body
    assert restore_secrets(stored, RequestOptions()) == request

    custom = replace(request, body=b"mine")
    with pytest.raises(Exception, match="the value of --body was not stored"):
        restore_secrets(public_request(custom), RequestOptions())


def test_upstream_starts_its_server_unless_a_variable_names_another() -> None:
    plan = experiment(app_name="upstream")
    assert list(plan.services) == ["upstream"]
    assert plan.variables["WSGILOAD_UPSTREAM"] == f"127.0.0.1:{plan.services['upstream'].ready}"

    assert list(experiment(grid={"app": ["hello", "upstream"]}).services) == ["upstream"]
    assert experiment(app_name="hello").services == {}

    elsewhere = experiment(app_name="upstream", env={"WSGILOAD_UPSTREAM": "10.0.0.1:80"})
    assert elsewhere.services == {}
    assert elsewhere.variables == {"WSGILOAD_UPSTREAM": "10.0.0.1:80"}


def test_two_sweeps_have_separate_upstreams() -> None:
    port = experiment(app_name="upstream").services["upstream"].ready
    assert isinstance(port, int)

    with socket.create_server(("127.0.0.1", port)):
        other_port = experiment(app_name="upstream").services["upstream"].ready

    assert isinstance(other_port, int)
    assert port < other_port < 32_768


def test_targets_do_not_get_the_request_of_an_app() -> None:
    targets = [{"request": {"method": "POST", "url": "/"}}]
    plan = experiment(app_name="echo", request=RequestOptions(targets=targets))
    assert (plan.request.method, plan.request.expected_body) == ("GET", None)
    assert isinstance(plan.request, Request)


# --- lists of apps


def test_all_lists_of_apps_are_complete(capsys: pytest.CaptureFixture[str]) -> None:
    listed = descriptions(ServerOptions)["app_name"].partition("yours: ")[2]
    assert re.findall(r"\w+", listed.replace(" or ", ", ")) == list(BUNDLED)

    rows = re.findall(r"^\| `(\w+)` \|", (DOCS / "apps.md").read_text(), re.MULTILINE)
    assert rows == list(BUNDLED)

    assert run(["sweep", "--app-name", "nope"]) == 2
    assert f"choose one of {', '.join(BUNDLED)} (default" in capsys.readouterr().err
