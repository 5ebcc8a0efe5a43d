"""Each bundled app answers what it promises, with a length and a type."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from wsgiload.catalogue.bundled import BUNDLED, DEFAULT_APP


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_app_gives_its_expected_body(name: str) -> None:
    bundled = BUNDLED[name]
    module = importlib.import_module(f"wsgiload.catalogue.apps.{bundled.module}")
    environ: dict[str, object] = {"PATH_INFO": bundled.path, "QUERY_STRING": "", "SCRIPT_NAME": ""}
    setup_testing_defaults(environ)
    answers: list[tuple[str, dict[str, str]]] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], exc_info: object = None, /
    ) -> Callable[[bytes], object]:
        answers.append((status, dict(headers)))
        return lambda data: None

    result = validator(module.app)(environ, start_response)
    body = b"".join(result)
    result.close()  # type: ignore[attr-defined]
    ((status, headers),) = answers
    assert status == "200 OK"
    assert body == bundled.expected_body
    assert headers["Content-Length"] == str(len(body))
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


def test_the_default_app_is_there() -> None:
    assert BUNDLED[DEFAULT_APP].app == "hello:app"
