"""Each mistake of a new user: one clear line with cause and fix, the documented exit code, the
rest still measured."""

from __future__ import annotations

import os
import socket
import textwrap
from pathlib import Path

import pytest

from .command import Command, Done, read_json

# A sweep looks for a way to limit servers before it looks at anything else.
pytestmark = pytest.mark.limits

BRIEFLY = ("--rates", 50, "--duration", "300ms", "--warmup", "0s", "--cooldown", "0s")

HELLO = """
    def app(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
        return [b"hi\\n"]
"""
# Dies only where waitress is what imports it, as a server does that cannot be configured.
DIES_IN_WAITRESS = """
    import os, sys

    if "waitress" in sys.modules:
        print("cannot open the licence file", file=sys.stderr, flush=True)
        os._exit(3)
"""


@pytest.fixture
def project(command: Command) -> Path:
    """The folder of a project with one good app."""
    write(command.folder / "shop.py", HELLO)
    return command.folder


def write(path: Path, text: str) -> None:
    path.write_text(textwrap.dedent(text))


def refused(done: Done) -> str:
    """The one line of a sweep that never began."""
    assert done.code == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("wsgiload: ")
    return line


def require_every_cell_failed(done: Done, count: int, step: str) -> str:
    """All cells are stored as failed by one cause, which is also shown; returns its message."""
    assert done.code == 97
    assert done.summary["status"] == "complete"
    assert len(done.cells) == len(done.summary["order"]) == count
    failures = [cell["failure"] for cell in done.cells.values()]
    assert {failure["step"] for failure in failures} == {step}
    assert all(cell["outcomes"] is None for cell in done.cells.values())
    message = str(failures[0]["message"])
    assert "\n" not in message
    assert f"failed: {message}" in done.err
    assert (done.run_dir / "report.html").is_file()
    return message


# --- refused before anything starts


def test_a_module_that_is_not_there_is_named_with_its_nearest_neighbour(
    command: Command, project: Path
) -> None:
    line = refused(command.run("sweep", "shp:app", *BRIEFLY))
    assert f"no module 'shp' in {project}" in line
    assert "did you mean shop:app?" in line
    assert not (project / ".wsgiload").exists()


def test_a_callable_that_is_not_there_is_named_with_its_nearest_neighbour(
    command: Command, project: Path
) -> None:
    line = refused(command.run("sweep", "shop:ap", *BRIEFLY))
    assert line == "wsgiload: module 'shop' has no 'ap'; did you mean shop:app?"


def test_something_that_is_not_callable_is_refused(command: Command, project: Path) -> None:
    write(project / "table.py", "app = {}")
    assert "table:app is not callable: it is of type dict" in refused(
        command.run("sweep", "table:app", *BRIEFLY)
    )


@pytest.mark.parametrize("app", ["shop", "shop.py", "./shop.py:app"])
def test_a_file_name_is_no_app(command: Command, project: Path, app: str) -> None:
    assert refused(command.run("sweep", app, *BRIEFLY)) == (
        f"wsgiload: APP {app!r} is not module:callable; write it as shop:app"
    )


def test_a_port_in_use_is_named_with_who_holds_it(command: Command, project: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        line = refused(command.run("sweep", "--port", port, "--servers", "wsgiref", *BRIEFLY))
    assert line == (
        f"wsgiload: cannot listen on port {port} of 127.0.0.1: Address already in use by process "
        f"{os.getpid()}; "
        "choose another --port, or omit it to use a free one"
    )


def test_an_unknown_server_is_named_with_its_nearest_neighbours(
    command: Command, project: Path
) -> None:
    line = refused(command.run("sweep", "--servers", "waitress,guncorn", *BRIEFLY))
    assert line.startswith("wsgiload: unknown server 'guncorn'; did you mean gunicorn")


@pytest.mark.parametrize(
    ("words", "says"),
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
def test_a_limit_that_cannot_be_is_refused_with_one_that_can(
    command: Command, project: Path, words: list[str], says: str
) -> None:
    assert says in refused(command.run("sweep", "--servers", "wsgiref", *words, *BRIEFLY))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rates", "100,abc"], "'abc' is not a rate"),
        (["--rates", "200:100:10"], "'200:100:10' is not a range from:to:step of rates"),
        (["--rates", "0"], "'0' is not a positive rate"),
        (["--duration", "0s"], "the duration must be longer than 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_load_that_cannot_be_is_refused_before_a_server_is_started(
    command: Command, project: Path, words: list[str], says: str
) -> None:
    assert says in refused(command.run("sweep", "--servers", "wsgiref", *BRIEFLY, *words))
    assert not (project / ".wsgiload").exists()


def test_an_unknown_key_of_a_file_is_named_with_its_nearest_neighbour(
    command: Command, project: Path
) -> None:
    (project / "wsgiload.toml").write_text("raets = [100]\n")
    line = refused(command.run("sweep", "shop:app"))
    assert line == "wsgiload: wsgiload.toml: unknown key 'raets'; did you mean rates?"


def test_an_interpreter_that_is_none_is_refused(command: Command, project: Path) -> None:
    line = refused(command.run("sweep", "shop:app", "--python", "/nonexistent/python", *BRIEFLY))
    assert "--python /nonexistent/python: no such interpreter" in line


def test_a_folder_for_runs_that_cannot_be_made_is_refused(command: Command, project: Path) -> None:
    line = refused(command.run("sweep", "--servers", "wsgiref", "--out", "shop.py/runs", *BRIEFLY))
    assert "cannot create the run directory" in line
    assert "choose another directory with --out" in line


# --- the app is at fault: every cell fails, and is stored


def test_a_syntax_error_is_told_with_its_file_and_line(command: Command, project: Path) -> None:
    write(project / "broken.py", "import os\n\ndef app(environ, start_response)\n    return []\n")
    done = command.run("sweep", "broken:app", "--servers", "waitress,wsgiref", "--rates", "50,100")
    message = require_every_cell_failed(done, 4, "import")
    assert f"SyntaxError: expected ':' at {project / 'broken.py'}:3" in message


def test_an_app_that_raises_while_it_is_imported_is_told_with_its_file_and_line(
    command: Command, project: Path
) -> None:
    write(
        project / "broken.py", 'import os\n\nDATABASE = os.environ["SHOP_DATABASE"]\napp = print\n'
    )
    done = command.run("sweep", "broken:app", "--servers", "wsgiref", *BRIEFLY)
    message = require_every_cell_failed(done, 1, "import")
    assert f"KeyError: 'SHOP_DATABASE' at {project / 'broken.py'}:3" in message


def test_what_an_app_starts_while_it_is_imported_is_ended_with_it(
    command: Command, project: Path
) -> None:
    starting = (
        'import subprocess\n\nsubprocess.Popen(["/bin/sleep", "600"], start_new_session=True)\n'
    )
    (project / "starting.py").write_text(starting + textwrap.dedent(HELLO))
    done = command.run("sweep", "starting:app", "--servers", "wsgiref", *BRIEFLY)
    assert done.cells["wsgiref@50#1"]["failure"] is None, (
        "command.run() has looked for what is left"
    )


# --- a server is at fault: its cells fail, the others are measured


@pytest.mark.servers
def test_a_server_that_exits_at_its_start_fails_alone(command: Command, project: Path) -> None:
    write(project / "licensed.py", DIES_IN_WAITRESS + HELLO)
    done = command.run("sweep", "licensed:app", "--servers", "waitress,wsgiref", *BRIEFLY)
    assert done.code == 97
    failed, measured = done.cells["waitress@50#1"], done.cells["wsgiref@50#1"]
    assert failed["failure"]["step"] == "start"
    assert failed["failure"]["message"].startswith(
        "waitress exited with code 3: cannot open the licence file"
    )
    assert "cannot open the licence file" in failed["failure"]["log_tail"]
    assert failed["server_exit"] == {"code": 3, "signal": None, "clean": False}
    assert measured["failure"] is None
    assert measured["outcomes"]["ok"] == measured["outcomes"]["scheduled"] > 0
    assert (
        "cannot open the licence file"
        in (done.run_dir / "server" / "waitress@50#1.log").read_text()
    )


def test_a_path_that_the_app_does_not_have_names_the_option(
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
    done = command.run("sweep", "empty:app", "--path", "/json", "--servers", "wsgiref", *BRIEFLY)
    message = require_every_cell_failed(done, 1, "readiness")
    assert (
        message
        == "wsgiref: GET /json returned status 404; choose a path that the app serves (--path)"
    )


def test_a_server_that_dies_under_load_keeps_what_was_measured_until_then(
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
    done = command.run(
        "sweep",
        "mortal:app",
        "--servers",
        "wsgiref",
        "--rates",
        100,
        "--warmup",
        "0s",
        "--duration",
        "20s",
    )
    assert done.code == 97
    cell = done.cells["wsgiref@100#1"]
    assert cell["failure"]["step"] == "load"
    assert cell["failure"]["message"].startswith("wsgiref exited with code 7")
    assert cell["server_exit"]["code"] == 7
    assert 0 < cell["outcomes"]["ok"] < 20, "the probes took some of the twenty answers"
    assert cell["outcomes"]["scheduled"] < 1000, "the load went on without a server"
    assert read_json(done.run_dir / "load" / "wsgiref@100#1.json")["outcomes"] == cell["outcomes"]
