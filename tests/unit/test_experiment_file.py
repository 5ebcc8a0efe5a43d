"""``wsgiload run``: experiment files set the options of a sweep; errors name the file, the key and
a fix."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest

from wsgiload.cli import run, wsgiload
from wsgiload.cli._options import options_by_name

S = 1_000_000_000
FULL = """
title = "Two servers"
source = "our wiki"
notes = ["With the database off."]
app-name = "json1k"
servers = ["waitress", "gunicorn-sync"]
rates = [100, "200/s"]
duration = "3s"
header = ["A: 1", "B: two, words"]
show = ["A", "b"]
server-args = "waitress=--ident=x"
grid = ["threads=1,2"]
keepalive = "off"
compare = true
memory = "256MiB"

[scale.quick]
rates = "100"
duration = 1
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory without the caller's settings."""
    monkeypatch.chdir(tmp_path)
    for name in ("CONFIG", "DURATION", "SERVERS", "RATES"):
        monkeypatch.delenv(f"WSGILOAD_{name}", raising=False)
    return tmp_path


class Runner:
    """Writes an experiment file and runs it with ``--dry-run``."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path, self._capsys = directory / "mine.toml", capsys
        self.err = ""

    def __call__(self, text: str, *options: str) -> dict[str, Any]:
        self.path.write_text(text)
        exit_code = run(["run", "mine.toml", *options, "--dry-run", "--json", "-"])
        output = self._capsys.readouterr()
        self.err = output.err
        assert exit_code == 0, output.err
        plan: dict[str, Any] = json.loads(output.out)
        return plan

    def error(self, text: str, *options: str) -> str:
        self.path.write_text(text)
        assert run(["run", "mine.toml", *options, "--dry-run", "--json", "-"]) == 2
        output = self._capsys.readouterr()
        assert output.out == ""
        (line,) = output.err.splitlines()
        return line.removeprefix("wsgiload: ")


@pytest.fixture
def dry_run(directory: Path, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(directory, capsys)


def test_a_file_sets_the_same_options_as_the_flags(dry_run: Runner) -> None:
    plan = dry_run(FULL)
    assert (plan["title"], plan["source"]) == ("Two servers", "our wiki")
    assert (plan["notes"], plan["name"]) == (["With the database off."], "mine")
    assert plan["app"] == "json1k:app"
    assert [level["rate_per_s"] for level in plan["levels"]] == [100, 200]
    assert (plan["load"]["duration_ns"], plan["load"]["keepalive"]) == (3 * S, "off")
    assert plan["request"]["headers"] == [["A", "1"], ["B", "two, words"]]
    assert plan["limits"]["memory_bytes"] == 256 * 1024**2
    assert plan["adjustments"][0]["server"] == "waitress"
    assert plan["servers"] == ["waitress-t1", "waitress-t2", "gunicorn-sync"]
    assert plan["runs"] >= 6


def test_the_command_line_overrides_the_file_and_wsgiload_toml_is_ignored(
    directory: Path, dry_run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "wsgiload.toml").write_text('duration = "9s"\ncpus = 0.5\n')
    plan = dry_run('duration = "3s"\n', "--duration", "2s")
    assert plan["load"]["duration_ns"] == 2 * S
    assert plan["limits"]["cpus"] == 1
    monkeypatch.setenv("WSGILOAD_DURATION", "5s")
    monkeypatch.setenv("WSGILOAD_NAME", "other")
    plan = dry_run('duration = "3s"\n')
    assert (plan["load"]["duration_ns"], plan["name"]) == (5 * S, "other")


def test_replacing_servers_drops_their_settings(dry_run: Runner) -> None:
    text = """
servers = ["waitress", "gunicorn-sync", "gunicorn-gthread"]
server-args = ["waitress=--ident=x", "gunicorn=--log-level error"]
"""

    assert len(dry_run(text)["adjustments"]) == 2

    (remaining,) = dry_run(text, "--servers", "mine=gunicorn-sync")["adjustments"]
    assert remaining["server"] == "gunicorn"
    assert dry_run(text, "--servers", "cheroot")["adjustments"] == []

    line = dry_run.error(text.replace("waitress=", "bjoern="))
    assert line.startswith("mine.toml: server_args: --server-args bjoern: not a measured server")


def test_a_scale_overrides_options_with_a_note(dry_run: Runner) -> None:
    plan = dry_run(FULL, "--scale", "quick")
    assert [level["rate_per_s"] for level in plan["levels"]] == [100]
    assert plan["load"]["duration_ns"] == S

    note = "scale quick: rates 100 instead of 100,200/s; duration 1 instead of 3s"
    assert plan["notes"][-1] == note
    assert dry_run.err == f"wsgiload: {note}\n"

    line = dry_run.error(FULL, "--scale", "huge")
    assert line == "mine.toml: unknown scale 'huge'; choose quick"
    assert dry_run.error("", "--scale", "quick").endswith(
        "add a table [scale.quick], or omit --scale"
    )


def test_user_servers_and_services_are_tables(dry_run: Runner) -> None:
    plan = dry_run(
        'app-name = "hello"\n[servers.mine]\ncommand = "python3 -m http.server {port}"\n'
        '[services.db]\ncommand = "sleep 60"\n'
    )
    assert plan["servers"] == ["mine"]
    assert list(plan["services"]) == ["db"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ratess = [1]", "mine.toml: unknown key 'ratess'; did you mean rates?"),
        ("resume = '.'", "mine.toml: unknown key 'resume'; "),
        ("colour = 1", "mine.toml: unknown key 'colour'; see `wsgiload sweep --help`"),
        ("[scale.quick]\nrats = 1", "mine.toml: [scale.quick]: unknown key 'rats'; did you mean"),
        ("scale = 3", "mine.toml: scale: 3 is not a table; write [scale.NAME]"),
        ("title = 3", "mine.toml: title: 3 is not a string; write it like title ="),
        ("notes = [1]", "mine.toml: notes: 1 is not a list of strings; write it like notes ="),
        ("servers = ['guncorn']", "mine.toml: servers: unknown server 'guncorn'; did you mean"),
        ("servers = []", "mine.toml: servers: --servers is empty; "),
        ("app-name = 'nope'", "mine.toml: app_name: unknown bundled app 'nope'; choose one of"),
        ("rates = [0]", "mine.toml: rates: '0' is not a positive rate; write a list like"),
        ("rates = []", "mine.toml: rates: '' is not a rate; write a list like"),
        ("rates = [1e9]", "mine.toml: rates: the rate must be above 0 and at most 10,000,000"),
        ("connections = [-5]", "mine.toml: connections: '-5' is not a positive number of"),
        ("connections = 2.5", "mine.toml: connections: '2.5' is not a number of connections"),
        ("rates = 5\nconnections = 5", "mine.toml: rates: --rates and --connections are mutually"),
        ("duration = 'long'", "mine.toml: duration: 'long' is not a duration; write it like 30s"),
        ("duration = 2026-01-01", "mine.toml: duration: the value has the wrong type"),
        ("runs = 0", "mine.toml: runs: 0 is out of range (1 to 1,000)"),
        ("profile = 'fast'", "mine.toml: profile: 'fast' is not one of 'tuned', 'stock'"),
        ("workers = { a = 1 }", "mine.toml: workers: the value has the wrong type"),
        ("cpus = 4096", "mine.toml: cpus: --cpus 4096 exceeds the "),
        ("path = 'json'", "mine.toml: path: the path 'json' must start with a slash; write"),
        ("[servers.x]\ncomand = 'y'", "mine.toml: [servers.x]: unknown key 'comand'; did you"),
        ("rates = [", "mine.toml is not valid TOML: "),
    ],
    ids=lambda value: value[:24],
)
def test_an_error_is_one_line_with_file_key_and_fix(
    dry_run: Runner, text: str, message: str
) -> None:
    assert dry_run.error(text).startswith(message)


def test_an_error_on_the_command_line_does_not_name_the_file(dry_run: Runner) -> None:
    line = dry_run.error("servers = ['waitress']", "--servers", "guncorn")
    assert line == "unknown server 'guncorn'; did you mean gunicorn?"
    assert dry_run.error("", "--cpus", "4096").startswith("--cpus 4096 exceeds")


def test_a_missing_file_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "nowhere.toml"]) == 2
    stderr = capsys.readouterr().err
    assert stderr == "wsgiload: cannot read nowhere.toml: No such file or directory\n"
    assert run(["run"]) == 2
    assert "Missing argument 'FILE'" in capsys.readouterr().err


def test_run_accepts_all_options_of_sweep() -> None:
    def flags(name: str) -> set[str]:
        params = wsgiload.commands[name].params
        return {flag for param in params if isinstance(param, click.Option) for flag in param.opts}

    assert flags("sweep") - flags("run") == {"--resume", "--config"}
    assert flags("run") - flags("sweep") == {"--scale"}
    # Under its main name, not under an alias.
    assert {"targets", "rates", "duration"} <= options_by_name(wsgiload.commands["run"]).keys()


def test_the_example_in_the_documentation_is_valid(dry_run: Runner) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "experiment-files.md").read_text()
    (text,) = re.findall(r"^```toml\n(.*?)^```", docs, re.MULTILINE | re.DOTALL)
    plan = dry_run(text, "--scale", "quick")
    assert plan["title"] in docs
    assert plan["notes"][-1].startswith("scale quick: ")
