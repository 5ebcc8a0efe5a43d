"""Every file in servers/ follows the contract: requirements are pinned and locked, variants are
documented, and only the budget determines the size."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from wsgiload.catalogue.contract import LaunchContext, Server
from wsgiload.catalogue.names import ServerVariant, catalogue_rows, load_catalogue
from wsgiload.errors import UsageError

CATALOGUE = load_catalogue()
SERVERS = CATALOGUE.servers
VARIANTS = CATALOGUE.variants()
FILES = [path for server in SERVERS for path in server.source.parent.rglob("*.py")]

# Every server of the published studies that can still be installed.
STUDIED_SERVERS = """
    gunicorn-sync gunicorn-gthread gunicorn-gevent gunicorn-tornado gunicorn-nginx
    uwsgi-http uwsgi-http-socket uwsgi-http11-socket uwsgi-gevent uwsgi-nginx
    bjoern bjoern-processes meinheld meinheld-gunicorn cheroot cherrypy mod_wsgi-express
    gevent-pywsgi pypy-gevent-cold pypy-gevent-warm tornado twisted wsgiref werkzeug waitress
    circus-gevent circus-meinheld circus-waitress circus-wsgiref supervisor-waitress granian fastwsgi node
"""

CONTEXT = LaunchContext(
    python=Path("/environment/bin/python"),
    bin=Path("/environment/bin"),
    host="127.0.0.1",
    port=18765,
    app="hello:app",
    app_dir=Path("/project"),
    scratch_dir=Path("/scratch"),
    workers=3,
    threads=7,
    backlog=1234,
    run_s=60,
)

STOCK = replace(
    CONTEXT, profile="stock", workers=None, threads=None, backlog=None, max_connections=None
)

each_server = pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)


def values(command: list[str]) -> list[str]:
    """The words of the command, with ``--name=value`` split into name and value."""
    return [part for word in command for part in word.split("=")]


def test_the_catalogue_contains_the_studied_servers() -> None:
    assert {variant.id for variant in CATALOGUE.select(["all"])} >= set(STUDIED_SERVERS.split())


def test_unsupported_variants_are_listed_and_rejected_with_their_reason() -> None:
    rejected = {
        f"{row['name']}-{row['variant']}": row for row in catalogue_rows(CATALOGUE) if row["reason"]
    }
    assert set(rejected) == {"gunicorn-eventlet", "circus-fastgevent"}
    for name, row in rejected.items():
        assert row["status"] == "refused"
        with pytest.raises(UsageError, match=re.escape(str(row["reason"]))):
            CATALOGUE.select([name])


def test_the_default_set_has_at_least_five_servers_and_none_needs_a_compiler() -> None:
    defaults = CATALOGUE.select(None)
    assert len({variant.server.name for variant in defaults}) >= 5
    assert "uwsgi" not in {variant.server.name for variant in defaults}


def test_identifiers_are_unique() -> None:
    assert len({variant.id for variant in VARIANTS}) == len(VARIANTS)


@each_server
def test_a_server_is_documented(server: Server) -> None:
    assert server.summary and not server.summary.endswith(".")
    assert server.homepage.startswith("https://")
    assert '"""' in server.source.read_text().splitlines()[0]
    assert server.needs_compiler == ("gcc" in [need.package for need in server.needs])
    assert all(need.program or need.header for need in server.needs)
    assert server.stop_timeout_s > 0


@each_server
def test_a_lock_has_every_pin_with_hashes_and_no_url_or_path(server: Server) -> None:
    text = server.lock_path.read_text()
    assert "://" not in text
    assert "--index" not in text and "--find-links" not in text
    assert str(Path.home()) not in text

    pins = re.findall(r"^([a-z0-9._-]+)==([^ ]+)", text, flags=re.MULTILINE)
    locked = dict(pins)
    for requirement in server.requirements:
        name, _, version = requirement.partition("==")
        assert locked[re.sub(r"\[.*\]", "", name)] == version

    blocks = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pins)
    assert all("--hash=sha256:" in block for block in blocks)
    assert server.distribution is None or server.distribution in locked


@each_variant
def test_a_command_contains_the_address_the_budget_and_the_app(variant: ServerVariant) -> None:
    command = variant.server.command(variant.variant, CONTEXT)
    assert all(isinstance(word, str) and word for word in command)
    assert command[0].startswith("/environment/bin/") or not variant.server.serves_apps
    assert any(CONTEXT.host in word for word in command)
    assert any(str(CONTEXT.port) in word for word in command)

    assert "1234" in values(command)
    assert ("3" in values(command)) == variant.variant.uses_workers
    assert ("7" in values(command)) == variant.variant.uses_threads

    prefixed = f"{variant.variant.interface}:hello:app"
    assert any(word in ("hello:app", prefixed) for word in values(command))
    assert variant.server.command(variant.variant, CONTEXT) == command, "not reproducible"


@each_variant
def test_the_stock_profile_leaves_every_setting_to_the_server(variant: ServerVariant) -> None:
    stock = variant.server.command(variant.variant, STOCK)
    tuned = variant.server.command(variant.variant, CONTEXT)

    assert "None" not in values(stock)
    assert not {"1234", "3", "7", str(CONTEXT.idle_timeout_s)} & set(values(stock))
    # A longer command than the tuned one would contain hidden tuning.
    assert len(stock) <= len(tuned)
    assert any(CONTEXT.host in word for word in stock)


@each_variant
def test_a_size_set_by_the_user_applies_to_the_stock_profile(variant: ServerVariant) -> None:
    sized = variant.sized(5, 6)
    context = replace(STOCK, workers=sized.workers, threads=sized.threads)
    command = variant.server.command(variant.variant, context)
    assert ("5" in values(command)) == variant.variant.uses_workers
    assert ("6" in values(command)) == variant.variant.uses_threads


@each_variant
def test_files_next_to_the_server_file_exist_if_the_command_uses_them(
    variant: ServerVariant,
) -> None:
    directory = str(variant.server.source.parent)
    for word in variant.server.command(variant.variant, CONTEXT):
        assert not word.startswith(directory) or Path(word).is_file()


@each_variant
def test_a_variant_is_documented(variant: ServerVariant) -> None:
    assert variant.variant.summary and variant.variant.notes
    assert variant.variant.stock_notes or variant.reason
    assert any("https://" in note for note in variant.variant.notes)

    variables = variant.server.environ(variant.variant, CONTEXT)
    assert all(
        isinstance(name, str) and isinstance(value, str) for name, value in variables.items()
    )


@pytest.mark.parametrize("path", sorted(set(FILES)), ids=lambda path: path.name)
def test_a_server_file_is_short_and_independent_of_the_host(path: Path) -> None:
    text = path.read_text()
    for forbidden in ("cpu_count", "sched_getaffinity", "multiprocessing", "nproc", "%k"):
        assert forbidden not in text
    assert len(text.splitlines()) <= 200
