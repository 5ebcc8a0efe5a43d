"""The scripts that start servers without a suitable command line, for use without wsgiload."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wsgiload.catalogue.bundled import script_text, scripts_in
from wsgiload.catalogue.contract import LaunchContext
from wsgiload.catalogue.names import ServerVariant, load_catalogue
from wsgiload.cli import run
from wsgiload.errors import UsageError

CONTEXT = LaunchContext(
    python=Path("/environment/bin/python"),
    bin=Path("/environment/bin"),
    host="127.0.0.1",
    port=8000,
    app="hello:app",
    app_dir=Path("/app"),
    scratch_dir=Path("/tmp/scratch"),
)


def command_of(variant: ServerVariant) -> list[str]:
    return variant.server.command(variant.variant, CONTEXT)


@pytest.mark.parametrize(
    ("name", "scripts"),
    [
        ("bjoern", ("prefork.py", "run_bjoern.py")),
        ("circus-waitress", ("run_circus.py", "run_chaussette.py")),
        ("gunicorn-nginx", ("run_behind_nginx.py", "gunicorn_settings.py")),
        ("hypercorn", ("hypercorn_settings.py",)),
        ("granian", ()),
    ],
)
def test_the_scripts_of_a_command_include_those_that_they_start(
    name: str, scripts: tuple[str, ...]
) -> None:
    (variant,) = load_catalogue().select([name])
    assert scripts_in(command_of(variant)) == scripts


def test_a_script_of_the_user_is_not_a_bundled_script() -> None:
    assert scripts_in(["/app/bin/python", "-P", "/app/servers/runners/run_bjoern.py"]) == ()


def test_every_script_of_a_command_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    scripts = {
        script
        for variant in load_catalogue().select(["all"])
        for script in scripts_in(command_of(replace(variant, workers=2)))
    }
    assert len(scripts) > 10

    for script in scripts:
        assert run(["servers", "script", script]) == 0
        text = capsys.readouterr().out
        assert text == script_text(script)
        assert "import wsgiload" not in text and "from wsgiload" not in text


def test_an_unknown_script_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"no script 'run_bjorn.py'; choose one of run_bjoern.py"):
        script_text("run_bjorn.py")
