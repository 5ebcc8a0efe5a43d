"""``wsgiload init`` writes settings that a sweep accepts, for the app that it finds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from wsgiload.cli import run

FASTAPI = "from fastapi import FastAPI\napp = FastAPI()\n"
DJANGO = {"site/manage.py": "", "site/shop/wsgi.py": "application = None\n"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(folder: Path, *, uncommented: bool = False) -> dict[str, Any]:
    """The settings that were written; ``uncommented``: with those that are only suggested."""
    text = (folder / "wsgiload.toml").read_text()
    if uncommented:
        text = re.sub(r"^# (?=[\w-]+ = |\[)", "", text, flags=re.MULTILINE)
    return tomllib.loads(text)


@pytest.mark.parametrize(
    ("files", "app", "keys"),
    [
        ({"shop.py": "app = Flask()\n"}, "shop:app", {}),
        ({"shop.py": "def create_app():\n    ...\n"}, "'shop:create_app()'", {}),
        ({"main.py": FASTAPI}, "main:app", {"interface": "asgi"}),
        ({"conftest.py": "def app(): ...", "shop.py": "app = Flask()\n"}, "shop:app", {}),
        (DJANGO, "shop.wsgi:application", {"chdir": "site"}),
    ],
)
def test_the_app_is_found(
    files: dict[str, str],
    app: str,
    keys: dict[str, str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    assert run(["init"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("wrote wsgiload.toml; next: ") and line.endswith(f" sweep {app}")
    written = settings(folder)
    assert {key: written[key] for key in written.keys() & {"interface", "chdir"}} == keys


def test_each_suggestion_is_a_setting_of_a_sweep(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "gunicorn.conf.py").touch()
    assert run(["init", "shop:app"]) == 0
    suggested = settings(folder, uncommented=True)
    assert suggested["servers"]["production"]["command"].endswith("shop:app --bind {address}")
    assert {"cpus", "memory", "python", "path", "expect-regex"} <= set(suggested)
    assert set(suggested["sweep"]) == {"rates", "servers", "slo"}

    text = (folder / "wsgiload.toml").read_text().partition("\n# Your own command")[0]
    text = re.sub(r"^# (?!python)(?=[\w-]+ = )", "", text, flags=re.MULTILINE)
    (folder / "wsgiload.toml").write_text(text)
    (folder / "shop.py").write_text("def app(environ, start_response):\n    ...\n")
    assert run(["sweep", "shop:app", "--dry-run"]) == 0, capsys.readouterr().err


def test_nothing_is_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wsgiload.toml").write_text("cpus = 2\n")
    assert run(["init", "shop:app"]) == 2
    assert "wsgiload.toml has settings already; edit them" in capsys.readouterr().err
    assert (folder / "wsgiload.toml").read_text() == "cpus = 2\n"


def test_without_an_app_the_fix_works(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init"]) == 2
    assert "`wsgiload init shop:app`" in capsys.readouterr().err
    assert not (folder / "wsgiload.toml").exists()
    assert run(["init", "shop:app"]) == 0


def test_settings_of_the_project_are_not_overruled(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "pyproject.toml").write_text("[tool.wsgiload]\ncpus = 4\n")
    assert run(["init", "shop:app"]) == 2
    assert "pyproject.toml has settings already" in capsys.readouterr().err
    assert not (folder / "wsgiload.toml").exists()


def test_of_several_apps_one_must_be_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("cli", "main"):
        (folder / f"{name}.py").write_text("app = make()\n")
    assert run(["init"]) == 2
    assert "several apps found: cli:app, main:app" in capsys.readouterr().err
