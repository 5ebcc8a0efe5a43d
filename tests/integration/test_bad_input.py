"""Mistakes of new users get a one-line message with cause and fix and the documented exit code, and
everything else is still measured."""

from __future__ import annotations

import os
import shlex
import socket
import textwrap
from pathlib import Path

import pytest

from .command import Command, CommandResult, read_json

# A sweep tests whether limits can be enforced before it validates anything else.
pytestmark = pytest.mark.limits

BRIEFLY = ("--rates", 50, "--duration", "300ms", "--warmup", "0s", "--cooldown", "0s")

HELLO = """
    def app(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
        return [b"hi\\n"]
"""
# Fails only in waitress, like a server with an invalid configuration.
DIES_IN_WAITRESS = """
    import os, sys

    if "waitress" in sys.modules:
        print("cannot open the licence file", file=sys.stderr, flush=True)
        os._exit(3)
"""


@pytest.fixture
def project(command: Command) -> Path:
    """A project folder with one working app."""
    write(command.folder / "shop.py", HELLO)
    return command.folder


def write(path: Path, text: str) -> None:
    path.write_text(textwrap.dedent(text))


def error_of(result: CommandResult) -> str:
    """The one-line error of a sweep that was rejected."""
    assert result.code == 2
    assert result.out == ""
    (line,) = result.err.splitlines()
    assert line.startswith("wsgiload: ")
    return line


def require_every_cell_failed(result: CommandResult, count: int, step: str) -> str:
    """All cells failed at this step and are stored; returns their error message, which stderr
    contains, too."""
    assert result.code == 97
    assert result.summary["status"] == "complete"
    assert len(result.cells) == count <= len(result.summary["order"])  # a race ends early

    failures = [cell["failure"] for cell in result.cells.values()]
    assert {failure["step"] for failure in failures} == {step}
    assert all(cell["outcomes"] is None for cell in result.cells.values())

    message = str(failures[0]["message"])
    assert "\n" not in message
    assert f"failed: {message}" in result.err
    assert (result.run_dir / "report.html").is_file()

    return message


# --- rejected before anything starts


def test_an_unknown_module_is_reported_with_a_suggestion(command: Command, project: Path) -> None:
    line = error_of(command.run("sweep", "shp:app", *BRIEFLY))
    assert f"no module 'shp' in {project}" in line
    assert "did you mean shop:app?" in line
    assert not (project / ".wsgiload").exists()


def test_an_unknown_callable_is_reported_with_a_suggestion(command: Command, project: Path) -> None:
    line = error_of(command.run("sweep", "shop:ap", *BRIEFLY))
    assert line == "wsgiload: module 'shop' has no 'ap'; did you mean shop:app?"


def test_an_object_that_is_not_callable_is_rejected(command: Command, project: Path) -> None:
    write(project / "table.py", "app = {}")
    assert "table:app is not callable: it is of type dict" in error_of(
        command.run("sweep", "table:app", *BRIEFLY)
    )


@pytest.mark.parametrize("app", ["shop", "shop.py", "./shop.py:app"])
def test_a_file_name_as_app_is_rejected_with_the_correct_form(
    command: Command, project: Path, app: str
) -> None:
    assert error_of(command.run("sweep", app, *BRIEFLY)) == (
        f"wsgiload: APP {app!r} is not module:callable; write it as shop:app"
    )


def test_a_port_in_use_is_reported_with_the_process_that_uses_it(
    command: Command, project: Path
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        line = error_of(command.run("sweep", "--port", port, "--servers", "wsgiref", *BRIEFLY))

    assert line == (
        f"wsgiload: cannot listen on port {port} of 127.0.0.1: Address already in use by process "
        f"{os.getpid()}; "
        "choose another --port, or omit it to use a free one"
    )


def test_an_unknown_server_is_reported_with_suggestions(command: Command, project: Path) -> None:
    line = error_of(command.run("sweep", "--servers", "waitress,guncorn", *BRIEFLY))
    assert line.startswith("wsgiload: unknown server 'guncorn'; did you mean gunicorn")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--cpus", "9999"], "--cpus 9999 exceeds the "),
        (
            ["--cpus", "0.0001"],
            "0.0001 CPUs requested, but the kernel's minimum is 0.01; use --cpus 0.01",
        ),
        (
            ["--memory", "1KiB"],
            "--memory of 1024 bytes is too small to start a server; use --memory 4MiB or more",
        ),
        (["--server-cpus", "9999"], "--server-cpus names 9999, but only "),
        (["--client-cpus", "9999"], "--client-cpus names 9999, but only "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_impossible_limit_is_rejected_with_a_possible_one(
    command: Command, project: Path, args: list[str], expected: str
) -> None:
    assert expected in error_of(command.run("sweep", "--servers", "wsgiref", *args, *BRIEFLY))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--rates", "100,abc"], "'abc' is not a rate"),
        (["--rates", "200:100:10"], "'200:100:10' is not a range from:to:step of rates"),
        (["--rates", "0"], "'0' is not a positive rate"),
        (["--duration", "0s"], "the duration must be longer than 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_impossible_load_is_rejected_before_a_server_starts(
    command: Command, project: Path, args: list[str], expected: str
) -> None:
    assert expected in error_of(command.run("sweep", "--servers", "wsgiref", *BRIEFLY, *args))
    assert not (project / ".wsgiload").exists()


def test_an_unknown_key_in_a_configuration_file_is_reported_with_a_suggestion(
    command: Command, project: Path
) -> None:
    (project / "wsgiload.toml").write_text("raets = [100]\n")
    line = error_of(command.run("sweep", "shop:app"))
    assert line == "wsgiload: wsgiload.toml: unknown key 'raets'; did you mean rates?"


def test_a_missing_interpreter_is_rejected(command: Command, project: Path) -> None:
    line = error_of(command.run("sweep", "shop:app", "--python", "/nonexistent/python", *BRIEFLY))
    assert "--python /nonexistent/python: no such interpreter" in line


def test_an_impossible_directory_for_runs_is_rejected(command: Command, project: Path) -> None:
    line = error_of(command.run("sweep", "--servers", "wsgiref", "--out", "shop.py/runs", *BRIEFLY))
    assert "cannot create the run directory" in line
    assert "choose another directory with --out" in line


# --- the app is at fault: every cell fails and is stored


def test_a_syntax_error_is_reported_with_its_file_and_line(command: Command, project: Path) -> None:
    write(project / "broken.py", "import os\n\ndef app(environ, start_response)\n    return []\n")
    result = command.run(
        "sweep", "broken:app", "--servers", "waitress,wsgiref", "--rates", "50,100"
    )
    message = require_every_cell_failed(result, 8, "import")
    assert f"SyntaxError: expected ':' at {project / 'broken.py'}:3" in message


def test_an_exception_during_import_is_reported_with_its_file_and_line(
    command: Command, project: Path
) -> None:
    write(
        project / "broken.py", 'import os\n\nDATABASE = os.environ["SHOP_DATABASE"]\napp = print\n'
    )
    result = command.run("sweep", "broken:app", "--servers", "wsgiref", *BRIEFLY)
    message = require_every_cell_failed(result, 1, "import")
    assert f"KeyError: 'SHOP_DATABASE' at {project / 'broken.py'}:3" in message


def test_processes_started_during_import_are_ended(command: Command, project: Path) -> None:
    starting = (
        'import subprocess\n\nsubprocess.Popen(["/bin/sleep", "600"], start_new_session=True)\n'
    )
    (project / "starting.py").write_text(starting + textwrap.dedent(HELLO))

    # `run` fails if a process is left.
    result = command.run("sweep", "starting:app", "--servers", "wsgiref", *BRIEFLY)
    assert result.cells["wsgiref@50#1"]["failure"] is None


# --- a server is at fault: its cells fail, the others are measured


@pytest.mark.servers
def test_a_server_that_exits_during_startup_fails_alone(command: Command, project: Path) -> None:
    write(project / "licensed.py", DIES_IN_WAITRESS + HELLO)
    result = command.run("sweep", "licensed:app", "--servers", "waitress,wsgiref", *BRIEFLY)

    assert result.code == 97

    failed, measured = result.cells["waitress@50#1"], result.cells["wsgiref@50#1"]
    assert failed["failure"]["step"] == "start"
    assert failed["failure"]["message"].startswith(
        "waitress exited with code 3: cannot open the licence file"
    )
    assert "cannot open the licence file" in failed["failure"]["log_tail"]
    assert failed["server_exit"] == {
        "code": 3,
        "signal": None,
        "clean": False,
        "stopped_by": None,
    }
    assert measured["failure"] is None
    assert measured["outcomes"]["ok"] == measured["outcomes"]["scheduled"] > 0
    assert (
        "cannot open the licence file"
        in (result.run_dir / "server" / "waitress@50#1.log").read_text()
    )


def test_an_unknown_path_is_reported_with_the_option_that_sets_it(
    command: Command, project: Path
) -> None:
    write(
        project / "empty.py",
        """
        def app(environ, start_response):
            start_response("404 Not Found", [("Content-Length", "0")])
            return []
        """,
    )
    result = command.run("sweep", "empty:app", "--path", "/json", "--servers", "wsgiref", *BRIEFLY)

    message = require_every_cell_failed(result, 1, "readiness")
    assert (
        message
        == "wsgiref: GET /json returned status 404; choose a path that the app serves (--path)"
    )


def test_a_server_that_dies_under_load_keeps_its_measurements(
    command: Command, project: Path
) -> None:
    write(
        project / "mortal.py",
        """
        import os

        left = 20

        def app(environ, start_response):
            global left
            left -= 1
            if left < 0:
                os._exit(7)
            start_response("200 OK", [("Content-Length", "3")])
            return [b"hi\\n"]
        """,
    )
    args = shlex.split("--servers wsgiref --rates 100 --warmup 0s --duration 20s")
    result = command.run("sweep", "mortal:app", *args)

    assert result.code == 97
    cell = result.cells["wsgiref@100#1"]
    assert cell["failure"]["step"] == "load"
    assert cell["failure"]["message"].startswith("wsgiref exited with code 7")
    assert cell["server_exit"]["code"] == 7
    assert 0 < cell["outcomes"]["ok"] < 20, "the probes got some of the 20 responses"
    assert cell["outcomes"]["scheduled"] < 1000, "the load continued without a server"
    assert read_json(result.run_dir / "load" / "wsgiref@100#1.json")["outcomes"] == cell["outcomes"]
