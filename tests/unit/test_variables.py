"""Environment variables of the user: parsing, and the redaction of secrets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wsgiload import ServerOptions
from wsgiload.cli import run
from wsgiload.errors import EXIT_OK, UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.redaction import redacted
from wsgiload.experiment.variables import (
    parse_variable,
    read_variables,
    variables_of,
    with_secrets,
    without_secrets,
)
from wsgiload.host.cpus import CpuPlan
from wsgiload.results.stored_plan import raw_plan, stored_plan

FILE = """\
# of the shop
DEBUG=0\r
export NAME = x
DATABASE_URL=postgres://shop:pa55@db/shop   # with a comment
SPACED="two words"  # another
RAW='#1 and $HOME'
ESCAPED="a\\nb"
KEY="-----BEGIN KEY-----
abc
-----END KEY-----
"
URL=http://${NAME}/
EMPTY=
"""


def test_a_file_is_read_like_docker_compose_does(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("\ufeff" + FILE)
    assert read_variables(path) == {
        "DEBUG": "0",
        "NAME": "x",
        "DATABASE_URL": "postgres://shop:pa55@db/shop",
        "SPACED": "two words",
        "RAW": "#1 and $HOME",
        "ESCAPED": "a\nb",
        "KEY": "-----BEGIN KEY-----\nabc\n-----END KEY-----\n",
        "URL": "http://x/",
        "EMPTY": "",
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A", ".env:2 is not NAME=VALUE"),
        ("1A=5e3c7e7", ".env:2 is not NAME=VALUE"),
        ("A='x", ".env:2 is not NAME=VALUE"),
    ],
)
def test_an_invalid_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / ".env"
    path.write_text(f"B=1\n{line}\n")
    with pytest.raises(UsageError, match=re.escape(message)) as raised:
        read_variables(path)
    assert "5e3c7e7" not in str(raised.value)
    with pytest.raises(UsageError, match="cannot read"):
        read_variables(tmp_path / "none")


def test_later_values_override_earlier_ones(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_text("A=1\nB=1\nC=1\n")
    second.write_text("B=2\nC=2\n")
    assert variables_of({"C": "3"}, [first, second]) == {"A": "1", "B": "2", "C": "3"}
    assert parse_variable("A=b=c") == ("A", "b=c")


def test_secrets_are_redacted_and_restored_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variables = {
        "DEBUG": "0",
        "SECRET_KEY": "hush",
        "DATABASE_URL": "postgres://shop:hush@db/shop",
    }
    stored = without_secrets(variables)

    assert stored == {
        "DEBUG": "0",
        "SECRET_KEY": redacted("hush"),
        "DATABASE_URL": f"postgres://{redacted('shop')}:{redacted('hush')}@db/shop",
    }

    monkeypatch.delenv("SECRET_KEY", raising=False)
    monkeypatch.setenv("DATABASE_URL", variables["DATABASE_URL"])
    with pytest.raises(UsageError, match="the value of SECRET_KEY was not stored"):
        with_secrets(stored, {})

    monkeypatch.setenv("SECRET_KEY", "another")
    with pytest.raises(UsageError, match="the value of SECRET_KEY differs from that of the run"):
        with_secrets(stored, {})

    monkeypatch.setenv("SECRET_KEY", "another")
    with pytest.raises(UsageError, match="the value of SECRET_KEY differs from that of the run"):
        with_secrets(stored, {})

    monkeypatch.setenv("SECRET_KEY", "hush")
    assert with_secrets(stored, {}) == variables

    monkeypatch.delenv("SECRET_KEY")
    assert with_secrets(stored, {"SECRET_KEY": "hush", "DEBUG": "0"}) == variables
    for given in ({"SECRET_KEY": "another"}, {"DEBUG": "1"}, {"NEW": "1"}):
        with pytest.raises(UsageError, match=f"the value of {next(iter(given))} differs"):
            with_secrets(stored, given)


def test_no_secret_is_stored_or_printed(capsys: pytest.CaptureFixture[str]) -> None:
    variables = {"SECRET_KEY": "hush", "DEBUG": "0"}
    experiment = experiment_of(SweepSpec(server=ServerOptions(env=variables)))
    plan = bytes(raw_plan(stored_plan(experiment, (), CpuPlan((0,), (0,), shared_cores=True))))
    assert json.loads(plan)["variables"] == {"SECRET_KEY": redacted("hush"), "DEBUG": "0"}

    for command in ("sweep", "capacity --slo p99<1s"):
        words = ["--servers", "wsgiref", "--env", "SECRET_KEY=hush", "--env", "DEBUG=0"]
        assert run([*command.split(), *words, "--dry-run", "--json", "-"]) == EXIT_OK
        printed = capsys.readouterr().out
        assert "hush" not in printed
        assert '"DEBUG": "0"' in printed
