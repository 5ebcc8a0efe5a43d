"""A wrong response before the load is quoted, with a fix that works when pasted."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from .command import SCRIPT, Command, CommandResult
from .test_finding_apps import APPS, require_ok
from .test_user_apps import make_project

pytestmark = [pytest.mark.servers, pytest.mark.limits]

BRIEFLY = ("--rates", 20, "--duration", "1s", "--warmup", "200ms", "--cooldown", "0s", "--quiet")
SETTINGS = ("DJANGO_SETTINGS_MODULE=site_config.settings.production", "APP_SECRET_KEY=x")
DJANGO = ("site_config.wsgi:application", "--path", "/health/")
SERVERS = ("gunicorn-gthread", "waitress", "uwsgi", "gevent")
HTTPS = "SSL_REDIRECT=1"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Django project that accepts a single host name, and redirects to https if configured."""
    folder = make_project(tmp_path_factory.mktemp("production") / "site", "django")
    shutil.copytree(APPS / "django_hosts", folder, dirs_exist_ok=True)
    return folder


def sweep(
    command: Command, site: Path, *words: object, variables: tuple[str, ...] = ()
) -> CommandResult:
    program = ["env", *SETTINGS, *variables, str(SCRIPT)]
    return command.run("sweep", *DJANGO, *words, *BRIEFLY, cwd=site, program=program)


def failure(result: CommandResult) -> str:
    """The failure message of the first cell, which failed the readiness check."""
    assert result.code == 97
    cell = next(iter(result.cells.values()))
    assert cell["failure"]["step"] == "readiness"
    message: str = cell["failure"]["message"]
    return message


def suggested_options(message: str) -> list[str]:
    """The options of the suggested fix, as a shell splits them."""
    return shlex.split(message.rpartition(": add ")[2])


def test_the_fix_for_a_host_that_django_rejects_is_a_host_header(
    command: Command, site: Path
) -> None:
    result = sweep(command, site, "--no-verbose", "--servers", "gunicorn-gthread,waitress")
    output = " ".join(result.out.split())
    assert (
        "gunicorn-gthread and waitress failed and are not ranked: GET /health/ returned" in output
    )
    assert "host names: add -H 'Host: shop.example'" in output

    message = failure(result)
    assert 'GET /health/ returned status 400, "Bad Request (400)"' in message

    fix = suggested_options(message)
    assert fix == ["-H", "Host: shop.example"]
    require_ok(sweep(command, site, *fix, "--servers", ",".join(SERVERS)), len(SERVERS))


def test_the_fix_for_a_redirect_to_https_is_a_proxy_header(command: Command, site: Path) -> None:
    words = ("-H", "Host: shop.example", "--servers")
    message = failure(sweep(command, site, *words, "waitress", variables=(HTTPS,)))
    assert "GET /health/ returned status 301 to https://shop.example/health/" in message

    fix = suggested_options(message)
    assert fix == ["-H", "X-Forwarded-Proto: https"]
    result = sweep(command, site, *fix, *words, ",".join(SERVERS), variables=(HTTPS,))
    require_ok(result, len(SERVERS))
