"""The names a user types become the variants meant, and a bad server file is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsgiload.catalogue.contract import IDLE_UNKNOWN_S, LaunchContext, Server, Variant
from wsgiload.catalogue.names import Catalogue, ServerVariant, catalogue_rows, load_catalogue
from wsgiload.errors import UsageError


def make_server(name: str, variants: tuple[str, ...] = ("default",), **changes: object) -> Server:
    facts: dict[str, object] = {
        "name": name,
        "summary": name,
        "homepage": "https://example.org/",
        "source": Path(f"/servers/{name}.py"),
        "requirements": (f"{name}==1",),
        "distribution": name,
        "variants": tuple(Variant(one, one, True, True, True) for one in variants),
        "default_variant": variants[-1],
        "command": lambda variant, context: ["serve"],
    }
    return Server(**(facts | changes))  # type: ignore[arg-type]


@pytest.fixture
def catalogue() -> Catalogue:
    return Catalogue(
        (
            make_server("alpha", ("sync", "threads")),
            make_server("beta"),
            make_server("compiled", needs_compiler=True),
            make_server("dead", reason="it was removed upstream"),
            make_server("old", legacy=True),
        )
    )


def ids(found: list[ServerVariant]) -> list[str]:
    return [one.id for one in found]


def test_without_names_everything_that_needs_no_compiler_is_taken(catalogue: Catalogue) -> None:
    assert ids(catalogue.select(None)) == ["alpha-sync", "alpha-threads", "beta"]


def test_all_is_everything_that_runs(catalogue: Catalogue) -> None:
    assert ids(catalogue.select(["all"])) == [
        "alpha-sync",
        "alpha-threads",
        "beta",
        "compiled",
        "old",
    ]


def test_a_bare_server_is_its_default_variant_and_the_order_asked_for_is_kept(
    catalogue: Catalogue,
) -> None:
    assert ids(catalogue.select(["beta", " Alpha ", "alpha-threads"])) == ["beta", "alpha-threads"]


def test_servers_to_install_come_once(catalogue: Catalogue) -> None:
    assert [server.name for server in catalogue.servers_named(["alpha-sync", "alpha"])] == ["alpha"]


def test_an_unknown_server_gets_a_suggestion(catalogue: Catalogue) -> None:
    with pytest.raises(
        UsageError, match=r"unknown server 'alpha-thread'; did you mean alpha-threads"
    ):
        catalogue.select(["alpha-thread"])
    with pytest.raises(UsageError, match="servers list"):
        catalogue.select(["zzzzzz"])


def test_no_name_at_all_is_refused(catalogue: Catalogue) -> None:
    with pytest.raises(UsageError, match="--servers is empty"):
        catalogue.select(["", " "])


def test_a_dead_server_is_refused_with_its_reason(catalogue: Catalogue) -> None:
    with pytest.raises(UsageError, match="removed upstream"):
        catalogue.select(["dead"])


def test_rows_say_what_can_be_run(catalogue: Catalogue) -> None:
    rows = {(row["name"], row["variant"]): row for row in catalogue_rows(catalogue, {"beta"})}
    assert rows["beta", "default"]["status"] == "installed"
    assert rows["alpha", "sync"]["status"] == "available"
    assert rows["dead", "default"]["status"] == "refused"
    assert rows["beta", "default"]["python"] == ">=3.11"
    assert set(rows["beta", "default"]) == {
        "name", "variant", "profiles", "python", "status", "legacy", "reason"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SERVER = 3\n", "does not define SERVER"),
        ("raise ValueError('no')\n", "ValueError: no"),
        ("def broken(:\n", "SyntaxError"),
    ],
)
def test_a_bad_server_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "odd.py").write_text(text)
    with pytest.raises(UsageError, match=rf"odd\.py.*{complaint}"):
        load_catalogue(tmp_path)


def test_an_unpinned_requirement_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loose.py").write_text(
        "from pathlib import Path\n"
        "from wsgiload.catalogue.contract import Server, Variant\n"
        "SERVER = Server('loose', 's', 'h', Path(__file__), ('loose>=1',), 'loose',\n"
        "    (Variant('default', 's', True, True, True),), 'default', lambda variant, context: "
        "[])\n"
    )
    with pytest.raises(UsageError, match="pinned with =="):
        load_catalogue(tmp_path)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="missing"):
        load_catalogue(tmp_path / "nowhere")


def test_idle_connections_outlive_the_run() -> None:
    paths = (
        Path("/e/bin/python"),
        Path("/e/bin"),
        "127.0.0.1",
        80,
        "hello:app",
        Path("/app"),
        Path("/tmp"),
    )
    assert LaunchContext(*paths, run_s=9.5).idle_timeout_s == 130
    assert LaunchContext(*paths).idle_timeout_s == IDLE_UNKNOWN_S
