"""The measurements of one cell, as stored in ``summary.json``."""

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
    """Counts by the app and by the kernel over the whole load, including warm-up and cool-down."""

    requests_seen: NonNegativeInt | None
    """Number of calls to the app, over all server processes. Unit: requests. Source: bundled app,
    through shared memory. Null: not a bundled app, the server does not pass its environment to the
    app, or the server cannot write files."""
    retransmitted_segments: NonNegativeInt | None
    """TCP segments that the host retransmitted. Unit: segments. Source: `/proc/net/snmp`:
    RetransSegs. Null: not readable."""
    listen_overflows: NonNegativeInt | None
    """Connections that the host dropped because an accept queue was full. Unit: connections.
    Source: `/proc/net/netstat`: ListenOverflows. Null: not readable."""
    listen_drops: NonNegativeInt | None
    """Connections that the host's listening sockets dropped for any reason. Unit: connections.
    Source: `/proc/net/netstat`: ListenDrops. Null: not readable."""
    request_queue_full_drops: NonNegativeInt | None
    """Connection attempts that the host dropped because a SYN queue (request queue) was full. Unit:
    connections. Source: `/proc/net/netstat`: TCPReqQFullDrop. Null: not readable."""


class MeasuredConcurrency(Document, frozen=True, kw_only=True):
    """The concurrency of a server with the cell's settings, measured by a probe: test requests to
    the app `conformance`."""

    probed: PositiveInt
    """The probe sends this number of simultaneous requests. Separately, it tries to open this
    number of connections. Unit: requests, connections."""
    backlog: NonNegativeInt | None
    """Listen backlog. Unit: connections. Source: kernel. Null: not readable."""
    requests_at_once: NonNegativeInt | None
    """Highest number of requests inside the app at the same time. Unit: requests. Source:
    timestamps of the app. Null: no response arrived in time."""
    connections_served: NonNegativeInt | None
    """Number of connections on which a response arrived. The connections were opened one after
    another and kept open. Unit: connections. Source: probe. Null: the server does not keep
    connections open."""
    connections_kept: NonNegativeInt | None
    """Number of the connections in `connections_served` that stayed open. Unit: connections.
    Source: probe. Null: the server does not keep connections open."""


class Versions(Document, frozen=True, kw_only=True):
    """The versions of a server, its interpreter and its packages."""

    server: str | None
    """Version of the server. Source: the server's environment. Null: the environment could not be
    built, or the version of the user's own server is unknown."""
    python: str | None
    """Version of the interpreter. Source: the server's environment. Null: the environment could not
    be built, or the version of the user's own server is unknown."""
    packages: dict[str, str]
    """Versions of the server's packages, by package name. Source: the server's environment."""


class ServerSettings(Document, frozen=True, kw_only=True):
    """The settings with which a server ran."""

    command: tuple[str, ...]
    """Command that started the server. Source: catalogue, plan."""
    user_command: str | None = None
    """Command of the user's own server, with placeholders. Source: plan. Null: a catalogue
    server."""
    folder: str | None = None
    """Working directory of the user's own server. Source: plan. Null: a catalogue server."""
    setup: tuple[str, ...] = ()
    """The user's commands that ran before the server started. Source: plan."""
    teardown: tuple[str, ...] = ()
    """The user's commands that ran after the server ended. Source: plan."""
    ready_path: str | None = None
    """Path that was polled until the user's own server was ready. Source: plan. Null: the path of
    the load's first request was polled."""
    stop_signal: str | None = None
    """Signal that stops the user's own server. Source: plan. Null: a catalogue server."""
    scripts: tuple[str, ...] = ()
    """wsgiload's own scripts that the command runs, for servers without a suitable command line;
    see `wsgiload servers script`. Source: catalogue."""
    requirements: tuple[str, ...] = ()
    """Python packages from which the server was installed. Source: catalogue."""
    system_packages: tuple[str, ...] = ()
    """Debian packages that the server needs. Source: catalogue."""
    added_arguments: tuple[str, ...] = ()
    """Arguments that the user added. They take precedence over all other arguments. Source:
    plan."""
    config_file: str | None = None
    """The user's configuration file for the server. The command line takes precedence over it.
    Source: plan. Null: no file was given."""
    workers: PositiveInt | None
    """Number of worker processes that the settings request. Unit: processes. Source: plan,
    catalogue. Null: the server has no such setting, its default applies, or the number for the
    user's own server is unknown."""
    threads: PositiveInt | None
    """Number of threads per worker that the settings request. Unit: threads. Source: plan,
    catalogue. Null: the server has no such setting, its default applies, or the number for the
    user's own server is unknown."""
    backlog: NonNegativeInt | None
    """Listen backlog. Unit: connections. Source: kernel. Null: not readable."""
    keepalive: Literal["on", "off"] | None
    """Whether the server kept a connection open in a test before the load: `on` or `off`. Source:
    test requests. Null: not tested."""
    environment: dict[str, str]
    """Environment variables that were set for the server, in addition to inherited ones. Secrets
    are replaced by hashes. Source: catalogue, plan."""
    versions: Versions
    """Versions of the server, its interpreter and its packages."""


class AppliedLimits(Document, frozen=True, kw_only=True):
    """The limits of a server, as requested and as read back from the kernel."""

    backend: Literal["cgroup-v2", "cgroup-v1", "none"]
    """Mechanism that enforces the limits: `cgroup-v2`, `cgroup-v1` or `none`. Source: host."""
    cpus: NonNegativeFloat | None
    """CPU limit. Unit: cores. Source: plan. Null: no limit."""
    memory_bytes: NonNegativeInt | None
    """Memory limit; swap is off. Unit: bytes. Source: plan. Null: no limit."""
    pids: NonNegativeInt | None
    """Limit on the number of processes and threads. Unit: processes and threads. Source: plan.
    Null: no limit."""
    server_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs to which the server is pinned. Unit: CPU numbers. Source: plan. Null: not pinned."""
    client_cpus: str | tuple[NonNegativeInt, ...] | None
    """CPUs to which the generator is pinned. Unit: CPU numbers. Source: plan. Null: not pinned."""
    read_back: dict[str, float | str | None]
    """The limits as read back from the cgroup files. The values of `effective_...` are the smallest
    limits on the path to the root cgroup; the value of `affinity` is the CPU affinity of a process
    that is pinned like the server. Unit: as in the file. Source: cgroup. Null: an entry: no limit,
    or not readable."""
    not_enforced: tuple[str, ...]
    """Limits that were requested but could not be enforced. Source: cgroup."""


class ExitStatus(Document, frozen=True, kw_only=True):
    """How a server ended."""

    code: int | None
    """Exit code of the server. Source: kernel. Null: a signal killed the server."""
    signal: int | str | None
    """Signal that killed the server. Source: kernel. Null: no signal killed the server."""
    clean: bool
    """Whether the server ran until the stop signal, then exited within the time limit with an
    expected exit code, and left no processes behind."""
    stopped_by: str | None = None
    """Signal that ended a server that did not exit on its stop signal within the time limit.
    Source: kernel. Null: it exited on its stop signal, or by itself."""


class CellFailure(Document, frozen=True, kw_only=True):
    """Why a cell failed."""

    step: str
    """Step that failed, such as `provision`, `launch`, `readiness` or `load`."""
    message: str
    """Cause of the failure, and how to fix it."""
    log_tail: str | None
    """Last lines of the server's log. Source: server log. Null: no log."""


class ServiceUse(Document, frozen=True, kw_only=True):
    """Resource use of one [supporting service](own-servers.md#supporting-services) during the
    measurement of a cell."""

    name: str
    """Name of the service, as in `[services.NAME]`. Source: plan."""
    cpus: NonNegativeFloat | None
    """Number of cores that the service may use. Unit: cores. Source: plan, cgroup. Null:
    unknown."""
    shares_server_cores: bool
    """Whether the server runs on the same cores as the service. Always false for a service with
    `attach`, whose cores are unknown. Source: plan."""
    resources: ResourceUse
    """Resource use of the service. Source: cgroup, or the processes of the service."""


class CellResult(Document, frozen=True, kw_only=True):
    """The result of one trial: one server configuration with one app at one load level."""

    id: str
    """Identifier of the trial, also used in file names: `server@load#run`, or `server@load#run.2`
    for the first rerun."""
    attempt: PositiveInt | None = None
    """Number of the attempt: 1 for the first trial of this cell and run, higher for a rerun.
    Source: sweep. Null: stored by an older version."""
    server: str
    """Name of the server in the catalogue, or of the user's own server. Source: catalogue, plan."""
    variant: str | None
    """Variant of the server. Source: catalogue. Null: the server has no variants."""
    alias: str | None = None
    """Alias of the server, such as `again` in `--servers again=waitress`. Source: plan. Null: no
    alias."""
    pinned_version: str | None = None
    """Version that the user requested, as in `--servers waitress==3.0.1`. Source: plan. Null: no
    version was requested, or the user's own server."""
    profile: Literal["tuned", "stock"] | None = None
    """Profile of the server settings: `tuned` or `stock`. Source: plan. Null: the user's own
    server."""
    size: str | None = None
    """Settings that a grid or an option changed: workers, threads, profile, keep-alive, Python
    version and bundled app, as in `w2-t4` or `stock-close-py3.13-cpu`. Source: plan. Null: no
    setting was changed."""
    app: str | None = None
    """The app as `module:callable`. Source: plan. Null: the app of the user's own server is
    unknown."""
    legacy: bool | None = None
    """Whether the server, or every interpreter that it supports, is no longer maintained. Source:
    catalogue. Null: stored by an older version."""
    version: str | None
    """Version of the server. Source: the server's environment. Null: the environment could not be
    built, or the version of the user's own server is unknown."""
    python: str | None
    """Version of the Python that ran the server. Source: the server's environment. Null: the
    environment could not be built, or the version of the user's own server is unknown."""
    rate: NonNegativeFloat | None
    """Offered rate; with sessions, sessions per second. Unit: 1/s. Source: plan. Null: closed
    loop."""
    connections: NonNegativeInt | None
    """Number of connections in a closed loop. Unit: connections. Source: plan. Null: open loop."""
    run: PositiveInt
    """Number of the run, from 1. Source: plan."""
    verdict: Verdict | None
    """Whether the figures can be trusted ([Verdict](#verdict)). Source: checks. Null: nothing was
    measured, and the cell did not fail."""
    rate_result: Rates | None
    """Rates over the measurement ([Rates](#rates)). Unit: 1/s. Source: load. Null: nothing was
    measured."""
    outcomes: Outcomes | None
    """Number of scheduled requests with each outcome ([Outcomes](#outcomes)). Unit: requests.
    Source: load. Null: nothing was measured."""
    response_time_ns: Distribution | None
    """Response time of correct responses. Unit: ns. Source: load. Null: no correct response."""
    service_time_ns: Distribution | None
    """Service time of correct responses. Unit: ns. Source: load. Null: no correct response."""
    send_lag_ns: Distribution | None
    """Send lag of correct responses. Unit: ns. Source: load. Null: no correct response."""
    connect_time_ns: Distribution | None
    """Connect time of correct responses over new connections. Unit: ns. Source: load. Null: no
    correct response over a new connection."""
    offered_quantiles_ns: dict[QuantileKey, Bounds] | None
    """Quantiles of the response time over all scheduled requests. Unit: ns. Source: load. Null:
    nothing was measured."""
    uncertainty: Uncertainty | None = None
    """Uncertainty of each quantile within this run ([Uncertainty](#uncertainty)). Source: load.
    Null: nothing was measured."""
    limits: AppliedLimits | None
    """Limits of the server, as requested and as read back from the kernel. Source: cgroup. Null:
    the cell failed before the limits were set."""
    resources: ResourceUse | None
    """Resource use of the server during the measurement. Source: cgroup. Null: nothing was
    measured."""
    services: tuple[ServiceUse, ...] = ()
    """Resource use of the supporting services during the measurement. Empty without supporting
    services. Source: cgroup."""
    server_exit: ExitStatus | None
    """How the server ended. Source: kernel. Null: the server was not started."""
    failure: CellFailure | None
    """Why there is no result. Null: the cell did not fail."""
    settings: ServerSettings | None = None
    """The settings with which the server ran. Source: catalogue, kernel. Null: stored by an older
    version, or the server was not started."""
    error_budget_ns: dict[QuantileKey, ErrorBudget] = msgspec.field(default_factory=dict)
    """Error budget of each quantile of `response_time_ns` ([ErrorBudget](#errorbudget)). Unit: ns.
    Source: load, host."""
    settled_s: NonNegativeFloat | None = None
    """How long the trial waited for an idle host. Unit: s. Source: host. Null: the trial did not
    wait."""
    disturbed_s: NonNegativeFloat | None = None
    """Total length of the intervals in which the host was disturbed: other processes used more than
    15 % of the machine's CPU time, or the hypervisor took more than 5 %. Unit: s. Source:
    `/proc/stat`, cgroup, client.csv. Null: unknown."""
    warmup_s: NonNegativeFloat
    """Duration of the warm-up. Unit: s. Source: plan."""
    duration_s: NonNegativeFloat
    """Duration of the measurement. Unit: s. Source: plan."""
    unhealthy_s: NonNegativeFloat | None = None
    """Total length of the intervals in which requests were due but none got a correct response.
    Unit: s. Source: load. Null: nothing was measured."""
    keepalive_honoured: bool | None
    """Whether the server kept a connection open in a test before the load. Source: test requests.
    Null: not tested."""
    not_checked: tuple[NotChecked, ...] | None = None
    """Checks that could not run ([NotChecked](#notchecked)), including the checks of the sweep
    (`app-calls`, `kernel-drops`). Source: checks. Null: nothing was measured."""
    external_counts: ExternalCounts | None = None
    """Counts by the app and by the kernel, for the checks `app-calls` and `kernel-drops`. Source:
    app, kernel. Null: nothing was measured."""
    backlog: NonNegativeInt | None = None
    """Listen backlog of each socket. Unit: connections. Source: kernel. Null: not readable."""
    concurrency: MeasuredConcurrency | None = None
    """How many requests and connections the server handles at once
    ([MeasuredConcurrency](#measuredconcurrency)). Source: probe before the server's first cell.
    Null: tuned profile, the user's own server, a run in `interventions`, or the probe failed."""
    notes: tuple[str, ...]
    """Notes that reports show with the result."""
    attribution: AttributionResult | None = None
    """Events that coincided with slow requests ([attribution.md](attribution.md)). Source: samples,
    load. Null: resources were not sampled."""


def server_of(cell: CellResult) -> str:
    """``server@level#run`` without its level and run."""
    return cell.id.rpartition("@")[0]
