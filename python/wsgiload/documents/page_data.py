"""The data that the script of a report page draws: the values of its charts, at the resolution of
the screen.

A report page contains one ``PageData``; the live page receives a sequence of ``LiveFrame``.
``frontend/page-data.schema.json`` is generated from both types, and the types of the front end are
generated from that schema. The text and the tables of the page also contain every number.
"""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

Unit = Literal["ns", "per_s", "ratio", "cores", "bytes", "count"]
Status = Literal["valid", "disturbed", "invalid", "failed"]


class PageRun(Document, frozen=True):
    """One run of one server at one position of the axis."""

    x: NonNegativeInt
    """Index into the positions of the panel."""
    run: PositiveInt
    """Number of the run."""
    status: Status
    """Whether the trial counts, and whether something other than the server disturbed it."""
    value: NonNegativeFloat | None
    """Value of the figure. Null: unknown, or no finite value."""
    is_endless: bool
    """Whether the quantile has no finite value or the server failed. The run is then drawn at the
    upper edge of the chart."""
    low: NonNegativeFloat | None
    """Lower bound of the value. Null: unknown, or the value is exact."""
    interval: tuple[NonNegativeFloat, NonNegativeFloat | None] | None
    """Lower and upper end of the 95 % confidence interval within this run; the upper end is null if
    unbounded. Null: unknown."""


class PageSeries(Document, frozen=True):
    """One server in one panel."""

    server: NonNegativeInt
    """Index into the page's servers; it determines color, dash pattern and marker."""
    medians: tuple[NonNegativeFloat | None, ...]
    """Median over runs at each position. Null: an entry: no finite value."""
    bands: tuple[tuple[NonNegativeFloat, NonNegativeFloat] | None, ...]
    """Range over the runs at each position: of their confidence intervals, or of their values if
    the figure has no intervals. Null: an entry: unknown."""
    runs: tuple[PageRun, ...]
    """All runs of the server."""


class PageLine(Document, frozen=True):
    """A horizontal line, such as a limit."""

    value: NonNegativeFloat
    """Position of the line, in the unit of the panel."""
    label: str
    """Label of the line."""


class PagePanel(Document, frozen=True):
    """One coordinate system of a chart."""

    name: str
    """Name of the panel, unique within its chart; also used in links."""
    title: str
    """Title of the panel."""
    unit: Unit
    """Unit of all values in the panel."""
    x: tuple[NonNegativeFloat, ...]
    """Positions on the horizontal axis."""
    x_labels: tuple[str, ...]
    """Label of each position."""
    x_title: str
    """Title of the horizontal axis."""
    is_x_log: bool
    """Whether the horizontal axis is logarithmic."""
    can_be_log: bool
    """Whether the vertical axis can be switched to logarithmic."""
    has_equality: bool
    """Whether the panel has a line on which the value equals the position."""
    lines: tuple[PageLine, ...]
    """Limits, drawn as lines."""
    series: tuple[PageSeries, ...]
    """The servers of the panel."""


class PageChart(Document, frozen=True):
    """One chart of the page."""

    name: str
    """HTML id of the chart."""
    label: str
    """Description of the chart for screen readers."""
    choice: str | None
    """What the reader selects to switch between panels, such as the quantile. Null: all panels are
    shown side by side."""
    chosen: str
    """Panel that is shown first; empty without `choice`."""
    panels: tuple[PagePanel, ...]
    """Panels of the chart; none is empty."""
    absent: tuple[str, ...]
    """Panels without data, each with the reason."""


class PageUses(Document, frozen=True):
    """Resource use of a server between samples; the lists are parallel."""

    ends_s: tuple[NonNegativeFloat, ...]
    """End of each interval between two samples. Unit: s."""
    cores: tuple[NonNegativeFloat, ...]
    """CPU use. Unit: cores."""
    throttled_ratio: tuple[NonNegativeFloat | None, ...]
    """Share of CPU periods that were throttled. Null: an entry: not measured."""
    memory_bytes: tuple[NonNegativeInt | None, ...]
    """Memory that the server cannot give back, at the end of each interval. Null: an entry: not
    measured."""
    listen_queue: tuple[NonNegativeInt | None, ...]
    """Number of connections in the accept queue at the end of each interval. Null: an entry: not
    measured."""


class PageService(Document, frozen=True):
    """CPU use of a supporting service between samples; the lists are parallel."""

    name: str
    """Name of the service, as in `[services.NAME]`."""
    ends_s: tuple[NonNegativeFloat, ...]
    """End of each interval between two samples. Unit: s."""
    cores: tuple[NonNegativeFloat, ...]
    """CPU use. Unit: cores."""


class PageMark(Document, frozen=True):
    """A column of a heatmap in which slow requests coincided with an event."""

    column: NonNegativeInt
    """Index of the column."""
    text: str
    """The event, and the number of requests that overlapped it."""


class PageHeat(Document, frozen=True):
    """A heatmap: numbers of correct responses by time and response time."""

    ends_s: tuple[NonNegativeFloat, ...]
    """End of each column; the first begins at 0. Unit: s."""
    edges_ns: tuple[NonNegativeInt, ...]
    """Edges of the response-time classes, one more than there are classes. Unit: ns."""
    counts: tuple[tuple[NonNegativeInt, ...], ...]
    """Number of responses by column and class."""
    marks: tuple[PageMark, ...]
    """Columns in which at least half of the slowest requests overlapped an event."""


class PageTimeline(Document, frozen=True):
    """One cell over time."""

    name: str
    """HTML id of the chart."""
    label: str
    """Server, load level and run."""
    server: NonNegativeInt
    """Index into the page's servers."""
    length_s: NonNegativeFloat
    """Length of the measurement. Unit: s."""
    middles_s: tuple[NonNegativeFloat, ...]
    """Middle of each interval. Unit: s."""
    p50_ns: tuple[NonNegativeFloat | None, ...]
    """Median response time in each interval. Null: an entry: no correct response."""
    p99_ns: tuple[NonNegativeFloat | None, ...]
    """p99 response time in each interval. Null: an entry: no correct response."""
    max_ns: tuple[NonNegativeFloat | None, ...]
    """Longest response time in each interval. Null: an entry: no correct response."""
    failed: tuple[NonNegativeInt | None, ...]
    """Number of failed requests in each interval. Null: an entry: not measured."""
    heat: PageHeat | None
    """Heatmap of the response times. Null: no histograms were stored."""
    uses: PageUses
    """Resource use of the server during the measurement."""
    services: tuple[PageService, ...]
    """CPU use of the supporting services during the measurement."""
    cpu_limit: NonNegativeFloat | None
    """CPU limit of the server. Unit: cores. Null: no limit was enforced."""
    memory_limit_bytes: NonNegativeFloat | None
    """Memory limit of the server. Null: no limit was enforced."""


class PageObjective(Document, frozen=True):
    """One condition of the objective of a capacity search."""

    title: str
    """Name of the figure."""
    unit: Unit
    """Unit of the figure and its limit."""
    limit: NonNegativeFloat
    """Limit that the figure must stay below."""
    label: str
    """The condition as the user wrote it."""


class PageTrial(Document, frozen=True):
    """One open-loop trial of a capacity search."""

    number: PositiveInt
    """Number of the trial among all trials of the server."""
    phase: str
    """Stage of the search."""
    rate_per_s: PositiveFloat
    """Offered rate. Unit: 1/s."""
    outcome: Literal["met", "missed", "inconclusive"]
    """Whether the trial met or missed the objective, or was inconclusive."""
    is_repeated: bool
    """Whether the trial was discarded and repeated."""
    values: tuple[NonNegativeFloat | None, ...]
    """Value of each condition's figure. Null: an entry: no finite value, or not measured."""
    texts: tuple[str, ...]
    """Value of each condition's figure, as in the table."""


class PageSearch(Document, frozen=True):
    """The capacity search of one server."""

    name: str
    """HTML id of the chart."""
    label: str
    """Description of the chart for screen readers."""
    conditions: tuple[PageObjective, ...]
    """The conditions of the objective."""
    trials: tuple[PageTrial, ...]
    """Trials in the order in which they ran."""
    bracket: tuple[PositiveFloat | None, PositiveFloat | None]
    """Nearest measured rates around the capacity that met and missed the objective. Unit: 1/s.
    Null: an entry: no such trial."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """95 % confidence interval of the capacity. Unit: 1/s. Null: unknown."""
    rate_per_s: PositiveFloat | None
    """The capacity. Unit: 1/s. Null: unknown."""


class PageBar(Document, frozen=True):
    """One stacked bar: the slowest requests of a server at one load level."""

    server: NonNegativeInt
    """Index into the page's servers."""
    values_ns: tuple[NonNegativeInt, ...]
    """Mean of each part of the response time; the sum is the mean response time. Unit: ns."""


class PageBars(Document, frozen=True):
    """The bars of one load level."""

    name: str
    """Name of the load level; also used in links."""
    title: str
    """Label of the load level's button."""
    bars: tuple[PageBar, ...]
    """One bar for each server whose breakdown is known."""


class PageBreakdown(Document, frozen=True):
    """The latency breakdown of the slowest requests."""

    name: str
    """HTML id of the chart."""
    label: str
    """Description of the chart for screen readers."""
    parts: tuple[str, ...]
    """Name of each part of the response time."""
    chosen: str
    """Load level that is shown first."""
    panels: tuple[PageBars, ...]
    """One panel for each load level."""


class PageData(Document, frozen=True):
    """Everything that the script of a page draws."""

    servers: tuple[str, ...]
    """Names of the series."""
    runs_each: PositiveInt
    """Number of consecutive series that are runs of one server and share its color."""
    charts: tuple[PageChart, ...]
    """Charts by load level, and charts of the same type."""
    timelines: tuple[PageTimeline, ...]
    """Charts of cells over time."""
    breakdown: PageBreakdown | None
    """Latency breakdown of the slowest requests. Null: the parts of their response times are
    unknown."""
    searches: tuple[PageSearch, ...]
    """Capacity searches, one for each server."""


class LiveFrame(Document, frozen=True):
    """The current state of a measurement; the live page receives a sequence of frames."""

    rows: tuple[tuple[str, str], ...]
    """Label and text of each line of the live view."""
    trial: str
    """Name of the current trial. The charts restart when it changes."""
    at_s: NonNegativeFloat
    """Time of the frame on CLOCK_MONOTONIC. Unit: s."""
    offered_per_s: NonNegativeFloat | None
    """Requests scheduled in the last second, approximately. Null: not known yet."""
    achieved_per_s: NonNegativeFloat | None
    """Complete responses in the last second, approximately. Null: not known yet."""
    p50_ns: NonNegativeFloat | None
    """p50 of the measurement so far. Null: not known yet, or no finite value."""
    p99_ns: NonNegativeFloat | None
    """p99 of the measurement so far. Null: not known yet, or no finite value."""
    cpu_cores: NonNegativeFloat | None
    """CPU use of the server in the last second, approximately. Unit: cores. Null: unknown."""
    cpu_limit: NonNegativeFloat | None
    """CPU limit of the server. Unit: cores. Null: no limit was enforced."""
