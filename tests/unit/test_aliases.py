"""Server aliases, which allow A/A tests."""

from __future__ import annotations

import pytest

from wsgiload.catalogue.names import load_catalogue
from wsgiload.errors import UsageError
from wsgiload.report.cells import label_of

from .invented_cells import cell


def test_an_alias_selects_the_same_server_a_second_time() -> None:
    first, second = load_catalogue().select(["waitress", "again=waitress"])
    assert (first.id, second.id) == ("waitress", "again")
    assert (first.server, first.variant) == (second.server, second.variant)
    assert second.sized(None, 4).id == "again-t4"


def test_the_alias_is_the_label() -> None:
    again = cell("gunicorn", variant="gthread", alias="again", size="w2", legacy=False)
    assert label_of(again) == "again-w2"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gunicorn=waitress", "'gunicorn' is a server's name; choose another alias"),
        ("all=waitress", "'all' is a server's name"),
        ("a/b=waitress", "'a/b' is not a valid alias; use letters, digits and dashes"),
        ("=waitress", "'' is not a valid alias"),
        ("again=watress", "unknown server 'watress'; did you mean waitress"),
        ("again=all", "unknown server 'all'"),
    ],
)
def test_an_ambiguous_or_invalid_alias_is_rejected(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_catalogue().select([name])


def test_an_alias_of_two_servers_is_rejected_and_a_repeated_alias_is_one_server() -> None:
    message = (
        "the alias 'again' stands for both waitress and cheroot; use a different alias for each"
    )
    with pytest.raises(UsageError, match=message):
        load_catalogue().select(["again=waitress", "again=cheroot"])

    assert len(load_catalogue().select(["again=waitress", "again=waitress"])) == 1
