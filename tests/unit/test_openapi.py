"""OpenAPI descriptions imported as targets files."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from wsgiload.cli import run
from wsgiload.documents.load_plan import RequestPlan, WeightedRequest
from wsgiload.errors import UsageError
from wsgiload.loads.openapi import targets_of_openapi
from wsgiload.loads.request import Request, targets_of
from wsgiload.loads.targets_text import ImportedTargets

# As FastAPI generates it.
FASTAPI = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "0.1.0"},
    "paths": {
        "/items/{item_id}": {
            "get": {
                "operationId": "read_item",
                "parameters": [
                    {
                        "name": "item_id",
                        "in": "path",
                        "required": True,
                        "schema": {"type": "integer", "title": "Item Id", "exclusiveMinimum": 0},
                    },
                    {
                        "name": "q",
                        "in": "query",
                        "required": False,
                        "schema": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    },
                ],
                "responses": {"200": {}, "422": {}},
            },
            "delete": {"responses": {"204": {}}},
        },
        "/orders": {
            "post": {
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Order"}}
                    },
                    "required": True,
                },
                "responses": {"201": {}, "422": {}},
                "security": [{"OAuth2PasswordBearer": []}],
            }
        },
    },
    "components": {
        "schemas": {
            "Order": {
                "type": "object",
                "required": ["id", "customer", "lines", "paid"],
                "properties": {
                    "id": {"type": "string", "format": "uuid"},
                    "customer": {"type": "string", "minLength": 6},
                    "lines": {
                        "type": "array",
                        "minItems": 2,
                        "items": {"$ref": "#/components/schemas/Line"},
                    },
                    "paid": {"type": "boolean"},
                    "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "channel": {"type": "string", "default": "web"},
                },
            },
            "Line": {
                "type": "object",
                "required": ["count", "price", "children"],
                "properties": {
                    "count": {"type": "integer", "minimum": 1, "maximum": 5},
                    "price": {"type": "number", "multipleOf": 0.5},
                    "children": {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/Line"},
                    },
                },
            },
        },
        "securitySchemes": {"OAuth2PasswordBearer": {"type": "oauth2", "flows": {}}},
    },
}
# Shortened from the example of Swagger 2.0.
PETSTORE = {
    "swagger": "2.0",
    "basePath": "/v2",
    "consumes": ["application/json"],
    "paths": {
        "/pet": {
            "post": {
                "parameters": [
                    {
                        "in": "body",
                        "name": "body",
                        "required": True,
                        "schema": {"$ref": "#/definitions/Pet"},
                    }
                ],
                "responses": {"405": {}},
                "security": [{"petstore_auth": ["write:pets"]}],
            }
        },
        "/pet/findByStatus": {
            "get": {
                "parameters": [
                    {
                        "name": "status",
                        "in": "query",
                        "required": True,
                        "type": "array",
                        "items": {
                            "type": "string",
                            "enum": ["available", "pending", "sold"],
                            "default": "available",
                        },
                        "collectionFormat": "multi",
                    }
                ],
                "responses": {"200": {}, "400": {}},
            }
        },
        "/pet/{petId}": {
            "get": {
                "parameters": [
                    {"name": "petId", "in": "path", "required": True, "type": "integer"}
                ],
                "responses": {"200": {}},
                "security": [{"api_key": []}],
            },
            "post": {
                "consumes": ["application/x-www-form-urlencoded"],
                "parameters": [
                    {"name": "petId", "in": "path", "required": True, "type": "integer"},
                    {"name": "name", "in": "formData", "required": True, "type": "string"},
                    {"name": "status", "in": "formData", "type": "string", "default": "so ld"},
                ],
                "responses": {},
            },
        },
        "/pet/{petId}/uploadImage": {
            "post": {
                "consumes": ["multipart/form-data"],
                "parameters": [
                    {"name": "petId", "in": "path", "required": True, "type": "integer"},
                    {"name": "file", "in": "formData", "required": True, "type": "file"},
                ],
            }
        },
        "/user/{username}": {
            "get": {
                "parameters": [
                    {"name": "username", "in": "path", "required": True, "type": "string"}
                ],
                "responses": {"200": {}},
            }
        },
    },
    "definitions": {
        "Pet": {
            "type": "object",
            "required": ["name", "photoUrls"],
            "properties": {
                "id": {"type": "integer", "readOnly": True},
                "name": {"type": "string", "example": "doggie {{x}}"},
                "photoUrls": {"type": "array", "items": {"type": "string"}},
                "tags": {"type": "array", "items": {"$ref": "#/definitions/Pet"}},
            },
        }
    },
    "securityDefinitions": {
        "petstore_auth": {"type": "oauth2"},
        "api_key": {"type": "apiKey", "name": "X-Pet-Key", "in": "header"},
    },
}


def imported(description: object, *methods: str) -> ImportedTargets:
    return targets_of_openapi(json.dumps(description).encode(), methods)


def requests(description: object, directory: Path, *methods: str) -> list[RequestPlan]:
    """The requests that a load reads from the imported file."""
    path = directory / "imported.targets"
    path.write_text(imported(description, *methods).text, encoding="utf-8")
    return [target.request for target in targets_of(path)]


def sent(request: RequestPlan) -> Request:
    """The first request of a load, with its placeholders filled in."""
    return Request(targets=(WeightedRequest(request=request),)).first


def with_parameter(path: str = "/a", **parameter: object) -> dict[str, object]:
    """A description of one operation with this parameter."""
    described = {"name": "p", "required": True, **parameter}
    return {"openapi": "3.0.3", "paths": {path: {"get": {"parameters": [described]}}}}


def with_body(schema: object, **medium: object) -> dict[str, object]:
    """A description of one operation with a JSON body."""
    content = {"application/json": {"schema": schema, **medium}}
    operation = {"requestBody": {"required": True, "content": content}}
    return {"openapi": "3.0.3", "paths": {"/a": {"post": operation}}}


def body_of(description: object, directory: Path) -> Any:
    """The body of the first request."""
    (request,) = requests(description, directory, "POST")
    return json.loads(sent(request).body or b"")


def error_of(description: object, *methods: str) -> str:
    """The error if nothing can be imported."""
    with pytest.raises(UsageError) as raised:
        imported(description, *methods)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_only_get_and_head_are_imported_by_default() -> None:
    targets = imported(FASTAPI)
    assert targets.text == ("GET /items/{{random:1:1000}}\n--name GET /items/{item_id}\n")
    assert targets.notes == (
        "left out 1 DELETE, 1 POST: only GET and HEAD are imported unless you add"
        " --method DELETE --method POST",
    )


def test_a_body_follows_its_schema(tmp_path: Path) -> None:
    _, order = requests(FASTAPI, tmp_path, "POST")
    assert (order.method, order.url) == ("POST", "/orders")
    assert order.check is not None and order.check.statuses == (201,)
    assert dict(order.headers) == {"Content-Type": "application/json"}

    body = json.loads(sent(order).body or b"")
    assert re.fullmatch(r"[0-9a-f-]{36}", body.pop("id"))

    counts = [line.pop("count") for line in body["lines"]]
    assert len(counts) == 2 and all(1 <= count <= 5 for count in counts)
    assert body == {
        "customer": "textxx",
        "lines": [{"price": 1, "children": []}] * 2,
        "paid": True,
        "channel": "web",
    }

    note = "1 request needs credentials; add them to the load, for example"
    assert f"{note} -H 'Authorization: Bearer TOKEN'" in imported(FASTAPI, "POST").notes


def test_swagger_2_is_imported_with_its_base_path_and_notes(tmp_path: Path) -> None:
    pet, statuses, by_id, form = requests(PETSTORE, tmp_path, "POST")
    assert json.loads(sent(pet).body or b"") == {"name": "doggie {{x}}", "photoUrls": ["text"]}
    assert (pet.url, statuses.url) == ("/v2/pet", "/v2/pet/findByStatus?status=available")
    assert (by_id.url, by_id.name) == ("/v2/pet/{{random:1:1000}}", "GET /pet/{petId}")
    assert form.body_base64 == base64.b64encode(b"name=text&status=so%20ld").decode()
    assert dict(form.headers) == {"Content-Type": "application/x-www-form-urlencoded"}
    assert imported(PETSTORE, "POST").notes == (
        "the paths begin with /v2, the base path of the description",
        "2 requests need credentials; add them to the load, for example"
        " -H 'Authorization: Bearer TOKEN' or -H 'X-Pet-Key: KEY'",
        "skipped 2 of 6 operations: request body: multipart/form-data bodies are not supported"
        " (POST /pet/{petId}/uploadImage); path parameter username: it has no example, default or"
        " enum (GET /user/{username})",
    )


@pytest.mark.parametrize(
    ("parameter", "path"),
    [
        ({"example": "a b/ü"}, "/a%20b%2F%C3%BC"),
        ({"example": "{{uuid}}"}, "/%7B%7Buuid%7D%7D"),
        ({"examples": {"one": {"value": 7}}}, "/7"),
        ({"schema": {"type": "string", "examples": ["x", "y"]}}, "/x"),
        ({"schema": {"type": "string", "default": "x"}}, "/x"),
        ({"schema": {"enum": [None, "x"]}}, "/x"),
        ({"schema": {"const": 1.5}}, "/1.5"),
        ({"schema": {"type": "string", "format": "uuid"}}, "/{{uuid}}"),
        ({"schema": {"type": "string", "format": "date"}}, "/2024-01-31"),
        ({"schema": {"type": "boolean"}}, "/true"),
        ({"schema": {"type": "integer", "minimum": 5, "maximum": 9}}, "/{{random:5:9}}"),
        (
            {"schema": {"type": "integer", "maximum": 9, "exclusiveMaximum": True}},
            "/{{random:1:8}}",
        ),
        ({"schema": {"type": "integer", "maximum": -3}}, "/{{random:-1002:-3}}"),
        ({"schema": {"type": "integer", "minimum": 2000.5}}, "/{{random:2001:3000}}"),
        ({"schema": {"type": "integer", "multipleOf": 7, "minimum": 8}}, "/14"),
        ({"schema": {"type": "number", "minimum": 0.25, "maximum": 0.75}}, "/0.5"),
        ({"schema": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}}, "/0.5"),
        ({"schema": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}}, "/0.25"),
        (
            {"schema": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.25}},
            "/0.25",
        ),
        (
            {"schema": {"type": "integer", "exclusiveMinimum": 7, "exclusiveMaximum": 9}},
            "/{{random:8:8}}",
        ),
        ({"schema": {"type": ["null", "integer"]}}, "/{{random:1:1000}}"),
        (
            {"schema": {"allOf": [{"type": "integer"}, {"minimum": 7, "maximum": 7}]}},
            "/{{random:7:7}}",
        ),
        ({"schema": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}, "/{{random:1:1000}}"),
        ({"schema": {"type": "array", "items": {"enum": [3]}, "minItems": 2}}, "/3,3"),
        ({"content": {"application/json": {"example": [1]}}}, "/%5B1%5D"),
    ],
)
def test_a_path_parameter_has_a_value_that_fits_its_schema(
    tmp_path: Path, parameter: dict[str, object], path: str
) -> None:
    description = with_parameter("/{p}", **{"in": "path"}, **parameter)
    (request,) = requests(description, tmp_path)
    assert request.url == path
    assert sent(request).path.startswith("/")


@pytest.mark.parametrize(
    ("parameter", "query"),
    [
        ({"example": ["a&b", 2]}, "p=a%26b&p=2"),
        ({"example": ["a", 2], "explode": False}, "p=a,2"),
        ({"example": ["a", 2], "style": "pipeDelimited"}, "p=a%7C2"),
        ({"example": {"x": 1, "y": "z"}}, "x=1&y=z"),
        ({"example": {"x y": 1}, "style": "deepObject"}, "p%5Bx%20y%5D=1"),
    ],
)
def test_a_query_parameter_is_serialized_in_its_style(
    tmp_path: Path, parameter: dict[str, object], query: str
) -> None:
    schema: dict[str, object] = {"schema": {}}
    (request,) = requests(with_parameter(**{"in": "query"}, **schema, **parameter), tmp_path)
    assert request.url == f"/a?{query}"


def test_header_fields_and_cookies_are_imported(tmp_path: Path) -> None:
    parameters = [
        {"name": "X-Tenant", "in": "header", "required": True, "example": "{{a}}"},
        {"name": "X-Optional", "in": "header", "example": "b"},
        {"name": "Accept", "in": "header", "required": True},
        {
            "name": "sid",
            "in": "cookie",
            "required": True,
            "schema": {"format": "uuid", "type": "string"},
        },
    ]
    item = {"parameters": parameters, "get": {"responses": {"302": {}}}}
    (request,) = requests({"openapi": "3.0.0", "paths": {"/a": item}}, tmp_path)

    assert request.headers == (("X-Tenant", "{{{{a}}"), ("Cookie", "sid={{uuid}}"))
    assert request.check is not None and request.check.statuses == (302,)


def test_an_operation_overrides_a_parameter_of_its_path(tmp_path: Path) -> None:
    of_path = {"$ref": "#/components/parameters/id"}
    of_operation = {"name": "id", "in": "path", "required": True, "example": 2}
    item = {"parameters": [of_path], "get": {"parameters": [of_operation]}, "head": {}}
    description = {
        "openapi": "3.0.0",
        "paths": {"/a/{id}": item},
        "components": {"parameters": {"id": of_operation | {"example": 1}}},
    }

    assert [request.url for request in requests(description, tmp_path)] == ["/a/2", "/a/1"]


@pytest.mark.parametrize(
    ("servers", "path"),
    [
        ([{"url": "https://api.example/v1/"}], "/v1/a"),
        ([{"url": "/v1"}], "/v1/a"),
        ([{"url": "https://h/{v}", "variables": {"v": {"default": "v3"}}}], "/v3/a"),
        ([{"url": "https://h"}], "/a"),
        ([], "/a"),
    ],
)
def test_paths_begin_with_the_path_of_the_server(
    tmp_path: Path, servers: list[object], path: str
) -> None:
    description = {"openapi": "3.0.0", "servers": servers, "paths": {"/a": {"get": {}}}}
    assert [request.url for request in requests(description, tmp_path)] == [path]


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        (with_parameter("/{q}"), "path parameter q is not described"),
        (
            with_parameter(**{"in": "query"}, schema={"type": "string"}),
            "query parameter p: it has no example",
        ),
        (with_parameter(**{"in": "query"}, schema={}), "its type is not known"),
        (with_parameter("/{p}", **{"in": "path"}, style="matrix", example=1), "style matrix"),
        (with_parameter("/{p}", **{"in": "path"}, example={"a": 1}), "not a string or a number"),
        (with_parameter("/{p}", **{"in": "path"}, example=""), "its value is empty"),
        (
            with_parameter(
                **{"in": "query"}, schema={"type": "integer", "minimum": 2, "maximum": 1}
            ),
            "no whole number is within its bounds",
        ),
        (
            with_parameter(**{"in": "query"}, schema={"$ref": "#/nowhere"}),
            "#/nowhere, which is not in the file",
        ),
        (
            with_parameter(**{"in": "query"}, schema={"$ref": "http://h/s.json"}),
            "http://h/s.json, outside of the file; bundle it",
        ),
        (with_parameter("/a\n@b"), "its path is not a valid URL path"),
        (with_parameter(**{"in": "header"}, example="1\n@/etc/passwd"), "has a line break"),
        ({"openapi": "3.0.0", "paths": {"/a": {"$ref": "other.json"}}}, "refers to other.json"),
        ({"openapi": "3.0.0", "paths": {"/a": {"post": {}}}}, "unless you add --method POST"),
        ({"openapi": "3.0.0", "paths": {}}, "has no operations"),
        ({"openapi": "3.0.0", "paths": [1]}, "has no operations"),
        ({"openapi": "4.0.0"}, "version 4.0.0 of OpenAPI is not supported"),
        ({"swagger": "1.2"}, "version 1.2 of OpenAPI is not supported"),
        ({"info": {}}, "neither 'openapi' nor 'swagger'"),
    ],
)
def test_an_unsupported_description_is_rejected_with_the_reason(
    description: dict[str, object], reason: str
) -> None:
    assert reason in error_of(description)


def test_recursive_schemas_are_bounded(tmp_path: Path) -> None:
    loop = {"openapi": "3.0.0", "a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}}
    parameter = {"name": "p", "in": "query", "required": True, "schema": {"$ref": "#/a"}}
    loop["paths"] = {"/a": {"get": {"parameters": [parameter]}}}
    assert "references are circular" in error_of(loop)

    node = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/node"}}}
    endless = with_body({"$ref": "#/node"}) | {"node": node}
    assert "its property next: its schema contains itself" in error_of(endless, "POST")
    node["properties"] = {"next": {"type": "array", "items": {"$ref": "#/node"}}}
    assert body_of(with_body({"$ref": "#/node"}) | {"node": node}, tmp_path) == {"next": []}


def test_a_small_file_cannot_expand_to_a_huge_request() -> None:
    wide = {
        f"s{index}": {"type": "array", "minItems": 100, "items": {"$ref": f"#/s{index + 1}"}}
        for index in range(8)
    }
    started = time.monotonic()

    assert "longer than 1 MiB" in error_of(
        with_body({"$ref": "#/s0"}) | wide | {"s8": {"enum": [1]}}, "POST"
    )

    choices: dict[str, object] = {
        f"s{index}": {"oneOf": [{"$ref": f"#/s{index + 1}"}] * 10} for index in range(30)
    }

    assert "too large" in error_of(with_body({"$ref": "#/s0"}) | choices | {"s30": {}}, "POST")
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b'{"openapi":' * 100_000, b'{"openapi":"3.0.0","paths":' + b'{"/":' * 5_000],
)
def test_deeply_nested_json_is_rejected_in_one_line(content: bytes) -> None:
    with pytest.raises(UsageError) as raised:
        targets_of_openapi(content)
    assert "\n" not in str(raised.value)


def test_a_deep_example_is_skipped() -> None:
    deep: object = 1
    for _ in range(100):
        deep = [deep]
    assert "nested too deeply" in error_of(with_body({}, example=deep), "POST")


def test_skipped_operations_are_merged_by_reason() -> None:
    paths: dict[str, object] = {f"/{number}/{{name}}": {"get": {}} for number in range(150)}
    notes = imported({"openapi": "3.1.0", "paths": paths | {"/": {"get": {}}}}).notes
    assert notes == (
        "skipped 150 of 151 operations: path parameter name is not described"
        " (GET /0/{name}, GET /1/{name}, GET /2/{name} and 147 more)",
    )


def test_the_command_writes_the_targets_and_its_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "openapi.json", tmp_path / "shop.targets"
    file.write_text("\ufeff" + json.dumps(FASTAPI))
    assert run(["import", "openapi", str(file), "--method", "delete", "-o", str(out)]) == 0
    assert out.read_text() == imported(FASTAPI).text

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "wsgiload: left out 1 POST: only GET and HEAD are imported unless you add --method POST",
        "wsgiload: skipped 1 of 3 operations: path parameter item_id is not described"
        " (DELETE /items/{item_id})",
    ]


def test_yaml_is_rejected_with_the_command_that_converts_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my api.yaml"
    file.write_text("openapi: 3.0.0\n")
    assert run(["import", "openapi", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "not JSON; convert YAML with: uv run --no-project --with pyyaml python -c" in line
    assert line.endswith(f"<'{file}' >'{file}.json'")


def test_a_file_that_is_too_large_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "large.json"
    with file.open("wb") as opened:
        opened.truncate((32 << 20) + 1)
    assert run(["import", "openapi", str(file)]) == 2
    assert "is larger than 32 MiB" in capsys.readouterr().err
