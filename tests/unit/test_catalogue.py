"""Server names, their variants, and invalid server files."""

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
        "variants": tuple(Variant(variant, variant, True, True, True) for variant in variants),
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


def ids(variants: list[ServerVariant]) -> list[str]:
    return [variant.id for variant in variants]


def test_by_default_all_servers_without_a_compiler_are_selected(catalogue: Catalogue) -> None:
    assert ids(catalogue.select(None)) == ["alpha-sync", "alpha-threads", "beta"]


def test_all_selects_every_supported_server(catalogue: Catalogue) -> None:
    assert ids(catalogue.select(["all"])) == [
        "alpha-sync",
        "alpha-threads",
        "beta",
        "compiled",
        "old",
    ]


def test_a_server_name_selects_its_default_variant_in_the_given_order(
    catalogue: Catalogue,
) -> None:
    assert ids(catalogue.select(["beta", " Alpha ", "alpha-threads"])) == ["beta", "alpha-threads"]


def test_a_server_with_several_variants_is_installed_once(catalogue: Catalogue) -> None:
    assert [server.name for server in catalogue.servers_named(["alpha-sync", "alpha"])] == ["alpha"]


def test_an_unknown_server_gets_a_suggestion(catalogue: Catalogue) -> None:
    with pytest.raises(
        UsageError, match=r"unknown server 'alpha-thread'; did you mean alpha-threads"
    ):
        catalogue.select(["alpha-thread"])
    with pytest.raises(UsageError, match="servers list"):
        catalogue.select(["zzzzzz"])


def test_an_empty_list_of_servers_is_rejected(catalogue: Catalogue) -> None:
    with pytest.raises(UsageError, match="--servers is empty"):
        catalogue.select(["", " "])


def test_an_unusable_server_is_rejected_with_its_reason(catalogue: Catalogue) -> None:
    with pytest.raises(UsageError, match="removed upstream"):
        catalogue.select(["dead"])


def test_rows_have_the_status_of_each_server(catalogue: Catalogue) -> None:
    rows = {(row["name"], row["variant"]): row for row in catalogue_rows(catalogue, {"beta"})}
    assert rows["beta", "default"]["status"] == "installed"
    assert rows["alpha", "sync"]["status"] == "available"
    assert rows["dead", "default"]["status"] == "refused"
    for row in rows.values():
        if row["status"] != "refused":
            (selected,) = catalogue.select([str(row["id"])])
            assert (selected.server.name, selected.variant.name) == (row["name"], row["variant"])
    assert rows["beta", "default"]["python"] == ">=3.11"
    assert set(rows["beta", "default"]) == {
        "id", "name", "variant", "profiles", "python", "status", "legacy", "reason"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SERVER = 3\n", "does not define SERVER"),
        ("raise ValueError('no')\n", "ValueError: no"),
        ("def broken(:\n", "SyntaxError"),
    ],
)
def test_an_invalid_server_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "invalid.py").write_text(text)
    with pytest.raises(UsageError, match=rf"invalid\.py.*{message}"):
        load_catalogue(tmp_path)


def test_an_unpinned_requirement_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "loose.py").write_text(
        "from pathlib import Path\n"
        "from wsgiload.catalogue.contract import Server, Variant\n"
        "SERVER = Server('loose', 's', 'h', Path(__file__), ('loose>=1',), 'loose',\n"
        "    (Variant('default', 's', True, True, True),), 'default', lambda variant, context: "
        "[])\n"
    )
    with pytest.raises(UsageError, match="pinned with =="):
        load_catalogue(tmp_path)


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
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
