"""Targets in other formats: vegeta's two formats, lists of URLs, files from Windows, imported files
and standard input."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from .command import SCRIPT, Command
from .target import CountingServer

INPUTS = Path(__file__).parent / "traffic"
# The server address in these files.
STORED_ADDRESS = b"127.0.0.1:18400"
BRIEFLY = ("--rate", "100", "--duration", "500ms")


@pytest.fixture
def inputs(command: Command, target: CountingServer) -> Path:
    """A directory with these files, rewritten for this test's server."""
    for path in INPUTS.iterdir():
        content = path.read_bytes().replace(STORED_ADDRESS, _address(target).encode())
        (command.folder / path.name).write_bytes(content)
    return command.folder


def _address(target: CountingServer) -> str:
    return f"127.0.0.1:{target.server_address[1]}"


def _distinct_requests(target: CountingServer) -> set[tuple[str, str, bytes]]:
    """The distinct requests that the server received."""
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
    result = command.run("load", target.url, *BRIEFLY, "--targets", name, cwd=inputs)

    assert result.code != 2, result.err
    assert _distinct_requests(target) == expected


def test_header_fields_are_sent_with_their_request(
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
    result = command.run(program=["/bin/sh", "-c", f"exec {SCRIPT} {words} < crlf.targets"])
    assert result.code != 2, result.err
    assert _distinct_requests(target) == {("GET", "/a", b""), ("POST", "/b", b'{"a":1}')}


def test_an_error_in_standard_input_has_its_line_number(
    command: Command, target: CountingServer
) -> None:
    (command.folder / "wrong").write_text("GET /\n--wieght 3\n")
    words = " ".join(("load", target.url, *BRIEFLY, "--targets", "-"))
    result = command.run(program=["/bin/sh", "-c", f"exec {SCRIPT} {words} < wrong"])
    assert result.code == 2
    assert result.messages == [
        "wsgiload: standard input:2: unknown option --wieght; see docs/requests.md"
    ]


def test_an_oversized_target_is_refused_with_a_short_message(
    command: Command, target: CountingServer
) -> None:
    (command.folder / "long").write_text(f"GET /{'x' * 5_000_000}\n")
    result = command.run("load", target.url, *BRIEFLY, "--targets", "long")

    assert (result.code, target.response_count) == (2, 0)
    (complaint,) = result.messages
    assert "url of 5,000,001 bytes: at most 65,534 can be sent" in complaint
    assert len(complaint) < 5_000


def test_targets_of_two_hosts_are_refused_before_the_load(
    command: Command, target: CountingServer, inputs: Path
) -> None:
    result = command.run("load", target.url, *BRIEFLY, "--targets", "two-hosts.targets", cwd=inputs)

    assert result.code == 2
    (complaint,) = result.messages
    assert "127.0.0.1:18401/other" in complaint
    assert f"its host is not {_address(target)}" in complaint
    assert "into a separate file" in complaint
    assert not target.requests


def test_a_har_file_is_imported_and_sent(
    command: Command, target: CountingServer, inputs: Path
) -> None:
    result = command.run("import", "har", "recorded.har", "-o", "recorded.targets", cwd=inputs)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert command.run("import", "har", "recorded.har", cwd=inputs).out == (
        (inputs / "recorded.targets").read_text()
    )

    result = command.run("load", target.url, *BRIEFLY, "--targets", "recorded.targets", cwd=inputs)
    assert result.code != 2, result.err
    assert _distinct_requests(target) == {("GET", "/a", b"")}
    assert {headers["accept"] for _, _, headers, _ in target.requests} == {"*/*"}


def test_a_har_file_as_targets_is_an_error_that_names_the_import_command(
    command: Command, target: CountingServer, inputs: Path
) -> None:
    result = command.run("load", target.url, *BRIEFLY, "--targets", "recorded.har", cwd=inputs)
    assert result.code == 2
    assert "wsgiload import har" in result.err


def test_curl_commands_are_imported_and_sent(command: Command, target: CountingServer) -> None:
    text = f"""curl '{target.url}cart?add=7' -H 'X-One: 1' --compressed -s | jq .
curl {target.url}orders --json '{{"item": "{{{{7}}}}"}}'"""
    result = command.run("import", "curl", text, "-o", "shop.targets")
    assert (result.code, result.out) == (0, "")
    assert len(result.messages) == 1 and "ignored: --compressed" in result.err

    result = command.run("load", target.url, *BRIEFLY, "--targets", "shop.targets")
    assert result.code != 2, result.err
    assert _distinct_requests(target) == {
        ("GET", "/cart?add=7", b""),
        ("POST", "/orders", b'{"item": "{{7}}"}'),
    }
    fields = {path: headers for _, path, headers, _ in target.requests}
    assert fields["/cart?add=7"]["x-one"] == "1"
    assert fields["/orders"]["content-type"] == "application/json"


def test_openapi_operations_are_imported_and_sent(command: Command, target: CountingServer) -> None:
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
    result = command.run("load", target.url, *BRIEFLY, "--targets", "shop.targets")
    assert result.code != 2, result.err

    paths = [path for method, path, _, _ in target.requests if method == "GET"]
    numbers = {int(path.removeprefix("/items/")) for path in paths}
    assert len(numbers) > 5 and min(numbers) >= 1 and max(numbers) <= 1000
    bodies = [body for method, _, _, body in target.requests if method == "POST"]
    assert len(bodies) == len({uuid.UUID(json.loads(body)["id"]) for body in bodies}) > 5


@pytest.mark.parametrize(
    ("content", "message"),
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
def test_other_formats_as_targets_are_errors_that_name_the_import_command(
    command: Command, target: CountingServer, content: str, message: str
) -> None:
    (command.folder / "traffic").write_text(content)
    result = command.run("load", target.url, *BRIEFLY, "--targets", "traffic")
    assert result.code == 2
    assert f"traffic is {message}traffic -o FILE" in result.err
