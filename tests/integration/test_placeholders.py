"""Placeholders on both command lines: what a server is sent is what was asked for, and the same
again with the same seed."""

from __future__ import annotations

import json
import re
import subprocess

from .command import Command
from .target import CountingServer
from .test_load import LOADGEN, needs_loadgen

BRIEFLY = ("--rate", "100", "--duration", "500ms", "--arrivals", "constant", "--seed", "4")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def _sent(target: CountingServer) -> list[tuple[str, str, bytes]]:
    """Path, one header field and body of every request, in any order."""
    sent = [(path, headers.get("x-id", ""), body) for _, path, headers, body in target.requests]
    target.requests.clear()
    return sorted(sent)


def test_the_one_request_of_a_command_line_has_values_of_its_own(
    command: Command, target: CountingServer
) -> None:
    (command.folder / "users.csv").write_text("id,name\n1,ada\n2,eve\n")
    url = f"{target.url}u/{{{{csv:users.csv:id}}}}?n={{{{random:1:1000000}}}}"
    words = ("-X", "POST", "-H", "X-Id: {{uuid}}", "-b", '{"name": "{{csv:users.csv:name}}"}')
    done = command.run("load", url, *BRIEFLY, *words, "--json", "out.json")
    assert done.code != 2, done.err
    told = json.loads((command.folder / "out.json").read_text())
    assert told["outcomes"]["ok"] == told["outcomes"]["scheduled"] == 50

    sent = _sent(target)
    assert {(path.split("?")[0], body) for path, _, body in sent} == {
        ("/u/1", b'{"name": "ada"}'),
        ("/u/2", b'{"name": "eve"}'),
    }
    assert len({path for path, _, _ in sent}) == len({field for _, field, _ in sent}) == 50
    assert all(UUID.fullmatch(field) for _, field, _ in sent)

    command.run("load", url, *BRIEFLY, *words, "--threads", "2")
    assert _sent(target) == sent, "the same seed sends the same, whatever the number of threads"


@needs_loadgen
def test_the_generator_alone_fills_in_targets(command: Command, target: CountingServer) -> None:
    (command.folder / "shop.targets").write_text("POST /{{seq:1}}\n--body {{{{ {{seq:1}}\n")
    words = [str(LOADGEN), target.url, *BRIEFLY, "--targets", "shop.targets", "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=command.folder)
    told = json.loads(done.stdout)
    assert told["targets"][0]["name"] == "POST /{{seq:1}}"
    expected = [(f"/{number}", "", f"{{{{ {number}".encode()) for number in range(1, 51)]
    assert _sent(target) == sorted(expected)


def test_an_unknown_placeholder_is_refused_before_anything_starts(
    command: Command, target: CountingServer
) -> None:
    done = command.run("load", f"{target.url}{{{{user}}}}", *BRIEFLY)
    assert done.code == 2
    (line,) = done.messages
    assert "{{user}} is unknown; use {{seq:1}}" in line
    done = command.run("sweep", "--path", "/{{csv:missing.csv:id}}", "--rates", "10")
    assert done.code == 2
    assert "missing.csv" in done.err
    assert target.response_count == 0


def test_a_sweep_fills_in_its_path(command: Command) -> None:
    done = command.run(
        "sweep",
        "--app-name",
        "hello",
        "--path",
        "/?page={{seq:1}}",
        *("--servers", "waitress", "--rates", "20", "--duration", "1s"),
        *("--warmup", "0s", "--cooldown", "0s"),
    )
    (cell,) = done.cells.values()
    assert cell["failure"] is None, cell["failure"]
    assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
