"""What the script of a report page draws: the numbers of its charts, reduced to what can be seen.

A page carries one ``PageData``; the live page follows one ``LiveFrame`` after another.
``frontend/page-data.schema.json`` is generated from both, and the types of the front end from that.
Every number here is also in words or in a table of the page.
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
Status = Literal["valid", "warn", "invalid", "failed"]


class PageRun(Document, frozen=True):
    """One run of one server at one position of the axis."""

    x: NonNegativeInt
    """Index into the positions of the panel."""
    run: PositiveInt
    """Number of the run."""
    status: Status
    """Verdict of the cell."""
    value: NonNegativeFloat | None
    """The figure. Null: not known, or not met."""
    is_endless: bool
    """The quantile was not met, or the server failed: the run stands on the rail."""
    low: NonNegativeFloat | None
    """Lower bound, where the value is not exact. Null: not known, or the value itself."""
    interval: tuple[NonNegativeFloat, NonNegativeFloat | None] | None
    """95 % interval inside this run. Null: not known; upper end: unbounded."""


class PageSeries(Document, frozen=True):
    """One server in one panel."""

    server: NonNegativeInt
    """Index into the servers of the page, which decides colour, dash and marker."""
    medians: tuple[NonNegativeFloat | None, ...]
    """By position. Null: no finite value."""
    bands: tuple[tuple[NonNegativeFloat, NonNegativeFloat] | None, ...]
    """Least and greatest end over the runs, by position. Null: not known at both ends."""
    runs: tuple[PageRun, ...]
    """Every run of it."""


class PageLine(Document, frozen=True):
    """A horizontal line, such as a limit."""

    value: NonNegativeFloat
    """Where it is, in the unit of the panel."""
    label: str
    """What it is."""


class PagePanel(Document, frozen=True):
    """One coordinate system."""

    name: str
    """Identifies the panel within its chart, also in links."""
    title: str
    """What stands above it."""
    unit: Unit
    """Of every value in it."""
    x: tuple[NonNegativeFloat, ...]
    """The positions of the axis."""
    x_labels: tuple[str, ...]
    """What each position is called."""
    x_title: str
    """What the axis is."""
    is_x_log: bool
    """The axis is logarithmic."""
    can_be_log: bool
    """The vertical axis may be logarithmic."""
    has_equality: bool
    """Draws the line on which value and position are equal."""
    lines: tuple[PageLine, ...]
    """Limits."""
    empty: str | None
    """Why there is nothing to draw. Null: there is."""
    series: tuple[PageSeries, ...]
    """The servers."""


class PageChart(Document, frozen=True):
    """One figure of the page."""

    name: str
    """The id of its figure."""
    label: str
    """What it shows, for those who do not see it."""
    choice: str | None
    """What is chosen between the panels. Null: all are shown side by side."""
    chosen: str
    """The panel that is shown first, where one is chosen."""
    panels: tuple[PagePanel, ...]
    """Its coordinate systems."""


class PageUses(Document, frozen=True):
    """Resources of a server between samples; the lists are parallel."""

    ends_s: tuple[NonNegativeFloat, ...]
    """End of each stretch. Unit: s."""
    cores: tuple[NonNegativeFloat, ...]
    """CPU use. Unit: cores."""
    throttled_ratio: tuple[NonNegativeFloat | None, ...]
    """Share of CPU periods. Null: not measured."""
    memory_bytes: tuple[NonNegativeInt | None, ...]
    """Memory at the end of each stretch. Null: not measured."""
    listen_queue: tuple[NonNegativeInt | None, ...]
    """Connections that wait to be accepted, at the end of each stretch. Null: not measured."""


class PageService(Document, frozen=True):
    """A supporting service between samples; the lists are parallel."""

    name: str
    """As in `[services.NAME]`."""
    ends_s: tuple[NonNegativeFloat, ...]
    """End of each stretch. Unit: s."""
    cores: tuple[NonNegativeFloat, ...]
    """CPU use. Unit: cores."""


class PageMark(Document, frozen=True):
    """A column of a heatmap in which slow requests coincided with something."""

    column: NonNegativeInt
    """Index of the column."""
    text: str
    """What it was, and how many requests overlapped it."""


class PageHeat(Document, frozen=True):
    """Correct responses by time and response time."""

    ends_s: tuple[NonNegativeFloat, ...]
    """End of each column; the first begins at 0. Unit: s."""
    edges_ns: tuple[NonNegativeInt, ...]
    """Edges of the classes of response time, one more than there are classes. Unit: ns."""
    counts: tuple[tuple[NonNegativeInt, ...], ...]
    """By column and class."""
    marks: tuple[PageMark, ...]
    """Columns in which at least half of the slowest requests overlapped an event."""


class PageTimeline(Document, frozen=True):
    """One cell over time."""

    name: str
    """The id of its figure."""
    label: str
    """Server, load and run."""
    server: NonNegativeInt
    """Index into the servers of the page."""
    length_s: NonNegativeFloat
    """Length of the measurement. Unit: s."""
    middles_s: tuple[NonNegativeFloat, ...]
    """Middle of each interval. Unit: s."""
    p50_ns: tuple[NonNegativeFloat | None, ...]
    """By interval. Null: no correct response."""
    p99_ns: tuple[NonNegativeFloat | None, ...]
    """By interval. Null: no correct response."""
    max_ns: tuple[NonNegativeFloat | None, ...]
    """By interval. Null: no correct response."""
    failed: tuple[NonNegativeInt | None, ...]
    """By interval. Null: not measured."""
    heat: PageHeat | None
    """Responses by time and response time. Null: no histograms were stored."""
    uses: PageUses
    """Resources over the same time."""
    services: tuple[PageService, ...]
    """The supporting services over the same time."""
    cpu_limit: NonNegativeFloat | None
    """Unit: cores. Null: no limit that held."""
    memory_limit_bytes: NonNegativeFloat | None
    """Null: no limit that held."""


class PageFactor(Document, frozen=True):
    """One row of the forest plot."""

    name: str
    """The pair and its load."""
    value: NonNegativeFloat
    """The factor."""
    low: NonNegativeFloat
    """Lower end of its 95 % interval."""
    high: NonNegativeFloat
    """Upper end."""
    is_finding: bool
    """The data carry a conclusion."""
    is_chance: bool
    """Both are the same server: what is seen is chance."""


class PageForest(Document, frozen=True):
    """Comparisons, each as a factor with its interval."""

    title: str
    """Which figure, and what is divided by what."""
    margin: tuple[NonNegativeFloat, NonNegativeFloat]
    """Within this range two servers count as the same."""
    rows: tuple[PageFactor, ...]
    """The comparisons."""


class PageObjective(Document, frozen=True):
    """One condition of the objective of a capacity search."""

    title: str
    """Its figure."""
    unit: Unit
    """Of the figure and its limit."""
    limit: NonNegativeFloat
    """What the figure must stay below."""
    label: str
    """The condition as it was written."""


class PageTrial(Document, frozen=True):
    """One open-loop trial of a capacity search."""

    number: PositiveInt
    """Its place among all trials of its server."""
    phase: str
    """Which part of the search it belongs to."""
    rate_per_s: PositiveFloat
    """Offered rate. Unit: 1/s."""
    outcome: Literal["met", "missed", "inconclusive"]
    """What it says of the objective."""
    is_repeated: bool
    """It was made again, so that nothing rests on it."""
    values: tuple[NonNegativeFloat | None, ...]
    """By condition. Null: no finite value, or not measured."""
    texts: tuple[str, ...]
    """By condition, as in the table."""


class PageSearch(Document, frozen=True):
    """The capacity search of one server."""

    name: str
    """The id of its figure."""
    label: str
    """What it shows, for those who do not see it."""
    conditions: tuple[PageObjective, ...]
    """All of them must hold."""
    trials: tuple[PageTrial, ...]
    """In the order in which they ran."""
    bracket: tuple[PositiveFloat | None, PositiveFloat | None]
    """Lower and upper bound. Unit: 1/s. Null: an end: no such bound."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """95 % confidence interval of the capacity. Unit: 1/s. Null: not known."""
    rate_per_s: PositiveFloat | None
    """The rate that was found. Unit: 1/s. Null: none."""


class PageBar(Document, frozen=True):
    """One stacked bar: the slowest requests of a server at one load."""

    server: NonNegativeInt
    """Index into the servers of the page."""
    values_ns: tuple[NonNegativeInt, ...]
    """By part, their mean; together the mean response time. Unit: ns."""


class PageBars(Document, frozen=True):
    """The bars of one load."""

    name: str
    """Identifies the load, also in links."""
    title: str
    """What stands on its button."""
    bars: tuple[PageBar, ...]
    """One for each server of which it is known."""


class PageBreakdown(Document, frozen=True):
    """Where the slowest requests spent their time."""

    name: str
    """The id of its figure."""
    label: str
    """What it shows, for those who do not see it."""
    parts: tuple[str, ...]
    """What each part is called."""
    chosen: str
    """The load that is shown first."""
    panels: tuple[PageBars, ...]
    """One for each load."""


class PageData(Document, frozen=True):
    """Everything that the script of a page draws."""

    servers: tuple[str, ...]
    """Names of the series."""
    runs_each: PositiveInt
    """So many series that follow each other are runs of one server, and share its colour."""
    charts: tuple[PageChart, ...]
    """The charts over the load, and others of the same kind."""
    timelines: tuple[PageTimeline, ...]
    """Cells over time."""
    forest: PageForest | None
    """Null: nothing was compared."""
    breakdown: PageBreakdown | None
    """Null: the parts of the slowest requests are not known."""
    searches: tuple[PageSearch, ...]
    """Capacity searches, one of each server."""


class LiveFrame(Document, frozen=True):
    """How things stand while something is measured; the live page gets one after another."""

    rows: tuple[tuple[str, str], ...]
    """Label and text of each line of the live view."""
    trial: str
    """What is under way. The charts begin again where it changes."""
    at_s: NonNegativeFloat
    """When this was so, of CLOCK_MONOTONIC. Unit: s."""
    offered_per_s: NonNegativeFloat | None
    """Requests scheduled in about the last second. Null: not known yet."""
    achieved_per_s: NonNegativeFloat | None
    """Complete responses in about the last second. Null: not known yet."""
    p50_ns: NonNegativeFloat | None
    """Of the measurement so far. Null: not known yet, or among the failures."""
    p99_ns: NonNegativeFloat | None
    """Of the measurement so far. Null: not known yet, or among the failures."""
    cpu_cores: NonNegativeFloat | None
    """CPU use of the server in about the last second. Unit: cores. Null: not known."""
    cpu_limit: NonNegativeFloat | None
    """Unit: cores. Null: no limit that held."""
