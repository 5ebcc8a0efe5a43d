"""One server under a second name of the user's own: the A/A test."""

from __future__ import annotations

import pytest

from wsgiload.catalogue.names import load_catalogue
from wsgiload.errors import UsageError
from wsgiload.report.cells import label_of

from .invented_cells import cell


def test_a_server_is_measured_twice_under_two_names() -> None:
    first, second = load_catalogue().select(["waitress", "again=waitress"])
    assert (first.id, second.id) == ("waitress", "again")
    assert (first.server, first.variant) == (second.server, second.variant)
    assert second.sized(None, 4).id == "again-t4"


def test_the_second_name_is_the_label() -> None:
    again = cell("gunicorn", variant="gthread", alias="again", size="w2", legacy=False)
    assert label_of(again) == "again-w2"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gunicorn=waitress", "'gunicorn' is a server's name; choose another alias"),
        ("all=waitress", "'all' is a server's name"),
        ("a/b=waitress", "'a/b' is not a valid alias; use letters, digits and dashes"),
        ("=waitress", "'' is not a valid alias"),
        ("again=watress", "unknown server 'watress'; did you mean waitress"),
        ("again=all", "unknown server 'all'"),
    ],
)
def test_a_name_that_could_be_mistaken_is_refused(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_catalogue().select([name])


def test_one_name_for_two_servers_is_refused_and_twice_the_same_is_one() -> None:
    says = "the alias 'again' stands for both waitress and cheroot; use a different alias for each"
    with pytest.raises(UsageError, match=says):
        load_catalogue().select(["again=waitress", "again=cheroot"])
    assert len(load_catalogue().select(["again=waitress", "again=waitress"])) == 1
