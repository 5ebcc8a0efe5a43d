"""Import of curl commands as a targets file."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import pytest

from wsgiload.cli import run
from wsgiload.documents.load_plan import RequestPlan
from wsgiload.errors import UsageError
from wsgiload.loads.curl import targets_of_curl
from wsgiload.loads.request import targets_of
from wsgiload.loads.targets_text import ImportedTargets

FROM_CHROME = r"""curl 'https://shop.example/api/cart?add=7&q=caf%C3%A9' \
  -H 'accept: application/json, text/plain, */*' \
  -H 'accept-language: de-DE,de;q=0.9' \
  -H 'content-type: application/json' \
  -b 'sid=5e3c7e7a; theme=dark' \
  -H 'if-none-match: W/"1f"' \
  -H 'origin: https://shop.example' \
  -H 'priority: u=1, i' \
  -H 'sec-ch-ua: "Chromium";v="130", "Not?A_Brand";v="99"' \
  --data-raw $'{"note":"it\'s 5 o\'clock\u0021","name":"J\u00fcrgen \ud83d\ude00"}' \
  --compressed \
  --insecure"""
FROM_FIREFOX = """curl 'http://127.0.0.1:8000/login' -X POST -H 'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0' -H 'Accept-Encoding: gzip, deflate' -H 'Content-Type: application/x-www-form-urlencoded' -H 'Connection: keep-alive' --data-raw 'user=ada&password=se%24cret'"""
FROM_DOCUMENTATION = """
# List the orders
$ curl -s -u ada:pw "http://127.0.0.1:8000/orders?state=open" | jq '.items[] | .id'

$ curl -sSL -XPOST http://127.0.0.1:8000/orders \\
    -H "X-Quote: a \\"b\\" \\$5" -d item=7 -d 'count=2' > /dev/null 2>&1 && \\
  curl -I http://127.0.0.1:8000/health; curl -o out.json http://127.0.0.1:8000/a http://127.0.0.1:8000/b
"""


def reject_file(name: str) -> bytes:
    raise AssertionError(f"{name} must not be read")


def import_curl(text: str, **files: bytes) -> ImportedTargets:
    return targets_of_curl(text, files.__getitem__ if files else reject_file)


def requests(text: str, directory: Path, **files: bytes) -> list[RequestPlan]:
    """The requests that a load reads from the imported file."""
    path = directory / "imported.targets"
    path.write_text(import_curl(text, **files).text, encoding="utf-8")
    return [target.request for target in targets_of(path)]


def body_of(request: RequestPlan) -> bytes:
    return base64.b64decode(request.body_base64 or "")


def single_request(text: str, directory: Path, **files: bytes) -> RequestPlan:
    (request,) = requests(text, directory, **files)
    return request


def test_a_command_copied_from_chrome(tmp_path: Path) -> None:
    request = single_request(FROM_CHROME, tmp_path)
    assert (request.method, request.url) == ("POST", "/api/cart?add=7&q=caf%C3%A9")
    assert json.loads(body_of(request)) == {"note": "it's 5 o'clock!", "name": "Jürgen 😀"}

    fields = dict(request.headers)
    assert fields["sec-ch-ua"] == '"Chromium";v="130", "Not?A_Brand";v="99"'
    assert fields["Cookie"] == "sid=5e3c7e7a; theme=dark"
    assert fields["content-type"] == "application/json"
    assert "if-none-match" not in fields and len(fields) == 7

    assert import_curl(FROM_CHROME).notes == (
        "ignored: --compressed (no Accept-Encoding is sent), --insecure (use `wsgiload load --insecure`)",
        "the targets contain secrets from the command (cookie)",
    )


def test_a_command_copied_from_firefox(tmp_path: Path) -> None:
    request = single_request(FROM_FIREFOX, tmp_path)
    assert (request.method, request.url) == ("POST", "/login")
    assert body_of(request) == b"user=ada&password=se%24cret"
    assert {name for name, _ in request.headers} == {
        "User-Agent",
        "Accept-Encoding",
        "Content-Type",
    }


def test_commands_from_documentation(tmp_path: Path) -> None:
    get_orders, post_order, *others = requests(FROM_DOCUMENTATION, tmp_path)
    assert (get_orders.method, get_orders.url) == ("GET", "/orders?state=open")
    assert get_orders.headers == (("Authorization", "Basic YWRhOnB3"),)
    assert (post_order.method, post_order.url, body_of(post_order)) == (
        "POST",
        "/orders",
        b"item=7&count=2",
    )
    assert dict(post_order.headers) == {
        "X-Quote": 'a "b" $5',
        "Content-Type": "application/x-www-form-urlencoded",
    }
    assert [(request.method, request.url) for request in others] == [
        ("HEAD", "/health"),
        ("GET", "/a"),
        ("GET", "/b"),
    ]

    ignored, secrets = import_curl(FROM_DOCUMENTATION).notes
    assert ignored == (
        "ignored: -s, -S, -L (redirects are not followed), -o, | jq '.items[] | .id', "
        "> /dev/null, 2>&1"
    )
    assert secrets.endswith("(authorization)")


@pytest.mark.parametrize(
    ("flags", "body"),
    [
        ("-d a=1 --data b=2", b"a=1&b=2"),
        ("--data-raw @name", b"@name"),
        ("-d @file", b"line 1line 2"),
        ("-d@file", b"line 1line 2"),
        ("--data-binary @file", b"line 1\r\nline 2\n"),
        ("--data-urlencode 'q=a b&c' --data-urlencode '=x+y'", b"q=a+b%26c&x%2By"),
        ("--data-urlencode q@file", b"q=line+1%0D%0Aline+2%0A"),
        ("--data-urlencode ü", b"%C3%BC"),
        (r"""--data-binary $'\xff\x00\101\n'""", b"\xff\0A\n"),
        ("""--json '{"a":' --json '1}'""", b'{"a":1}'),
        ("-d ''", b""),
    ],
)
def test_every_form_of_data(tmp_path: Path, flags: str, body: bytes) -> None:
    request = single_request(f"curl {flags} localhost:8000", tmp_path, file=b"line 1\r\nline 2\n")
    assert (request.method, request.url, body_of(request)) == ("POST", "/", body)


@pytest.mark.parametrize(
    ("arguments", "method", "url"),
    [
        ("-G -d q=1 --data-urlencode 'r=a b' h/s", "GET", "/s?q=1&r=a+b"),
        ("-G -d q=1 'h/s?p=0#part'", "GET", "/s?p=0&q=1"),
        ("-IG -d q=1 h/s", "HEAD", "/s?q=1"),
        ("-X PATCH -d x h/s", "PATCH", "/s"),
        ("--url h/s --url-query 'a=b c'", "GET", "/s?a=b+c"),
        ("-g 'h/s?filter[name]={x}'", "GET", "/s?filter[name]={x}"),
        ("'h/straße 1'", "GET", "/stra%C3%9Fe%201"),
        ("http://[::1]:8000", "GET", "/"),
        ("'h/?q={{7*7}}' -g", "GET", "/?q={{{{7*7}}"),
        ("-- h/s", "GET", "/s"),
    ],
)
def test_methods_and_urls(tmp_path: Path, arguments: str, method: str, url: str) -> None:
    request = single_request(f"curl {arguments}", tmp_path)
    assert (request.method, request.url) == (method, url)


@pytest.mark.parametrize(
    ("flags", "fields"),
    [
        ("-H 'A: 1' -H 'A: 2'", [("A", "1"), ("A", "2")]),
        ("-H 'X-Empty;' -H 'Accept:'", [("X-Empty", "")]),
        ("-d x -H 'Content-Type:'", []),
        ("-d x -H 'content-type: text/plain'", [("content-type", "text/plain")]),
        ("-H @fields", [("A", "1"), ("B", "2")]),
        ("-A agent -e 'http://h/;auto'", [("User-Agent", "agent"), ("Referer", "http://h/")]),
        ("-b a=1 -b 'b=2; c=3' -b ''", [("Cookie", "a=1; b=2; c=3")]),
        ("--oauth2-bearer t", [("Authorization", "Bearer t")]),
        ("-H 'Host: h' -H 'authority: h' -H ':path: /'", []),
        ("-H 'Host: shop.example'", [("Host", "shop.example")]),
        (
            "--json 1",
            [("Content-Type", "application/json"), ("Accept", "application/json")],
        ),
    ],
)
def test_header_fields(tmp_path: Path, flags: str, fields: list[tuple[str, str]]) -> None:
    request = single_request(f"curl h {flags}", tmp_path, fields=b"A: 1\r\n\r\nB: 2\n")
    assert sorted(request.headers) == sorted(fields)


def test_credentials_in_a_url_are_sent_as_basic_authentication(tmp_path: Path) -> None:
    request = single_request("curl http://ada:p%40w@h:1/s", tmp_path)
    assert request.headers == (("Authorization", "Basic YWRhOnBAdw=="),)
    assert request.url == "/s"


def test_equal_commands_are_weighted_and_other_hosts_are_skipped() -> None:
    text = "curl h/a\ncurl h/b\r\ncurl h/a --next https://cdn.example/lib.js"
    assert import_curl(text).text == "GET /a\n--weight 2\n\nGET /b\n"
    assert import_curl(text).notes == ("skipped 1 of 4 requests: to hosts other than h",)


def test_header_fields_that_look_like_other_lines_are_kept(tmp_path: Path) -> None:
    request = single_request("curl h -H '#Tag: a' -H '--weight: 3'", tmp_path)
    assert request.headers == (("#Tag", "a"), ("--weight", "3"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no curl command found"),
        ("wget http://h", "'wget' is not curl"),
        ("curl -s", "has no URL"),
        ("curl 'http://h", "a quote is not closed"),
        ("curl -F photo=@cat.png h", "-F of curl cannot be imported; multipart bodies"),
        ("curl -T file h", "-X PUT --data-binary @FILE"),
        ("curl --digest -u a:b h", "--digest of curl"),
        ("curl --shiny h", "--shiny of curl cannot be imported"),
        ("curl -sy h", "-y of curl cannot be imported"),
        ("curl h -X", "-X of curl needs a value"),
        ("curl h -u ada", "-u of curl has no password"),
        ("curl h -b cookies.txt", "reads a cookie file"),
        ("curl h -H nonsense", "no colon"),
        ("curl h -H $'A: 1\\n@/etc/passwd'", "header 'A' of / has a line break"),
        ("curl h -X $'GET /\\n@/etc/passwd'", "is not a request method"),
        ("curl ftp://h/a", "is not an http:// or https:// URL"),
        ("curl 'http://[/'", "is not a URL"),
        ("curl h/{id}", "has {, which curl expands"),
        ("curl h/?a=1&b=2", "& outside quotes ends a curl command"),
        ("curl h < file", "< outside quotes ends a curl command"),
        ('curl h -H "Authorization: Bearer $TOKEN"', "has $TOKEN, which only a shell expands"),
        ("curl h/$(date)", "has $(, which only a shell expands"),
        ('curl ^"http://h^" ^\n -s', "copy it as cURL (bash)"),
        ("curl h -I -d x", "cannot be combined"),
    ],
)
def test_unsupported_commands_are_rejected_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        import_curl(text)

    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_braces_in_a_body_are_escaped(tmp_path: Path) -> None:
    assert body_of(single_request("curl h -d '{{7*7}}'", tmp_path)) == b"{{{{7*7}}"


def test_a_literal_dollar_is_not_a_variable(tmp_path: Path) -> None:
    request = single_request("curl h -d '$TOKEN' -d \"\\$5\"", tmp_path)
    assert body_of(request) == b"$TOKEN&$5"


@pytest.mark.parametrize(
    "arguments",
    [
        ["curl -s 'http://h/a b'", "-o", "FILE"],
        ["-o", "FILE", "curl", "-s", "http://h/a b"],
        ["-o", "FILE", "-"],
    ],
)
def test_the_command_is_one_argument_several_arguments_or_stdin(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    path = tmp_path / "shop.targets"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"curl -s 'http://h/a b'\n")))

    arguments = [str(path) if argument == "FILE" else argument for argument in arguments]
    assert run(["import", "curl", *arguments]) == 0
    assert path.read_text() == "GET /a%20b\n"
    assert capsys.readouterr() == ("", "wsgiload: ignored: -s\n")


def test_a_partly_quoted_command_is_rejected_with_a_fix(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["import", "curl", "curl http://h/ -H accept:", "*/*"]) == 2
    assert "paste the command after the options" in capsys.readouterr().err


def test_files_of_a_command_are_read_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("order.json").write_text('{"item": 7}\n')

    assert run(["import", "curl", "curl h --json @order.json"]) == 0
    assert base64.b64encode(b'{"item": 7}\n').decode() in capsys.readouterr().out

    assert run(["import", "curl", "curl h -d @missing"]) == 2
    assert "cannot read missing: No such file" in capsys.readouterr().err

    assert run(["import", "curl", "curl h -d @-"]) == 2
    assert "reads standard input" in capsys.readouterr().err
