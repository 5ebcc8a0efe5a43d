"""The precision that a load reached for a quantile, and the duration that the target needs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from wsgiload.documents.load_plan import PrecisionTarget
from wsgiload.documents.load_report import (
    Bounds,
    LoadReport,
    PrecisionReached,
    QuantileUncertainty,
    Uncertainty,
)
from wsgiload.errors import UsageError
from wsgiload.loads.precision import Precision, parse_precision, precision_sentence, until_precise

from .load_report_fixture import stopped_report

Interval = tuple[int, int | None]


def load(low_high: Interval | None = None, scheduled: int = 2_000, **known: Any) -> LoadReport:
    """A load of 2,000 requests in 10 s whose p99 is 100 ms."""
    default: dict[str, Any] = {
        "interval_95_ns": low_high,
        "effective_requests": 1_500.0,
        "resolution_status": "resolved" if low_high else "not_resolved",
        "reason": None if low_high else "too_few_effective_requests",
    }
    uncertainty = Uncertainty(
        offered_quantiles_ns={"0.99": QuantileUncertainty(**default | known)}, response_time_ns={}
    )

    report = stopped_report()
    return replace(
        report,
        measured_ns=10_000_000_000,
        outcomes=replace(report.outcomes, scheduled=scheduled),
        offered_quantiles_ns={"0.99": Bounds(low=100_000_000, high=100_000_000)},
        uncertainty=uncertainty,
        precision=None,
    )


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("5%", Precision(0.05)),
        (" 2.5% ", Precision(0.025)),
        ("p50:1%", Precision(0.01, "p50")),
        ("p99.9:10%", Precision(0.1, "p99.9")),
    ],
)
def test_a_precision_is_a_percentage_of_a_quantile(text: str, precision: Precision) -> None:
    parsed = parse_precision(text)
    assert (parsed.name, parsed.share) == (precision.name, pytest.approx(precision.share))


@pytest.mark.parametrize(
    "text", ["", "5", "0%", "51%", "p98:5%", "p99:", "p99=5%", "1.2.3%", "-5%"]
)
def test_an_invalid_precision_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_precision(text)


def test_a_narrow_interval_reaches_the_precision() -> None:
    sentence = precision_sentence(load((96_000_000, 105_000_000)), Precision(0.05))
    assert sentence == "p99 is known to ± 4.5 % (1,500 effective requests)"


@pytest.mark.parametrize(
    ("low_high", "duration"),
    [
        ((91_000_000, 111_000_000), "40 s"),
        ((80_000_000, 120_000_000), "3 min"),
        ((90_000_000, 110_002_000), "41 s"),
    ],
)
def test_a_wide_interval_names_the_duration_needed(low_high: Interval, duration: str) -> None:
    """Half the width takes four times as long."""
    sentence = precision_sentence(load(low_high), Precision(0.05))
    assert f"; ± 5.0 % needs about {duration} (--duration)" in sentence


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({"effective_requests": 250.0}, "a confidence interval needs at least 40 s"),
        (
            {"effective_requests": None, "reason": "too_few_requests"},
            "a confidence interval needs at least 10 s",
        ),
        (
            {"interval_95_ns": (90, None), "effective_requests": 900.0, "reason": None},
            "a confidence interval needs at least 12 s",
        ),
        (
            {"reason": "not_met"},
            "too many requests failed; a longer measurement does not help",
        ),
        ({"reason": "below_noise_floor"}, "close to the noise floor"),
        ({"reason": "interrupted"}, "the load was interrupted"),
    ],
)
def test_a_missing_interval_is_explained(known: dict[str, Any], reason: str) -> None:
    sentence = precision_sentence(load(**known), Precision(0.05))
    assert sentence.startswith("precision of p99 not reached: ")
    assert reason in sentence


def test_an_extended_load_that_missed_its_precision_says_so() -> None:
    reached = PrecisionReached(half_width=0.2, is_reached=False)
    extended = replace(load((80_000_000, 120_000_000)), precision=reached)
    assert precision_sentence(extended, Precision(0.05)) == (
        "precision of p99 not reached: p99 is known to ± 20.0 % (1,500 effective requests); "
        "± 5.0 % needs about 3 min (--max-duration)"
    )


def test_only_a_load_with_a_maximum_duration_is_extended() -> None:
    target = Precision(0.05, "p99.9")
    assert until_precise(target, None) is until_precise(None, None) is None
    assert until_precise(target, 7) == PrecisionTarget(
        quantile=0.999, half_width=0.05, max_duration_ns=7
    )
    with pytest.raises(UsageError, match="--max-duration needs --precision"):
        until_precise(None, 7)


def test_a_load_without_requests_has_no_precision() -> None:
    empty = load((1, 2), scheduled=0)
    assert "nothing was scheduled" in precision_sentence(empty, Precision(0.05))
    other = precision_sentence(load((1, 2)), Precision(0.05, "p99.9"))
    assert "nothing was scheduled" in other
