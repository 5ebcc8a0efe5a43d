"""Targets in the formats that people have already: vegeta's two, lists of URLs, files made on
Windows, and standard input."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from .command import SCRIPT, Command
from .target import CountingServer

INPUTS = Path(__file__).parent / "traffic"
# The address that the files were written for.
WRITTEN_FOR = b"127.0.0.1:18400"
BRIEFLY = ("--rate", "100", "--duration", "500ms")


@pytest.fixture
def inputs(command: Command, target: CountingServer) -> Path:
    """The files, beside one another, for the server of this test."""
    for path in INPUTS.iterdir():
        content = path.read_bytes().replace(WRITTEN_FOR, _address(target).encode())
        (command.folder / path.name).write_bytes(content)
    return command.folder


def _address(target: CountingServer) -> str:
    return f"127.0.0.1:{target.server_address[1]}"


def _kinds(target: CountingServer) -> set[tuple[str, str, bytes]]:
    """The different requests that arrived."""
    return {(method, path, body) for method, path, _, body in target.requests}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("crlf.targets", {("GET", "/a", b""), ("POST", "/b", b'{"a":1}')}),
        ("bom.targets", {("GET", "/a", b"")}),
        ("lines.json", {("GET", "/a", b""), ("POST", "/b", b'{"a":1}')}),
        ("urls.txt", {("GET", "/a", b""), ("GET", "/b", b"")}),
    ],
)
def test_each_format_is_recognised_by_its_content(
    command: Command,
    target: CountingServer,
    inputs: Path,
    name: str,
    expected: set[tuple[str, str, bytes]],
) -> None:
    done = command.run("load", target.url, *BRIEFLY, "--targets", name, cwd=inputs)
    assert done.code != 2, done.err
    assert _kinds(target) == expected


def test_header_fields_come_with_their_request(
    command: Command, target: CountingServer, inputs: Path
) -> None:
    command.run("load", target.url, *BRIEFLY, "--targets", "crlf.targets", cwd=inputs)
    fields = {path: headers for _, path, headers, _ in target.requests}
    assert fields["/a"]["x-one"] == "1"
    assert fields["/b"]["content-type"] == "application/json"
    target.requests.clear()
    command.run("load", target.url, *BRIEFLY, "--targets", "lines.json", cwd=inputs)
    fields = {path: headers for _, path, headers, _ in target.requests}
    assert fields["/b"]["content-type"] == "application/json"


def test_a_dash_is_standard_input(command: Command, target: CountingServer, inputs: Path) -> None:
    words = " ".join(("load", target.url, *BRIEFLY, "--targets", "-"))
    done = command.run(program=["/bin/sh", "-c", f"exec {SCRIPT} {words} < crlf.targets"])
    assert done.code != 2, done.err
    assert _kinds(target) == {("GET", "/a", b""), ("POST", "/b", b'{"a":1}')}


def test_a_mistake_in_standard_input_is_named_with_its_line(
    command: Command, target: CountingServer
) -> None:
    (command.folder / "wrong").write_text("GET /\n--wieght 3\n")
    words = " ".join(("load", target.url, *BRIEFLY, "--targets", "-"))
    done = command.run(program=["/bin/sh", "-c", f"exec {SCRIPT} {words} < wrong"])
    assert done.code == 2
    assert done.messages == [
        "wsgiload: standard input:2: unknown option --wieght; see docs/requests.md"
    ]


def test_a_target_that_no_server_takes_is_refused_in_few_words(
    command: Command, target: CountingServer
) -> None:
    (command.folder / "long").write_text(f"GET /{'x' * 5_000_000}\n")
    done = command.run("load", target.url, *BRIEFLY, "--targets", "long")
    assert (done.code, target.response_count) == (2, 0)
    (complaint,) = done.messages
    assert "url of 5,000,001 bytes: at most 65,534 can be sent" in complaint
    assert len(complaint) < 5_000


def test_two_hosts_are_refused_before_anything_is_sent(
    command: Command, target: CountingServer, inputs: Path
) -> None:
    done = command.run("load", target.url, *BRIEFLY, "--targets", "two-hosts.targets", cwd=inputs)
    assert done.code == 2
    (complaint,) = done.messages
    assert "127.0.0.1:18401/other" in complaint
    assert f"its host is not {_address(target)}" in complaint
    assert "into a separate file" in complaint
    assert not target.requests


def test_a_recording_of_a_browser_is_imported_and_sent(
    command: Command, target: CountingServer, inputs: Path
) -> None:
    done = command.run("import", "har", "recorded.har", "-o", "recorded.targets", cwd=inputs)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert command.run("import", "har", "recorded.har", cwd=inputs).out == (
        (inputs / "recorded.targets").read_text()
    )
    done = command.run("load", target.url, *BRIEFLY, "--targets", "recorded.targets", cwd=inputs)
    assert done.code != 2, done.err
    assert _kinds(target) == {("GET", "/a", b"")}
    assert {headers["accept"] for _, _, headers, _ in target.requests} == {"*/*"}


def test_targets_that_are_a_recording_name_the_command_that_reads_it(
    command: Command, target: CountingServer, inputs: Path
) -> None:
    done = command.run("load", target.url, *BRIEFLY, "--targets", "recorded.har", cwd=inputs)
    assert done.code == 2
    assert "wsgiload import har" in done.err


def test_commands_of_curl_are_imported_and_sent(command: Command, target: CountingServer) -> None:
    text = f"""curl '{target.url}cart?add=7' -H 'X-One: 1' --compressed -s | jq .
curl {target.url}orders --json '{{"item": "{{{{7}}}}"}}'"""
    done = command.run("import", "curl", text, "-o", "shop.targets")
    assert (done.code, done.out) == (0, "")
    assert len(done.messages) == 1 and "ignored: --compressed" in done.err
    done = command.run("load", target.url, *BRIEFLY, "--targets", "shop.targets")
    assert done.code != 2, done.err
    assert _kinds(target) == {
        ("GET", "/cart?add=7", b""),
        ("POST", "/orders", b'{"item": "{{7}}"}'),
    }
    fields = {path: headers for _, path, headers, _ in target.requests}
    assert fields["/cart?add=7"]["x-one"] == "1"
    assert fields["/orders"]["content-type"] == "application/json"


def test_operations_of_an_api_are_imported_and_sent(
    command: Command, target: CountingServer
) -> None:
    number = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
    order = {"required": ["id"], "properties": {"id": {"type": "string", "format": "uuid"}}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}
    post = {"requestBody": {"content": content, "required": True}, "responses": {"200": {}}}
    description = {
        "openapi": "3.1.0",
        "paths": {"/items/{id}": {"get": {"parameters": [number]}}, "/orders": {"post": post}},
        "components": {"schemas": {"Order": order}},
    }
    (command.folder / "openapi.json").write_text(json.dumps(description))
    words = ("openapi.json", "--method", "POST", "-o", "shop.targets")
    assert command.run("import", "openapi", *words).code == 0
    done = command.run("load", target.url, *BRIEFLY, "--targets", "shop.targets")
    assert done.code != 2, done.err

    paths = [path for method, path, _, _ in target.requests if method == "GET"]
    numbers = {int(path.removeprefix("/items/")) for path in paths}
    assert len(numbers) > 5 and min(numbers) >= 1 and max(numbers) <= 1000
    bodies = [body for method, _, _, body in target.requests if method == "POST"]
    assert len(bodies) == len({uuid.UUID(json.loads(body)["id"]) for body in bodies}) > 5


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            "curl http://h/\n",
            "a list of curl commands; convert it to targets: wsgiload import curl - <",
        ),
        (
            '{"openapi": "3.1.0"}',
            "an OpenAPI description; convert it to targets: wsgiload import openapi ",
        ),
    ],
)
def test_targets_that_have_to_be_imported_name_the_command(
    command: Command, target: CountingServer, content: str, says: str
) -> None:
    (command.folder / "traffic").write_text(content)
    done = command.run("load", target.url, *BRIEFLY, "--targets", "traffic")
    assert done.code == 2
    assert f"traffic is {says}traffic -o FILE" in done.err
