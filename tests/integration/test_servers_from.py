"""Servers from a directory of the user work like those of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import Command

pytestmark = [pytest.mark.servers, pytest.mark.limits, pytest.mark.timeout(600)]

BRIEFLY = ("--rates", 50, "--duration", "1s", "--warmup", "200ms", "--cooldown", "0s", "--quiet")
PLAINSERVE = '''"""plainserve: waitress under another name."""

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option


def command(variant: Variant, context: LaunchContext) -> list[str]:
    return [
        *(str(context.python), "-m", "waitress", "--listen", context.address),
        *option("--threads", context.threads),
        context.app,
    ]


SERVER = Server(
    name="plainserve",
    summary="single process, thread pool",
    homepage="https://plainserve.example/",
    source=Path(__file__),
    requirements=("waitress==3.0.2",),
    distribution="waitress",
    variants=(
        Variant("default", "thread pool", keepalive=True, uses_workers=False, uses_threads=True),
    ),
    default_variant="default",
    command=command,
)
'''


def test_a_server_file_of_the_user_works_like_a_catalogue_server(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "plainserve.py").write_text(PLAINSERVE)
    servers_from = ("--servers-from", tmp_path)
    result = command.run("sweep", "--servers", "plainserve,waitress", *servers_from, *BRIEFLY)

    cell = result.cells["plainserve@50#1"]
    assert cell["failure"] is None
    assert (cell["server"], cell["version"], cell["settings"]["threads"]) == (
        "plainserve",
        "3.0.2",
        4,
    )
    assert cell["limits"]["not_enforced"] == []

    checked = command.run("servers", "check", "plainserve", *servers_from)
    assert "it logged" not in checked.out and "1 MiB" in checked.out
    listed = command.run("servers", "list", *servers_from)
    assert "plainserve" in listed.out
    unknown = command.run("sweep", "--servers", "plainserve", *BRIEFLY)
    assert unknown.code == 2
