"""Precedence of options: command line, environment, wsgiload.toml, pyproject.toml, default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wsgiload.cli import run

SECOND_NS = 1_000_000_000
URL = "http://127.0.0.1:9/"


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory without the caller's environment variables."""
    monkeypatch.chdir(tmp_path)
    for name in ("CONFIG", "DURATION", "SEED", "RATES", "HEADER", "SERVERS", "JSON"):
        monkeypatch.delenv(f"WSGILOAD_{name}", raising=False)
    return tmp_path


class DryRun:
    """Runs a command with ``--dry-run`` and returns its plan or its error."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> dict[str, Any]:
        assert run([*arguments, "--dry-run", "--json", "-"]) == 0, self._capsys.readouterr().err
        plan: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return plan

    def error_of(self, *arguments: str) -> str:
        assert run([*arguments, "--dry-run", "--json", "-"]) == 2
        output = self._capsys.readouterr()
        assert output.out == ""

        lines = output.err.splitlines()
        assert len(lines) == 1, lines
        return lines[0]


@pytest.fixture
def dry_run(capsys: pytest.CaptureFixture[str]) -> DryRun:
    return DryRun(capsys)


def duration_s(plan: dict[str, Any]) -> float:
    return float(plan["load"]["duration_ns"] / SECOND_NS)


def test_each_layer_overrides_the_ones_below_it(
    working_directory: Path, dry_run: DryRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert duration_s(dry_run("sweep", "--runs", "1")) == 10, "the default"

    (working_directory / "pyproject.toml").write_text(
        '[tool.wsgiload]\nduration = "2s"\nseed = 22\nruns = 2\n'
    )
    assert duration_s(dry_run("sweep")) == 2

    (working_directory / "wsgiload.toml").write_text('duration = "3s"\nseed = 33\n')
    assert duration_s(dry_run("sweep")) == 3

    monkeypatch.setenv("WSGILOAD_DURATION", "4s")
    assert duration_s(dry_run("sweep")) == 4

    plan = dry_run("sweep", "--duration", "5s")
    assert duration_s(plan) == 5
    assert (plan["seed"], plan["runs"]) == (33, 2), (
        "a layer overrides single keys, not the whole layer below it"
    )


def test_a_named_file_replaces_wsgiload_toml(
    working_directory: Path, dry_run: DryRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    (working_directory / "wsgiload.toml").write_text('duration = "3s"\nruns = 3\n')
    (working_directory / "other.toml").write_text('duration = "7s"\n')

    for plan in (
        dry_run("sweep", "--config", "other.toml"),
        dry_run("sweep", "--config=other.toml"),
    ):
        assert (duration_s(plan), plan["runs"]) == (7, 1)

    monkeypatch.setenv("WSGILOAD_CONFIG", "other.toml")
    assert duration_s(dry_run("sweep")) == 7


def test_a_command_table_overrides_the_top_level_for_this_command_only(
    working_directory: Path, dry_run: DryRun
) -> None:
    (working_directory / "wsgiload.toml").write_text(
        'duration = "2s"\n[sweep]\nduration = "3s"\n[load]\nseed = 9\n'
    )
    assert duration_s(dry_run("sweep")) == 3
    load = dry_run("load", URL)
    assert load["phases"]["measure_ns"] == 2 * SECOND_NS
    assert load["seed"] == 9
    assert dry_run("sweep")["seed"] == 1


def test_a_top_level_key_applies_only_to_commands_with_the_option(
    working_directory: Path, dry_run: DryRun
) -> None:
    (working_directory / "wsgiload.toml").write_text(
        'rates = [100, 200]\nrate = 50\nservers = ["wsgiref", "waitress"]\n'
    )
    sweep, load = dry_run("sweep"), dry_run("load", URL)
    assert [level["rate_per_s"] for level in sweep["levels"]] == [100, 200]
    assert sweep["servers"] == ["wsgiref", "waitress"]
    assert load["load"]["open"]["rate_per_s"] == 50


@pytest.mark.parametrize(
    "value", ["[100, 200, 300]", '"100,200,300"', '"100:300:100"', '["100:300:100"]']
)
def test_a_list_is_written_as_toml_or_as_on_the_command_line(
    working_directory: Path, dry_run: DryRun, value: str
) -> None:
    (working_directory / "wsgiload.toml").write_text(f"rates = {value}\n")
    assert [level["rate_per_s"] for level in dry_run("sweep")["levels"]] == [100, 200, 300]


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ('"Accept: 1"', [["Accept", "1"]]),
        (
            '["TE: 1", "Date: two words, one comma"]',
            [["TE", "1"], ["Date", "two words, one comma"]],
        ),
    ],
)
def test_a_repeatable_option_takes_one_value_or_a_list(
    working_directory: Path, dry_run: DryRun, value: str, fields: list[list[str]]
) -> None:
    (working_directory / "wsgiload.toml").write_text(f"header = {value}\n")
    assert dry_run("load", URL)["headers"] == fields


def test_a_header_in_the_environment_may_have_spaces(
    dry_run: DryRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSGILOAD_HEADER", "Accept: text/html; q=1\nRange: 2")
    assert dry_run("load", URL)["headers"] == [["Accept", "text/html; q=1"], ["Range", "2"]]


@pytest.mark.parametrize("name", ["max-connections", "max_connections"])
def test_a_key_may_have_dashes_or_underscores(
    working_directory: Path, dry_run: DryRun, name: str
) -> None:
    (working_directory / "wsgiload.toml").write_text(f"{name} = 77\n")
    assert dry_run("sweep")["load"]["max_connections"] == 77


def test_a_key_may_differ_from_the_parameter_name(
    working_directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (working_directory / "wsgiload.toml").write_text('json = "plan.json"\n')

    assert run(["load", URL, "--dry-run"]) == 0
    assert json.loads((working_directory / "plan.json").read_text())["url"] == URL

    monkeypatch.setenv("WSGILOAD_JSON", "from-environment.json")
    assert run(["load", URL, "--dry-run"]) == 0
    assert (working_directory / "from-environment.json").exists()
    assert capsys.readouterr().out == ""


def test_the_files_are_read_from_the_directory_of_the_app(
    working_directory: Path, dry_run: DryRun
) -> None:
    project = working_directory / "project"
    project.mkdir()
    (project / "wsgiload.toml").write_text("runs = 4\n")
    assert dry_run("sweep", "--chdir", "project")["runs"] == 4
    assert dry_run("sweep")["runs"] != 4


def test_a_project_file_without_a_wsgiload_table_is_ignored(
    working_directory: Path, dry_run: DryRun
) -> None:
    (working_directory / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.other]\nraets = 1\n'
    )
    assert dry_run("sweep")["runs"] != 4


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("wsgiload.toml", "raets = 1\n", "wsgiload.toml: unknown key 'raets'; did you mean rates?"),
        (
            "wsgiload.toml",
            "[sweep]\nraets = 1\n",
            "wsgiload.toml: [sweep]: unknown key 'raets'; did you mean rates?",
        ),
        (
            "wsgiload.toml",
            "[load]\nraets = 1\n",
            "wsgiload.toml: [load]: unknown key 'raets'; did you mean rate?",
        ),
        (
            "wsgiload.toml",
            "[swep]\nruns = 1\n",
            "wsgiload.toml: unknown key 'swep'; did you mean sweep?",
        ),
        (
            "wsgiload.toml",
            "zzz = 1\n",
            "wsgiload.toml: unknown key 'zzz'; see `wsgiload sweep --help`",
        ),
        (
            "wsgiload.toml",
            "sweep = 1\n",
            "wsgiload.toml: 'sweep' is the name of a command; put its options in a [sweep] table",
        ),
        ("wsgiload.toml", "runs = \n", "wsgiload.toml is not valid TOML: "),
        (
            "wsgiload.toml",
            "duration = true\n",
            "Invalid value for '-d' / '-z' / '--duration': True is not a valid value",
        ),
        (
            "wsgiload.toml",
            "duration = {a = 1}\n",
            "Invalid value for '-d' / '-z' / '--duration': {'a': 1} is not a valid value",
        ),
        (
            "wsgiload.toml",
            'duration = "soon"\n',
            "Invalid value for '-d' / '-z' / '--duration': 'soon' is not a",
        ),
        (
            "pyproject.toml",
            "[tool.wsgiload]\nraets = 1\n",
            "pyproject.toml: unknown key 'raets'; did you mean rates?",
        ),
        (
            "pyproject.toml",
            "[tool]\nwsgiload = 5\n",
            "pyproject.toml: tool.wsgiload is not a table",
        ),
    ],
)
def test_an_error_in_a_file_is_one_line_with_file_and_key(
    working_directory: Path, dry_run: DryRun, name: str, text: str, message: str
) -> None:
    (working_directory / name).write_text(text)
    assert dry_run.error_of("sweep").startswith(f"wsgiload: {message}")


def test_a_file_that_is_not_utf8_is_an_error_in_one_line(
    working_directory: Path, dry_run: DryRun
) -> None:
    (working_directory / "wsgiload.toml").write_bytes(b"\xff\xfe\x00")
    assert dry_run.error_of("sweep").startswith("wsgiload: wsgiload.toml is not valid TOML: ")


def test_a_named_file_must_exist_but_not_the_default_one(dry_run: DryRun) -> None:
    assert (
        dry_run.error_of("sweep", "--config", "gone.toml")
        == "wsgiload: cannot read gone.toml: No such file or directory"
    )


def test_an_error_in_the_environment_names_the_option(
    dry_run: DryRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSGILOAD_DURATION", "bogus")
    assert "'--duration': 'bogus' is not a duration" in dry_run.error_of("sweep")
