"""What was measured of one cell, as ``summary.json`` holds it."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.attribution_result import AttributionResult
from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    QuantileKey,
)
from wsgiload.documents.load_report import (
    Bounds,
    Distribution,
    ErrorBudget,
    NotChecked,
    Outcomes,
    Rates,
    Uncertainty,
    Verdict,
)
from wsgiload.documents.resources import ResourceUse


class ExternalCounts(Document, frozen=True, kw_only=True):
    """Counts by the app and the kernel over the whole load, including warm-up and cool-down."""

    requests_seen: NonNegativeInt | None
    """Number of calls of the app, in all its processes. Unit: requests. Source: the bundled app,
    through shared memory. Null: your own app, or a server that does not pass on its
    environment."""
    retransmitted_segments: NonNegativeInt | None
    """TCP segments retransmitted by the host. Unit: segments. Source: `/proc/net/snmp`:
    RetransSegs. Null: not readable."""
    listen_overflows: NonNegativeInt | None
    """Connections dropped by the host because an accept queue was full. Unit: connections. Source:
    `/proc/net/netstat`: ListenOverflows. Null: not readable."""
    listen_drops: NonNegativeInt | None
    """Connections dropped by the host's listening sockets for any reason. Unit: connections.
    Source: `/proc/net/netstat`: ListenDrops. Null: not readable."""
    request_queue_full_drops: NonNegativeInt | None
    """Connection attempts dropped by the host because a request queue (SYN queue) was full. Unit:
    connections. Source: `/proc/net/netstat`: TCPReqQFullDrop. Null: not readable."""


class MeasuredConcurrency(Document, frozen=True, kw_only=True):
    """The concurrency of a server, measured with the app `conformance` and the cell's settings."""

    probed: PositiveInt
    """Number of simultaneous requests or connections tried."""
    backlog: NonNegativeInt | None
    """Listen backlog. Unit: connections. Source: kernel. Null: not readable."""
    requests_at_once: NonNegativeInt | None
    """Maximum number of requests inside the app at the same time. Unit: requests. Source:
    timestamps of the app. Null: no response in time."""
    connections_served: NonNegativeInt | None
    """Number of connections, opened one after the other, on which a response arrived. Unit:
    connections. Source: probe. Null: no keep-alive."""
    connections_kept: NonNegativeInt | None
    """Number of these connections that stayed open. Unit: connections. Source: probe. Null: no
    keep-alive."""


class Versions(Document, frozen=True, kw_only=True):
    """The versions of a server, its interpreter and its packages."""

    server: str | None
    """Version of the server. Source: its environment. Null: it could not be built, or the
    version is unknown for the user's command."""
    python: str | None
    """Version of the interpreter. Source: its environment. Null: it could not be built, or the
    version is unknown for the user's command."""
    packages: dict[str, str]
    """Versions of the packages of the server, by name. Source: its environment."""


class ServerSettings(Document, frozen=True, kw_only=True):
    """The settings with which a server ran."""

    command: tuple[str, ...]
    """The command as it was executed. Source: catalogue, plan."""
    user_command: str | None = None
    """The command as the user gave it, with its placeholders. Source: plan. Null: a server of the
    catalogue."""
    folder: str | None = None
    """Folder that the user's command ran in. Source: plan. Null: a server of the catalogue."""
    setup: tuple[str, ...] = ()
    """The user's commands that ran before its start. Source: plan."""
    teardown: tuple[str, ...] = ()
    """The user's commands that ran after its end. Source: plan."""
    ready_path: str | None = None
    """Path polled to detect that the user's command is ready. Source: plan. Null: the first request
    of the load was used."""
    stop_signal: str | None = None
    """Signal that stops it. Source: plan. Null: a server of the catalogue."""
    scripts: tuple[str, ...] = ()
    """Scripts of wsgiload that the command uses, where the server has no suitable command line; see
    `wsgiload servers script`. Source: catalogue."""
    requirements: tuple[str, ...] = ()
    """Python packages that the server was installed from. Source: catalogue."""
    system_packages: tuple[str, ...] = ()
    """Debian packages that it needs. Source: catalogue."""
    added_arguments: tuple[str, ...] = ()
    """Arguments that the user added; they take precedence over the others. Source: plan."""
    config_file: str | None = None
    """The user's configuration file for the server; the command line takes precedence over it.
    Source: plan. Null: none was given."""
    workers: PositiveInt | None
    """Number of worker processes requested. Source: plan, catalogue. Null: the server
    has none, its default applies, or the user's command does not say."""
    threads: PositiveInt | None
    """Number of threads requested for each worker. Source: plan, catalogue. Null: the
    server has none, its default applies, or the user's command does not say."""
    backlog: NonNegativeInt | None
    """Listen backlog. Unit: connections. Source: kernel. Null: not readable."""
    keepalive: Literal["on", "off"] | None
    """Whether the server kept connections alive. Source: probe. Null: not probed."""
    environment: dict[str, str]
    """Variables that were set for the server, in addition to those inherited. Secrets are replaced.
    Source: catalogue, plan."""
    versions: Versions
    """Versions of the server and its packages."""


class AppliedLimits(Document, frozen=True, kw_only=True):
    """The limits of a server, as requested and as read back."""

    backend: Literal["cgroup-v2", "cgroup-v1", "none"]
    """`cgroup-v2`, `cgroup-v1` or `none`. Source: host."""
    cpus: NonNegativeFloat | None
    """CPU limit. Unit: cores. Source: plan. Null: no limit."""
    memory_bytes: NonNegativeInt | None
    """Memory limit, swap off. Unit: bytes. Source: plan. Null: no limit."""
    pids: NonNegativeInt | None
    """Limit of processes and threads. Source: plan. Null: no limit."""
    server_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs of the server. Unit: CPU numbers. Source: plan. Null: not pinned."""
    client_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs of the generator. Unit: CPU numbers. Source: plan. Null: not pinned."""
    read_back: dict[str, float | str | None]
    """The limits read back from the cgroup files; `effective_...` is the smallest limit on the
    path to the root cgroup, `affinity` the CPU affinity of a process pinned like the server. Unit:
    as in the file. Source: cgroup."""
    not_enforced: tuple[str, ...]
    """Limits that were requested but could not be set. Source: cgroup."""


class ExitStatus(Document, frozen=True, kw_only=True):
    """How a server ended."""

    code: int | None
    """Exit code. Source: kernel. Null: killed by a signal."""
    signal: int | str | None
    """Signal that killed it. Source: kernel. Null: not killed by a signal."""
    clean: bool
    """Whether it stopped on request and in time."""


class CellFailure(Document, frozen=True, kw_only=True):
    """Why a cell failed."""

    step: str
    """Step that failed, such as `provision`, `launch`, `readiness` or `load`."""
    message: str
    """Cause and fix."""
    log_tail: str | None
    """End of the server's log. Source: server log. Null: there is none."""


class ServiceUse(Document, frozen=True, kw_only=True):
    """Resource use of a supporting service during the measurement of a cell."""

    name: str
    """As in `[services.NAME]`. Source: plan."""
    cpus: NonNegativeFloat | None
    """Cores that it may use. Unit: cores. Source: plan, cgroup. Null: not known."""
    shares_server_cores: bool
    """Whether the server runs on the same cores. Source: plan."""
    resources: ResourceUse
    """Its resource use, as for a server. Source: cgroup, or its processes."""


class CellResult(Document, frozen=True, kw_only=True):
    """The result of one cell in one run: one server with one app at one load level."""

    id: str
    """Name of the cell and its files: `server@load#run`, or `server@load#run.2` for a rerun."""
    attempt: PositiveInt | None = None
    """1, or higher for a rerun. Source: sweep."""
    server: str
    """Name in the catalogue, or name of the user's command. Source: catalogue, plan."""
    variant: str | None
    """Variant of the server. Source: catalogue. Null: it has none."""
    alias: str | None = None
    """Alias, as in `--servers again=waitress`. Source: plan. Null: no alias."""
    pinned_version: str | None = None
    """Requested version, as in `--servers waitress==3.0.1`. Source: plan. Null: that of the
    catalogue, or the user's own command."""
    profile: Literal["tuned", "stock"] | None = None
    """Profile of the experiment, or of this cell in a grid. Source: plan. Null: the user's own
    command."""
    size: str | None = None
    """Workers, threads, profile, keep-alive, Python version and bundled app if set by a grid or an
    option, such as `w2-t4` or `stock-close-py3.13-cpu`. Source: plan. Null: set by the profile."""
    app: str | None = None
    """`module:callable` that it served. Source: plan. Null: unknown for the user's command."""
    legacy: bool | None = None
    """Whether the server, or the only interpreter that it supports, is no longer maintained.
    Source: catalogue."""
    version: str | None
    """Version of the server that ran. Source: its environment. Null: it could not be built, or the
    version is unknown for the user's command."""
    python: str | None
    """Version of the Python that ran it. Source: its environment. Null: it could not be built, or
    the version is unknown for the user's command."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    run: PositiveInt
    """Number of the run, from 1. Source: plan."""
    verdict: Verdict | None
    """As in a load. Source: checks. Null: nothing was measured."""
    rate_result: Rates | None
    """As `rate` in a load. Unit: 1/s. Source: load. Null: nothing was measured."""
    outcomes: Outcomes | None
    """As in a load. Unit: requests. Source: load. Null: nothing was measured."""
    response_time_ns: Distribution | None
    """As in a load. Unit: ns. Source: load. Null: as in a load."""
    service_time_ns: Distribution | None
    """As in a load. Unit: ns. Source: load. Null: as in a load."""
    send_lag_ns: Distribution | None
    """As in a load. Unit: ns. Source: load. Null: as in a load."""
    connect_time_ns: Distribution | None
    """As in a load. Unit: ns. Source: load. Null: as in a load."""
    offered_quantiles_ns: dict[QuantileKey, Bounds] | None
    """As in a load. Unit: ns. Source: load. Null: as in a load."""
    uncertainty: Uncertainty | None = None
    """As in a load: the uncertainty within one run, without the variation between runs. Source:
    load. Null: nothing was measured."""
    limits: AppliedLimits | None
    """Limits of the server, as requested and as read back. Source: cgroup. Null: failed
    before they were set."""
    resources: ResourceUse | None
    """Resource use of the server during the measurement. Source: cgroup. Null: nothing was
    measured."""
    services: tuple[ServiceUse, ...] = ()
    """Resource use of the supporting services during the measurement. Source: cgroup."""
    server_exit: ExitStatus | None
    """How the server ended. Source: kernel. Null: it never started."""
    failure: CellFailure | None
    """Why there is no result. Null: it did not fail."""
    settings: ServerSettings | None = None
    """The settings with which the server ran. Source: catalogue, kernel. Null: it was not started,
    or an older version measured it."""
    error_budget_ns: dict[QuantileKey, ErrorBudget] = msgspec.field(default_factory=dict)
    """As in a load. Unit: ns. Source: load, host."""
    settled_s: NonNegativeFloat | None = None
    """Time for which the trial waited for a quiet host. Unit: s. Source: host. Null: it did not
    wait."""
    disturbed_s: NonNegativeFloat | None = None
    """Total length of the intervals in which other processes used more than 15 % of the machine's
    CPU time, or the hypervisor took more than 5 %. Unit: s. Source: `/proc/stat`, cgroup,
    client.csv. Null: not known."""
    warmup_s: NonNegativeFloat
    """Length of the warm-up. Unit: s. Source: plan."""
    duration_s: NonNegativeFloat
    """Duration of the measurement. Unit: s. Source: plan."""
    unhealthy_s: NonNegativeFloat | None = None
    """Total length of the intervals in which requests were due but none got a correct response.
    Unit: s. Source: load. Null: nothing was measured."""
    keepalive_honoured: bool | None
    """Whether the server kept connections open when keep-alive was requested. Source: generator.
    Null: not requested, or nothing was measured."""
    not_checked: tuple[NotChecked, ...] | None = None
    """As in a load, plus the checks of the sweep (app-calls, kernel-drops) that could not run.
    Source: checks. Null: nothing was measured."""
    external_counts: ExternalCounts | None = None
    """Counts by the app and the kernel over the whole load, including warm-up and cool-down, for
    app-calls and kernel-drops. Source: app, kernel. Null: nothing was measured."""
    backlog: NonNegativeInt | None = None
    """Listen backlog per socket. Unit: connections. Source: kernel. Null: not readable."""
    concurrency: MeasuredConcurrency | None = None
    """How many requests and connections the server handles at once. Source: probe before its first
    cell. Null: tuned profile, or it could not be probed."""
    notes: tuple[str, ...]
    """Notes shown with the result."""
    attribution: AttributionResult | None = None
    """Events that coincided with slow requests ([attribution.md](attribution.md)). Source: samples,
    load. Null: not sampled."""
