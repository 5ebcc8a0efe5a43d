"""Stored data and output contain no secrets, and runs can still be compared and resumed."""

from __future__ import annotations

import base64
import html
import json
import re
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, quote_plus

import msgspec
import pytest

from tests.secret_names import SECRET_NAMES
from wsgiload import RequestOptions
from wsgiload.cli import run
from wsgiload.documents.load_plan import (
    LoadPlan,
    RequestPlan,
    SessionPlan,
    StepPlan,
    WeightedRequest,
)
from wsgiload.errors import UsageError, WsgiloadError
from wsgiload.experiment import redaction
from wsgiload.experiment.plan import Experiment, experiment_facts
from wsgiload.experiment.redaction import (
    CONNECTION_FIELDS,
    HEADER_FIELDS,
    RESPONSE_FIELDS,
    URL_PARAMETERS,
    VARIABLES,
    is_redacted,
    public_body,
    public_field,
    public_text,
    public_url,
    public_value,
    redacted,
    show_values_of,
)
from wsgiload.experiment.stored_secrets import (
    public_plan,
    public_request,
    public_targets,
    restore_secrets,
)
from wsgiload.foreign_text import hide, message, show_all, tail, visible
from wsgiload.host.cpus import CpuPlan
from wsgiload.loads.request import Request
from wsgiload.results.store import RunDirectory
from wsgiload.results.stored_plan import raw_plan, revive, stored_plan

from .test_plan import EXPERIMENT
from .test_store import measured_load, run_info

SECRET = "5e3c7e7-5e3c7e7"
CORES = CpuPlan((0,), (0,), shared_cores=True)
SECRET_REQUEST = RequestPlan(
    url=f"/a?page=1&token={SECRET}",
    headers=(("X-Api-Key", SECRET), ("Accept", "*/*")),
    body_base64=base64.b64encode(SECRET.encode()).decode(),
)
TARGETS = (WeightedRequest(request=SECRET_REQUEST),)
OTHER_TARGETS = (WeightedRequest(request=RequestPlan(url="/")),)
SESSIONS = (SessionPlan(name="buy", steps=(StepPlan(request=SECRET_REQUEST),)),)
FIELDS = (("Authorization", f"Bearer {SECRET}"), ("Cookie", f"id={SECRET}"), ("Accept", "*/*"))
REQUEST = Request(f"/x?password={SECRET}", "POST", FIELDS, f"pin={SECRET}".encode())
WITH_TARGETS = Request(headers=FIELDS, targets=TARGETS)
WITH_SESSIONS = Request(headers=FIELDS, sessions=SESSIONS)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path / "cache"))
    redaction._key.cache_clear()
    yield tmp_path / "cache"
    redaction._key.cache_clear()
    show_all()
    show_values_of([])


def contains_secret(data: str | bytes) -> bool:
    """Whether the secret is in the data, as text or in base64."""
    text = data if isinstance(data, str) else data.decode()
    encoded = base64.b64encode(f"pin={SECRET}".encode()).decode()
    return SECRET in text or encoded in text or (SECRET_REQUEST.body_base64 or "") in text


def test_the_same_secret_has_the_same_hash_in_every_process(cache: Path) -> None:
    first = redacted(SECRET)
    redaction._key.cache_clear()
    assert redacted(SECRET) == first != redacted("another")
    assert is_redacted(first) and not is_redacted(SECRET)
    assert redacted(first) == first
    assert stat.S_IMODE((cache / "redaction.key").stat().st_mode) == 0o600


def test_another_key_gives_another_hash(cache: Path) -> None:
    first = redacted(SECRET)
    (cache / "redaction.key").unlink()
    redaction._key.cache_clear()
    assert redacted(SECRET) != first


def test_with_a_damaged_key_secrets_are_still_redacted(cache: Path) -> None:
    cache.mkdir()
    (cache / "redaction.key").write_bytes(b"short")
    assert is_redacted(redacted(SECRET))


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_value_is_hidden_in_every_place(name: str) -> None:
    encoded = base64.b64encode(f'x{{"{name}": "{SECRET}"}}'.encode()).decode()
    request = RequestPlan(
        url=f"/a?page=7&{name}={SECRET}",
        headers=((name, SECRET), ("Cookie", f"{name}={SECRET}"), ("Accept", "text/html")),
        body_base64=encoded,
    )
    public = public_targets((WeightedRequest(request=request),))[0].request
    texts = [public_value(name, SECRET), repr(public), public_url(f"/x;{name}={SECRET}#{name}=1")]

    assert not [text for text in texts if SECRET in text or encoded in text]
    assert "page=7" in public.url and public.headers[-1] == ("Accept", "text/html")
    assert name in public.url and public.headers[1][1].startswith(f"{name}=(redacted-")


def test_harmless_values_are_not_hidden() -> None:
    for name in VARIABLES:
        assert public_value(name, "value") == "value"
    for name in HEADER_FIELDS:
        assert public_field(name.title(), "value") == (name.title(), "value")
    for name in URL_PARAMETERS:
        assert public_url(f"/?{name}=value") == f"/?{name}=value"
    for name in RESPONSE_FIELDS:
        assert public_text(f'{{"{name}": "value"}}') == f'{{"{name}": "value"}}'


def test_harmless_names_are_documented() -> None:
    lines = Path("docs/secrets.md").read_text().splitlines()
    cells = [line.split("|")[1:3] for line in lines if line.startswith("| ")]
    documented = {place.strip(): set(re.findall("`([^`]+)`", names)) for place, names in cells}
    assert {place: names for place, names in documented.items() if names} == {
        "environment variables": VARIABLES,
        "header fields": {name.title() for name in HEADER_FIELDS},
        "URL parameters": URL_PARAMETERS,
        "fields of connection strings": CONNECTION_FIELDS,
        "JSON fields of quoted responses": RESPONSE_FIELDS,
    }


def test_values_are_shown_on_request() -> None:
    show_values_of(["Sid", "MODE"])
    assert public_value("mode", SECRET) == SECRET
    assert public_field("SID", SECRET) == ("SID", SECRET)
    assert public_field("Cookie", f"a={SECRET}; sid=1") == (
        "Cookie",
        f"a={redacted(SECRET)}; sid=1",
    )
    assert public_url("/?sid=1;b=2&c=3") == f"/?sid=1;b=2&c={redacted('3')}"
    assert public_text('{"sid": "1", "c": "3"}') == f'{{"sid": "1", "c": "{redacted("3")}"}}'


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (f"postgres://:{SECRET}@db:5432/shop?a={SECRET}", "postgres://:#@db:5432/shop?a=#"),
        (f"mongodb://h1:1,h2:2/db?x={SECRET}", "mongodb://h1:1,h2:2/db?x=#"),
        ("redis://cache:6379/0", "redis://cache:6379/0"),
        (f"https://hooks.example/{SECRET}", "https://hooks.example/#"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9/"),
        (f"Server=db;Database=shop;Password={SECRET};", "Server=db;Database=shop;Password=#;"),
        (f"host=db dbname=shop password={SECRET}", "host=db dbname=shop password=#"),
        (f"EndpointSuffix=core;AccountKey={SECRET}", "EndpointSuffix=core;AccountKey=#"),
        ("", ""),
    ],
)
def test_a_connection_string_shows_host_and_database_only(value: str, stored: str) -> None:
    public = public_value("X", value)
    assert public == stored.replace("#", redacted(SECRET))
    assert public_value("X", public) == public


@pytest.mark.parametrize(
    "value",
    [
        f"postgres://u:p/{SECRET}@db/shop",  # an unescaped slash
        f"tgram://{SECRET}/chat",
        f"just {SECRET}",
    ],
)
def test_other_text_is_hidden_as_a_whole(value: str) -> None:
    assert is_redacted(public_value("X", value))


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        (f"http://{SECRET}:{SECRET}@host/", "http://#:#@host/"),
        (f"/x?page=1&api_key={SECRET}&lang=2", "/x?page=1&api_key=#&lang=2"),
        (f"/x?page=1;sig={SECRET}", f"/x?page=@1;sig={SECRET}@"),
        (f"/x?page=1?sig={SECRET}", f"/x?page=@1?sig={SECRET}@"),
        (f"/x?a?sig={SECRET}", "/x?a?sig=#"),
        ("http://host:80/a@b?page=d", "http://host:80/a@b?page=d"),
        (f"https://{SECRET}@packages/simple", "https://#@packages/simple"),
        ("/x?token=", "/x?token="),
        ("/x?token={{token}}", "/x?token={{token}}"),
    ],
)
def test_only_the_secrets_of_a_url_are_redacted(url: str, stored: str) -> None:
    public = public_url(url)
    expected = re.sub("@(1.*)@", lambda match: redacted(match[1]), stored)
    assert public == expected.replace("#", redacted(SECRET))
    assert public_url(public) == public


@pytest.mark.parametrize(
    ("body", "secret"),
    [
        (f"a=1&pin={SECRET}", SECRET),
        (f"pin={quote(SECRET + ' &/')}", SECRET + " &/"),
        (f'{{"a": [{{"pin": "{SECRET}"}}]}}', SECRET),
        ('{"card": 4111111111111111}', "4111111111111111"),
        (f'<login token="{SECRET}"/>', SECRET),
        (f"<pin>{SECRET}</pin>", SECRET),
        (f'--x\r\nContent-Disposition: form-data; name="pin"\r\n\r\n{SECRET}\r\n--x--', SECRET),
    ],
)
def test_a_single_field_of_a_body_is_hidden(body: str, secret: str) -> None:
    public_body(body.encode())
    assert secret not in visible(f"pin is {secret}!")


def test_the_user_and_password_of_basic_authentication_are_hidden() -> None:
    encoded = base64.b64encode(f"ada:{SECRET}".encode()).decode()
    public_field("Proxy-Authorization", f"Basic {encoded}")
    shown = visible(f"{encoded} ada:{SECRET} {SECRET}")
    assert encoded not in shown and SECRET not in shown


@pytest.mark.parametrize(
    "encode",
    [
        *(quote, quote_plus, lambda text: quote(text, safe="")),
        lambda text: re.sub("%..", lambda match: match[0].lower(), quote(text, safe="")),
        lambda text: json.dumps(text)[1:-1],
        html.escape,
        *(
            lambda text, n=n: base64.b64encode(f"{'x' * n}{text}y".encode()).decode()
            for n in (0, 1, 2)
        ),
        *(
            lambda text, n=n: base64.urlsafe_b64encode(f"{'x' * n}{text}".encode()).decode()
            for n in (0, 1, 2)
        ),
        lambda text: base64.b64encode(quote(text, safe="").encode()).decode(),
        lambda text: quote(base64.b64encode(text.encode()).decode(), safe=""),
    ],
)
def test_another_spelling_of_a_secret_is_hidden(encode: Callable[[str], str]) -> None:
    secret = 'p/s>s?~ w&r"d+\u00fc\u00ff-5e3c7e7a11'
    text = encode(secret)
    redacted(secret)
    shown = visible(f"got {text}, {secret}")
    assert shown.count("(redacted-") == 2
    middle = text[4:-4]
    assert not [at for at in range(len(middle) - 8) if middle[at : at + 8] in shown]


def test_overlapping_secrets_leave_nothing() -> None:
    for secret in ("abcdefgh12", "efgh123456"):
        redacted(secret)
    assert visible("<abcdefgh123456>") == f"<{redacted('abcdefgh12')}{redacted('efgh123456')}>"


def test_ordinary_words_and_paths_stay_legible(tmp_path: Path) -> None:
    for value in ("localhost", str(tmp_path)):
        assert is_redacted(public_value("X", value))
        assert visible(f"see {value}") == f"see {value}"


def test_many_secrets_do_not_slow_down_the_search() -> None:
    for number in range(3_000):
        hide(f"parameter-{number}", "(hidden)")
    began_s = time.process_time()
    shown = visible("a line of the log\n" * 50_000 + "parameter-2999")
    assert shown.endswith("(hidden)")
    assert time.process_time() - began_s < 2


def test_a_redacted_secret_is_hidden_in_all_output() -> None:
    """Also in the logs of apps and in the messages of servers."""
    public_request(REQUEST)
    for show in (visible, message, tail):
        text = show(f"got {SECRET}, Bearer {SECRET}, id={SECRET}\n" + "x" * 900)
        assert SECRET not in text
        assert "got (redacted-" in text
    assert SECRET not in str(WsgiloadError("x" * 990 + SECRET + "y" * 2000))
    assert SECRET not in tail("x" * 100 + SECRET + "y" * 3990)


def test_a_short_secret_is_not_hidden_elsewhere() -> None:
    hide("admin", "(redacted)")
    assert visible("the admin page") == "the admin page"


def test_a_password_ends_at_the_last_at_sign() -> None:
    assert "ssw0rd" not in public_url("postgres://shop:p@ssw0rd1@db/shop")


@pytest.mark.parametrize("request_", [REQUEST, WITH_TARGETS, WITH_SESSIONS])
def test_a_stored_plan_contains_no_secret_and_can_be_restored(request_: Request) -> None:
    experiment = replace(EXPERIMENT, request=request_)
    stored = bytes(raw_plan(stored_plan(experiment, (), CORES)))
    assert not contains_secret(stored)
    assert json.loads(stored)["request"]["headers"][2] == ["Accept", "*/*"]
    public = revive(stored).request
    assert public == public_request(request_) == public_request(public)

    options = RequestOptions(
        path=None if request_.path == "/" else request_.path,
        headers=FIELDS[:2],
        body=request_.body,
        targets=request_.targets or None,
        sessions=request_.sessions or None,
    )
    assert restore_secrets(public, options) == request_


def test_with_store_secrets_nothing_is_redacted() -> None:
    experiment = replace(EXPERIMENT, request=REQUEST, store_secrets=True)
    assert revive(bytes(raw_plan(stored_plan(experiment, (), CORES)))).request == REQUEST
    assert restore_secrets(REQUEST, RequestOptions()) == REQUEST
    assert experiment_facts(experiment, ()).path == REQUEST.path


def test_the_facts_of_a_summary_contain_no_secret() -> None:
    assert SECRET not in str(experiment_facts(replace(EXPERIMENT, request=REQUEST), ()).path)


@pytest.mark.parametrize(
    ("stored", "options", "expected"),
    [
        (
            REQUEST,
            {"headers": FIELDS[:2], "path": REQUEST.path},
            "the value of --body was not stored",
        ),
        (
            REQUEST,
            {"headers": FIELDS[:2], "body": REQUEST.body},
            "the value of --path was not stored",
        ),
        (REQUEST, {"headers": FIELDS[:1]}, "the value of Cookie was not stored"),
        (
            REQUEST,
            {"headers": [("Cookie", "id=1")]},
            "the value of header field Cookie differs from that of the run",
        ),
        (
            Request(),
            {"headers": [("Accept", "*/*")]},
            "the value of header field Accept differs from that of the run",
        ),
        (Request(), {"path": "/y"}, "the value of path differs from that of the run"),
        (Request(), {"body": b"x"}, "the value of body differs from that of the run"),
        (Request(body=b"x"), {"body": b"y"}, "the value of body differs from that of the run"),
        (WITH_TARGETS, {"headers": FIELDS[:2]}, "the value of --targets was not stored"),
        (WITH_SESSIONS, {"headers": FIELDS[:2]}, "the value of --sessions was not stored"),
        (
            WITH_TARGETS,
            {"headers": FIELDS[:2], "targets": OTHER_TARGETS},
            "the value of targets differs from that of the run",
        ),
    ],
)
def test_a_missing_or_different_secret_is_named(
    stored: Request, options: dict[str, object], expected: str
) -> None:
    with pytest.raises(UsageError, match=expected) as raised:
        restore_secrets(public_request(stored), RequestOptions(**options))  # type: ignore[arg-type]
    assert SECRET not in str(raised.value)


def test_the_case_of_a_field_name_may_differ() -> None:
    public = public_request(Request(headers=FIELDS[:1]))
    options = RequestOptions(headers={"authorization": FIELDS[0][1]})
    assert restore_secrets(public, options).headers == (("authorization", FIELDS[0][1]),)


@pytest.mark.parametrize("stores_secrets", [False, True])
def test_a_run_directory_contains_secrets_only_on_request(
    tmp_path: Path, stores_secrets: bool
) -> None:
    directory = RunDirectory(tmp_path, "hello", stores_secrets=stores_secrets)
    load = measured_load()
    plan = msgspec.structs.replace(load.plan, headers=FIELDS, targets=TARGETS, sessions=SESSIONS)
    directory.write_cell("a@1#1", msgspec.structs.replace(load, plan=plan), [])
    experiment = replace(EXPERIMENT, request=REQUEST, store_secrets=stores_secrets)
    stored = raw_plan(stored_plan(experiment, (), CORES))
    directory.write_run(msgspec.structs.replace(run_info(directory), plan=stored))

    files = [path for path in directory.path.rglob("*") if path.is_file()]
    secret_files = {path.name for path in files if contains_secret(path.read_bytes())}
    assert secret_files == ({"a@1#1.json", "run.json"} if stores_secrets else set())


def test_the_plan_of_a_load_contains_no_secret() -> None:
    plan = measured_load().plan
    secret = msgspec.structs.replace(
        plan, url=f"http://u:{SECRET}@h/", headers=FIELDS, body_base64=SECRET_REQUEST.body_base64
    )
    public = public_plan(secret)
    assert not contains_secret(msgspec.json.encode(public))
    assert public_plan(public) == public
    assert isinstance(public, LoadPlan)


def test_a_url_of_a_capacity_search_is_stored_without_secrets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["capacity", "--url", f"http://127.0.0.1:1/?token={SECRET}", "--slo", "p99<1s"]
    assert run([*words, "--dry-run", "--json", "-"]) == 0
    printed = capsys.readouterr().out
    assert SECRET not in printed
    assert json.loads(printed)["url"].startswith("http://127.0.0.1:1/?token=(redacted-")
    assert json.loads(printed)["experiment"]["name"] == "capacity-127.0.0.1-1"


@pytest.mark.parametrize("command", [["load", "http://127.0.0.1:1/"], ["sweep"]])
@pytest.mark.parametrize("store", [False, True])
def test_a_plan_is_printed_without_secrets(
    command: list[str],
    store: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = [
        "-H",
        f"Authorization: {SECRET}",
        "--body",
        f"pin={SECRET}",
        "--dry-run",
        "--json",
        "-",
    ]
    monkeypatch.setenv("WSGILOAD_STORE_SECRETS", str(store))
    assert run([*command, *words]) == 0
    assert contains_secret(capsys.readouterr().out) is store


def test_experiments_that_differ_in_a_secret_differ() -> None:
    def stored(secret: str) -> Experiment:
        request = Request(headers=(("Authorization", secret),))
        return replace(EXPERIMENT, request=request).without_secrets()

    assert stored("one") == stored("one") != stored("two")


def test_a_placeholder_is_not_secret() -> None:
    name, value = public_field("Authorization", "Bearer {{token}}")
    assert name == "Authorization" and is_redacted(value)
    assert public_value("token", "{{token}}") == "{{token}}"
    reason = "no value for {{token}}: the body is not JSON or has no .token"
    assert visible(reason) == reason
