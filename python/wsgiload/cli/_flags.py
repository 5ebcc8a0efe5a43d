"""Types of the option values that click passes to the commands, so that mypy finds misspelled and
missing options."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypedDict

from wsgiload.catalogue.contract import Interface, Profile
from wsgiload.documents.load_plan import Arrivals, OnBusy, ReceiveStamps
from wsgiload.experiment.procedure import Method
from wsgiload.limits.model import Policy
from wsgiload.loads.options import Keepalive
from wsgiload.loads.schedule import Ramp, Steps


class RequestFlags(TypedDict):
    """The request and the correct response."""

    method: str
    header: tuple[tuple[tuple[str, str], ...], ...]
    body: str | None
    body_file: Path | None
    targets: Path | None
    sessions: Path | None
    expect_status: tuple[int, ...]
    expect_body_file: Path | None
    expect_length: int | None
    expect_sha256: str | None
    expect_regex: str | None
    store_secrets: bool
    show: tuple[str, ...]


class SendingFlags(TypedDict):
    """How requests are sent; in every command that generates load."""

    duration: float | None
    warmup: float | None
    arrivals: Arrivals
    on_busy: OnBusy
    max_connections: int | None
    max_pending: int | None
    keepalive: Keepalive
    timeout: float
    deadline: float | None
    threads: int
    seed: int | None


class LoadFlags(SendingFlags):
    """How requests are sent, in commands whose load the user chooses."""

    think_time: float
    precision: str | None
    check_threshold: tuple[tuple[str, float], ...]


class TransportFlags(TypedDict):
    """How connections reach the server."""

    unix_socket: str | None
    connect_to: str | None
    source_addresses: str | None
    http2: bool
    streams: int
    http1_0: bool
    insecure: bool
    ca_file: str | None
    client_cert: str | None
    client_key: str | None


class AttachFlags(TypedDict):
    """The running server whose resource use is sampled."""

    attach_cgroup: str | None
    attach_pid: int | None


class ScheduleFlags(TypedDict):
    """The schedule or the number of users of a load."""

    rate: float | None
    ramp: Ramp | None
    steps: Steps | None
    replay: Path | None
    replay_speed: float
    connections: int | None


class LoadCommandFlags(RequestFlags, LoadFlags, TransportFlags, AttachFlags, ScheduleFlags):
    """The options of ``wsgiload load``."""

    reruns: int
    requests: int | None
    max_duration: float | None
    spin: float | None
    receive_stamps: ReceiveStamps | None


class ServerFlags(TypedDict):
    """The servers' settings and limits."""

    servers: tuple[str, ...] | None
    servers_from: Path | None
    profile: Profile
    interface: Interface
    workers: int | None
    server_threads: int | None
    grid: tuple[str, ...]
    command: tuple[tuple[str, str], ...]
    server_args: tuple[tuple[str, str], ...]
    server_config: tuple[tuple[str, str], ...]
    env: tuple[tuple[str, str], ...]
    env_file: tuple[Path, ...]
    app_name: str | None
    path: str | None
    chdir: Path
    pythonpath: tuple[Path, ...]
    python: str | None
    python_version: str | None
    port: int | None
    ready_timeout: float
    cpus: float
    memory: int
    pids: int
    limits: Policy
    server_cpus: str | None
    client_cpus: str | None
    user: str | None


class ExperimentFlags(RequestFlags, SendingFlags, ServerFlags):
    """The options that ``wsgiload sweep`` and ``wsgiload capacity`` share."""

    cooldown: float | None
    sample_interval: float
    name: str | None
    out: Path


class SweepFlags(ExperimentFlags, LoadFlags):
    """The options of ``wsgiload sweep``."""

    rates: tuple[float, ...] | None
    connections: tuple[int, ...] | None
    warmup_requests: int | None
    runs: int | None
    compare: bool
    budget: float | None
    margin: float
    aggregate: Method
    settle: float | None
    reruns: int | None
    intervene: Literal["cpu"] | None


class CapacityFlags(ExperimentFlags):
    """The options of ``wsgiload capacity``."""

    slo: tuple[str, ...]
    slo_strict: bool
    url: str | None
    trials: int
    width: float
    confirmations: int
    confirm_duration: float | None
    budget: float | None
    settle: float
    reruns: int


class CalibrateFlags(TypedDict):
    """The options of ``wsgiload calibrate``."""

    duration: float
    warmup: float
    arrivals: Arrivals
    keepalive: Keepalive
    threads: int
    seed: int
    cpus: float
    server_cpus: str | None
    client_cpus: str | None
