"""An option is declared once: its flag, its key, its variable, the plan and the facts follow."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click
import pytest

from wsgiload.cli import run, wsgiload
from wsgiload.cli._declared import declared_options, given_options
from wsgiload.cli.reference import options_page
from wsgiload.documents.load_plan import ClosedLoop, LoadPlan, OpenLoop, Phases
from wsgiload.experiment.plan import experiment_facts
from wsgiload.loads.options import LoadSettings, names_of
from wsgiload.loads.public_options import LoadOptions
from wsgiload.options import DURATION, Whole, option

from .test_summary import EXPERIMENT

# Options that the plan has in another form, or that Python itself follows.
CONVERTED = {"spin", "check_thresholds", "max_duration", "warmup_requests"}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a test.

    Args:
        patience: Time to wait. Default: for ever.
        tries: Number of tries.
        tags: A tag (repeatable).
        inner: Not a flag.
    """

    patience: float | None = option(None, "Load", DURATION)
    tries: int = option(3, "Load", Whole(1, 9), "-x", "--attempts", only=("load",))
    tags: tuple[str, ...] = option((), "Output", repeatable=True, collect=tuple)
    inner: int = 7


def parsed(command_name: Any, words: list[str], defaults: Options | None = None) -> Options:
    made: list[Options] = []

    @click.command()
    @declared_options(defaults or Options(), command_name)
    def command(**flags: Any) -> None:
        made.append(given_options(Options, flags))

    command.main(words, standalone_mode=False)
    return made[0]


def test_a_declaration_makes_a_flag_and_its_value() -> None:
    words = ["--patience", "1m", "-x", "5", "--tags", "a", "--tags", "b"]
    assert parsed("load", words) == Options(patience=60.0, tries=5, tags=("a", "b"))
    assert parsed("load", []) == Options()
    assert parsed("load", [], Options(patience=0.25)) == Options(patience=0.25)


def test_a_command_has_only_its_options_within_their_bounds() -> None:
    with pytest.raises(click.NoSuchOption):
        parsed("sweep", ["--attempts", "5"])
    with pytest.raises(click.BadParameter, match="10 is out of range"):
        parsed("load", ["--attempts", "10"])


def test_every_option_of_a_load_reaches_its_plan() -> None:
    parts = (LoadPlan, OpenLoop, ClosedLoop, Phases)
    keys = {key for part in parts for key in part.__struct_fields__}
    names = {one.name: names_of(one)[1] for one in fields(LoadOptions)}
    assert {name for name, key in names.items() if key not in keys} == CONVERTED


@pytest.mark.parametrize("by", ["flag", "key", "variable"])
def test_an_option_is_set_in_three_ways(
    by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if by == "key":
        Path("wsgiload.toml").write_text('deadline = "250ms"\n')
    if by == "variable":
        monkeypatch.setenv("WSGILOAD_DEADLINE", "250ms")
    flags = ["--deadline", "250ms"] if by == "flag" else []
    assert run(["load", "http://127.0.0.1:9/", *flags, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["deadline_ns"] == 250_000_000


@pytest.mark.parametrize(
    ("setting", "words", "message"),
    [
        ("port=80000", "", "80000 is out of range"),
        ("check_threshold=app-calls.wran=1", "", "app-calls has no threshold 'wran'; choose warn"),
        (
            "warmup_requests=9",
            "--connections 5",
            "--warmup-requests requires --rates; use --warmup",
        ),
        ("expect_length=5", "--grid app=cpu", "--grid app= and --expect-length are mutually"),
        (
            "python_version=3.11",
            "--grid python=3.11",
            "--grid python= and --python-version are mut",
        ),
        ("intervene=cpu", "--rates 100 --budget 5m", "--budget and --intervene are mutually"),
    ],
)
def test_a_variable_is_checked_like_a_flag(
    setting: str,
    words: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key, _, value = setting.partition("=")
    monkeypatch.setenv(f"WSGILOAD_{key.upper()}", value)
    assert run(["sweep", *words.split(), "--dry-run"]) == 2
    assert message in capsys.readouterr().err


def test_the_help_names_what_is_rarely_needed_and_the_reference_explains_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["sweep", "--servers", "waitress", "--dry-run", "--json", "-"]
    assert run([*words, "--name", "my shop"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "my-shop"

    assert run(["sweep", "--help"]) == 0
    explained, _, named = capsys.readouterr().out.partition("Rarely needed:")
    assert "--name" in named and "--name" not in explained


def test_the_facts_have_every_option_that_was_set_and_null_for_those_without_effect() -> None:
    load = LoadSettings(duration_ns=1, deadline=0.5, threads=2, think_time=3.0, seed=9)
    facts = experiment_facts(replace(EXPERIMENT, load=load), ())
    assert facts.load_options == {"deadline": 0.5, "threads": 2}
    assert (facts.think_time_s, facts.on_busy) == (None, "grow")


def test_the_command_line_has_every_declared_option() -> None:
    shown = {param.name for name in ("load", "sweep") for param in wsgiload.commands[name].params}
    declared = {
        "check_threshold" if one.name == "check_thresholds" else one.name
        for one in fields(LoadOptions)
    }
    assert declared - shown == set()


def test_the_reference_of_options_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "options.md"
    assert page.read_text(encoding="utf-8") == options_page(), "run `make schemas`"
