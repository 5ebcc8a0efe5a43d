"""A load that needs more file descriptors than this process may open is refused at once."""

from __future__ import annotations

import resource

import pytest

from wsgiload.errors import UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.loads.options import lowered_default
from wsgiload.loads.public_options import LoadOptions
from wsgiload.sweeps.sweep import check_loads


@pytest.fixture
def limited(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = (min(request.param, 1024), request.param)
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits)


@pytest.mark.parametrize(
    ("limited", "spec", "expected"),
    [
        (64, SweepSpec(rates=[50]), r"1,000 .* need 1,064 .* only 64; ulimit -n 1064$"),
        (
            512,
            SweepSpec(rates=[50], load=LoadOptions(max_connections=500)),
            r"need 564 .* only 512; ulimit -n 564, or --max-connections 448$",
        ),
        (
            512,
            SweepSpec(connections=[10, 2000]),
            r"2,000 .* need 2,064 .*; ulimit -n 2064, or --connections 448$",
        ),
    ],
    indirect=["limited"],
)
def test_a_load_with_too_many_connections_is_refused(
    limited: None, spec: SweepSpec, expected: str
) -> None:
    with pytest.raises(UsageError, match=expected):
        check_loads(experiment_of(spec))


@pytest.mark.parametrize(
    ("limited", "most", "note"),
    [
        (512, 448, "at most 448 connections, because this process may open only 512 files"),
        (4096, 1000, None),
        (resource.RLIM_INFINITY, 1000, None),
    ],
    indirect=["limited"],
)
def test_the_default_is_lowered_to_what_is_possible(
    limited: None, most: int, note: str | None
) -> None:
    experiment = experiment_of(SweepSpec(rates=[50]))
    check_loads(experiment)
    assert experiment.load.max_connections == most
    said = lowered_default(experiment.load)
    assert (said or "").startswith(note or "") and (said is None) == (note is None)
