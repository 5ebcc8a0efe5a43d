"""Every file in servers/ keeps the contract: pinned, locked, documented, sized by its budget
alone."""

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

# Every server of the published studies, as far as it lives.
STUDIED = """
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
each_variant = pytest.mark.parametrize("found", VARIANTS, ids=lambda found: found.id)


def values(command: list[str]) -> list[str]:
    """Every word of the command, with ``--name=value`` taken apart."""
    return [part for word in command for part in word.split("=")]


def test_the_first_servers_are_there() -> None:
    assert {found.id for found in CATALOGUE.select(["all"])} >= set(STUDIED.split())


def test_what_is_dead_is_listed_and_refused_with_its_reason() -> None:
    refused = {
        f"{row['name']}-{row['variant']}": row for row in catalogue_rows(CATALOGUE) if row["reason"]
    }
    assert set(refused) == {"gunicorn-eventlet", "circus-fastgevent"}
    for name, row in refused.items():
        assert row["status"] == "refused"
        with pytest.raises(UsageError, match=re.escape(str(row["reason"]))):
            CATALOGUE.select([name])


def test_without_names_at_least_five_servers_run_and_none_needs_a_compiler() -> None:
    chosen = CATALOGUE.select(None)
    assert len({found.server.name for found in chosen}) >= 5
    assert "uwsgi" not in {found.server.name for found in chosen}


def test_identifiers_are_unique() -> None:
    assert len({found.id for found in VARIANTS}) == len(VARIANTS)


@each_server
def test_a_server_is_documented(server: Server) -> None:
    assert server.summary and not server.summary.endswith(".")
    assert server.homepage.startswith("https://")
    assert '"""' in server.source.read_text().splitlines()[0]
    assert server.needs_compiler == ("gcc" in [needed.package for needed in server.needs])
    assert all(needed.program or needed.header for needed in server.needs)
    assert server.stop_timeout_s > 0


@each_server
def test_a_lock_holds_every_pin_with_hashes_and_names_no_place(server: Server) -> None:
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
def test_a_command_is_words_with_the_address_and_the_budget(found: ServerVariant) -> None:
    command = found.server.command(found.variant, CONTEXT)
    assert all(isinstance(word, str) and word for word in command)
    assert command[0].startswith("/environment/bin/") or not found.server.serves_apps
    assert any(CONTEXT.host in word for word in command)
    assert any(str(CONTEXT.port) in word for word in command)
    assert "1234" in values(command)
    assert ("3" in values(command)) == found.variant.uses_workers
    assert ("7" in values(command)) == found.variant.uses_threads
    prefixed = f"{found.variant.interface}:hello:app"
    assert any(word in ("hello:app", prefixed) for word in values(command))
    assert found.server.command(found.variant, CONTEXT) == command


@each_variant
def test_the_stock_profile_leaves_every_setting_to_the_server(found: ServerVariant) -> None:
    stock, tuned = (found.server.command(found.variant, context) for context in (STOCK, CONTEXT))
    assert "None" not in values(stock)
    assert not {"1234", "3", "7", str(CONTEXT.idle_timeout_s)} & set(values(stock))
    # It is never told more than the tuned one, so that nothing is tuned in secret.
    assert len(stock) <= len(tuned)
    assert any(CONTEXT.host in word for word in stock)


@each_variant
def test_a_size_that_the_user_names_reaches_the_stock_profile_too(found: ServerVariant) -> None:
    sized = found.sized(5, 6)
    context = replace(STOCK, workers=sized.workers, threads=sized.threads)
    command = found.server.command(found.variant, context)
    assert ("5" in values(command)) == found.variant.uses_workers
    assert ("6" in values(command)) == found.variant.uses_threads


@each_variant
def test_files_a_command_names_beside_the_server_exist(found: ServerVariant) -> None:
    folder = str(found.server.source.parent)
    for word in found.server.command(found.variant, CONTEXT):
        assert not word.startswith(folder) or Path(word).is_file()


@each_variant
def test_a_variant_is_documented(found: ServerVariant) -> None:
    assert found.variant.summary and found.variant.notes
    assert found.variant.stock_notes or found.reason
    assert any("https://" in note for note in found.variant.notes)
    variables = found.server.environ(found.variant, CONTEXT)
    assert all(
        isinstance(name, str) and isinstance(value, str) for name, value in variables.items()
    )


@pytest.mark.parametrize("path", sorted(set(FILES)), ids=lambda path: path.name)
def test_no_server_file_looks_at_the_host(path: Path) -> None:
    text = path.read_text()
    for forbidden in ("cpu_count", "sched_getaffinity", "multiprocessing", "nproc", "%k"):
        assert forbidden not in text
    assert len(text.splitlines()) <= 200
