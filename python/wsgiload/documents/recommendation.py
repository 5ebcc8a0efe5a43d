"""The recommended setting, or why there is none."""

from __future__ import annotations

from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)


class NoRecommendation(Document, frozen=True, kw_only=True):
    """Why no configuration is recommended, and what is needed for a recommendation."""

    reason: str
    """Why no configuration can be recommended. Source: cells."""
    needs: str
    """What is needed for a recommendation. Source: cells."""
    is_missed: bool
    """Whether no configuration meets the objective, so that the command exits with code 99. Source:
    cells."""


class MemoryHeadroom(Document, frozen=True, kw_only=True):
    """Memory of the recommended configuration, compared with its limit."""

    peak_bytes: NonNegativeInt | None
    """Memory peak of the server at the recommended rate. Unit: bytes. Source: cgroup.
    Null: not measured."""
    limit_bytes: NonNegativeInt | None
    """Its memory limit. Unit: bytes. Source: cgroup. Null: no limit."""


class CpuHeadroom(Document, frozen=True, kw_only=True):
    """CPU use of the recommended configuration, compared with its limit."""

    cores_mean: NonNegativeFloat | None
    """CPU use at the recommended rate, mean over the runs. Unit: cores. Source: cgroup. Null: not
    measured."""
    limit_cores: NonNegativeFloat | None
    """Its CPU limit. Unit: cores. Source: cgroup. Null: no limit."""


class RecommendedConfiguration(Document, frozen=True, kw_only=True):
    """The configuration to run."""

    server: str
    """The configuration, as in the identifiers of its cells. Source: cells."""
    rate_per_s: PositiveFloat
    """The highest rate at which every configuration was measured and this one meets the objective.
    Unit: 1/s. Source: cells."""
    figure: str
    """The figure of `estimate` and `interval_95`: the highest quantile of the objective, or
    `error_rate`. Source: objective."""
    estimate: NonNegativeFloat | None
    """Geometric mean of that figure over the runs. Unit: ns. Source: cells. Null: the objective
    has no quantile."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """95 % confidence interval over the runs (Student's t). Unit: ns. Source: cells. Null: as
    `estimate`."""
    runs: PositiveInt
    """Number of runs that count. Unit: runs. Source: cells."""
    disturbed: NonNegativeInt
    """Number of runs that met the objective although the generator or the host was disturbed. Unit:
    runs. Source: cells."""
    memory: MemoryHeadroom
    """Peak memory at any rate, and the limit. Unit: bytes. Source: cgroup. Null: an entry: not
    measured, or no limit."""
    runner_up: str | None
    """The next best configuration. Source: cells. Null: there is none."""
    tied: tuple[str, ...]
    """Configurations that meet the objective and do not differ from the recommended one in
    resources or, beyond the noise, in performance. Source: cells."""
    min_requests_beyond: NonNegativeInt | None
    """Lowest number of requests beyond the quantile in any run; the recommendation mentions it if
    it is below ten. Unit: requests. Source: cells. Null: the objective has no quantile, or the rate
    was found by a search."""
    also_meets: tuple[str, ...] = ()
    """All other configurations that meet the objective at that rate, the leanest first. Source:
    cells."""
    cpu: CpuHeadroom | None = None
    """CPU use at that rate, and the limit. Source: cgroup. Null: stored by an older version."""
    needs: str | None = None
    """What is needed for a conclusive result. Given if the configuration met the objective in every
    run, but there were too few runs. Source: cells. Null: the result is conclusive."""


class Recommendation(Document, frozen=True, kw_only=True):
    """The recommended configuration for an app
    ([capacity.md](capacity.md#choosing-a-configuration))."""

    app: str | None
    """`module:callable` of the app. Source: cells. Null: not recorded."""
    objective: tuple[str, ...]
    """The objective. Source: plan."""
    recommended: RecommendedConfiguration | None
    """The recommended configuration. Source: cells. Null: there is no recommendation; see
    `no_recommendation`."""
    no_recommendation: NoRecommendation | None
    """Why there is no recommendation. Source: cells. Null: there is a recommendation."""
