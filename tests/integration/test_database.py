"""A Django app with PostgreSQL: the report names the bottleneck, the connection pool or the
database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .command import Command, CommandResult
from .postgresql import Cluster, fresh_cluster
from .reference import inconclusive
from .test_user_apps import make_project

pytestmark = [pytest.mark.servers, pytest.mark.limits, pytest.mark.timeout(600)]

APP = Path(__file__).parent / "apps" / "shop_database"
PACKAGES = ("django==5.2.9", "psycopg[binary,pool]==3.3.9", "gunicorn==23.0.0")
CONFIGURATION = """
[services.db]
command = '''{serve}'''
ready = '''{is_ready}'''
cwd = "/"
stop_signal = "SIGINT"
{servers}
"""
SERVER = """
[servers.pool-{size}]
command = ".venv/bin/gunicorn shop.wsgi --workers {{workers}} --threads 8 --bind {{address}} --graceful-timeout 1"
env = {{ POOL_SIZE = "{size}", DATABASE_PORT = "{port}" }}
setup = [".venv/bin/python manage.py migrate --verbosity 0", ".venv/bin/python manage.py loaddata items"]
"""
BRIEFLY = ("--duration", "5s", "--warmup", "1s", "--cooldown", "0s", "--settle", "0s")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with fresh_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Path:
    """The app with its environment, and a configuration with two pool sizes."""
    folder = make_project(tmp_path_factory.mktemp("database") / "shop", *PACKAGES)
    shutil.copytree(APP, folder, dirs_exist_ok=True)
    servers = "".join(SERVER.format(size=size, port=cluster.port) for size in (1, 8))
    configuration = CONFIGURATION.format(
        serve=cluster.serve, is_ready=cluster.is_ready, servers=servers
    )
    (folder / "wsgiload.toml").write_text(configuration)
    return folder


def sweep(command: Command, project: Path, *args: object) -> CommandResult:
    result = command.start("sweep", *BRIEFLY, *args, cwd=project).end(timeout_s=300)
    assert result.cells, result.err
    command.require_no_leftovers()
    return result


def checks(cell: dict[str, Any]) -> dict[str, str]:
    return {reason["check"]: reason["message"] for reason in cell["verdict"]["reasons"]}


def goodput(cell: dict[str, Any]) -> float:
    value: float = cell["rate_result"]["goodput_per_s"]
    return value


def test_a_small_connection_pool_is_distinguished_from_a_busy_database(
    command: Command, project: Path
) -> None:
    """A request holds a connection for 80 ms, so one connection serves at most 12 requests per
    second."""
    args = ("--grid", "workers=1,2", "--path", "/order/1", "--rates", 18, "--no-verbose")
    result = sweep(command, project, "--expect-regex", "^ordered kettle$", *args)
    cells = {name.partition("@")[0]: cell for name, cell in result.cells.items()}
    assert set(cells) == {"pool-1-w1", "pool-1-w2", "pool-8-w1", "pool-8-w2"}
    small = cells.pop("pool-1-w1")
    assert goodput(small) < 13
    large = {name: goodput(cell) for name, cell in cells.items() if name.startswith("pool-8")}
    if min(large.values()) < 16:
        inconclusive(f"the larger pool fell behind, too: {large}")

    (db,) = small["services"]
    assert 0 < db["resources"]["cpu_cores_mean"] < 0.5
    assert "db used 0." in checks(small)["idle-server"]
    assert "busy-service" not in checks(small)
    assert "db CPU" in result.out
    assert "the connection pool are the bottleneck" in result.out
    assert "POOL_SIZE is the bottleneck of pool-1-w1" in result.out
    assert "pool-8-w1 with 8 responds" in result.out


def test_a_busy_database_is_named_as_the_bottleneck(command: Command, project: Path) -> None:
    args = ("--servers", "pool-8", "--workers", 1, "--path", "/report", "--rates", 60)
    result = sweep(command, project, "--expect-regex", "^counted 200000$", *args, "--no-verbose")
    (cell,) = result.cells.values()

    (db,) = cell["services"]
    db_cores = db["resources"]["cpu_cores_mean"]
    assert db_cores > cell["resources"]["cpu_cores_mean"]
    if "busy-service" not in checks(cell):
        inconclusive(f"other processes used the database's CPU: {db_cores:.2f} of {db['cpus']}")

    assert "db is the bottleneck" in checks(cell)["busy-service"]
    assert "db is the bottleneck (busy-service)" in " ".join(result.out.split())
    page = (result.run_dir / "report.html").read_text()
    assert "CPU cores used by db (mean)" in page
    assert (result.run_dir / "services.csv").read_text().count(",db,") > 20
