"""The recommended configuration, or why none is recommended."""

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
    """Whether no configuration meets the objective ([exit code](results.md#exit-codes) 99). Source:
    cells."""


class MemoryHeadroom(Document, frozen=True, kw_only=True):
    """Peak memory and memory limit of the recommended configuration."""

    peak_bytes: NonNegativeInt | None
    """Peak memory of the server: in a sweep, over all rates; in a race with an objective or a
    capacity search, at the recommended rate. Unit: bytes. Source: cgroup. Null: not measured."""
    limit_bytes: NonNegativeInt | None
    """Memory limit of the server. Unit: bytes. Source: cgroup. Null: no limit."""


class CpuHeadroom(Document, frozen=True, kw_only=True):
    """CPU use and CPU limit of the recommended configuration."""

    cores_mean: NonNegativeFloat | None
    """CPU use at the recommended rate, mean over runs; in a capacity search, maximum over trials.
    Unit: cores. Source: cgroup. Null: not measured."""
    limit_cores: NonNegativeFloat | None
    """CPU limit of the server. Unit: cores. Source: cgroup. Null: no limit, or a capacity
    search."""


class RecommendedConfiguration(Document, frozen=True, kw_only=True):
    """The recommended configuration and the reasons for recommending it."""

    server: str
    """Name of the configuration, as in the identifiers of its trials. Source: cells."""
    rate_per_s: PositiveFloat
    """Highest rate such that this configuration meets the objective at this rate and at all lower
    measured rates; in a capacity search, the capacity. Unit: 1/s. Source: cells."""
    figure: str
    """The figure to which `estimate` and `interval_95` refer: the highest quantile of the
    objective, `error_rate` if the objective has no quantile, or `capacity` in a capacity search.
    Source: objective."""
    estimate: NonNegativeFloat | None
    """Estimate of `figure`: geometric mean of the quantile over the runs (ns), or the estimated
    capacity (1/s). Unit: ns, or 1/s. Source: cells. Null: `figure` is `error_rate`, or the capacity
    could not be estimated."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """Lower and upper end of the 95 % confidence interval of `estimate`; for a quantile, a
    [confidence interval over runs](terminology.md#statistics) (Student's t; in a race with an
    objective, adjusted for the interim analyses). Unit: ns, or 1/s. Source: cells. Null: unknown or
    unbounded."""
    runs: PositiveInt
    """Number of conclusive runs at `rate_per_s`; in a capacity search, number of
    open-loop trials. Unit: runs, or trials. Source: cells."""
    disturbed: NonNegativeInt
    """Number of runs that met the objective although the generator or the host was disturbed; in a
    capacity search, always 0. Unit: runs. Source: cells."""
    memory: MemoryHeadroom
    """Peak memory and memory limit. Unit: bytes. Source: cgroup."""
    runner_up: str | None
    """Name of the configuration with the second-highest `rate_per_s`. Source: cells. Null:
    `also_meets` is not empty, no other configuration meets the objective at any of the rates,
    or a race with an objective."""
    tied: tuple[str, ...]
    """Configurations that also meet the objective and need about the same resources. Their
    differences in performance are within the noise. Source: cells."""
    min_requests_beyond: NonNegativeInt | None
    """Number of requests slower than the quantile in `figure`, minimum over runs. Reports show this
    number if it is below ten. Unit: requests. Source: cells. Null: the objective has no quantile,
    or a capacity search found the rate."""
    also_meets: tuple[str, ...] = ()
    """All other configurations that meet the objective at `rate_per_s`, the leanest first. Source:
    cells."""
    cpu: CpuHeadroom | None = None
    """CPU use at `rate_per_s`, and the CPU limit. Unit: cores. Source: cgroup. Null: stored by an
    older version."""
    needs: str | None = None
    """What is needed for a conclusive result, if the configuration met the objective in every run
    but there were too few runs. Source: cells. Null: the result is conclusive."""


class Recommendation(Document, frozen=True, kw_only=True):
    """The recommended configuration for an app
    ([capacity.md](capacity.md#choosing-a-configuration))."""

    app: str | None
    """The app as `module:callable`. Source: cells. Null: unknown."""
    objective: tuple[str, ...]
    """The conditions of the objective. Source: plan."""
    recommended: RecommendedConfiguration | None
    """The recommended configuration. Source: cells. Null: there is no recommendation (see
    `no_recommendation`)."""
    no_recommendation: NoRecommendation | None
    """Why there is no recommendation. Source: cells. Null: there is a recommendation."""
