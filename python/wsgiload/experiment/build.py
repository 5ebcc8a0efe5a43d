"""Builds an Experiment from the user's options. Starts nothing.

Messages name the flags of the command line; the Python API uses the same names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from wsgiload.account import account_of, require_own, require_own_program
from wsgiload.catalogue.adjust import Adjustment
from wsgiload.catalogue.bundled import DEFAULT_APP, bundled_app
from wsgiload.catalogue.contract import Interface
from wsgiload.environments.user_environment import find_user_program
from wsgiload.errors import UsageError, require
from wsgiload.experiment.bundled_apps import request_of, upstream_services
from wsgiload.experiment.grid import (
    INTERPRETER_FIX,
    SINGLE_APP_FIX,
    apps_of,
    combinations,
    require_exclusive,
)
from wsgiload.experiment.own_servers import (
    own_servers_of,
    require_compatible_with_own,
    supporting_services_of,
)
from wsgiload.experiment.plan import Experiment, ResourceLimits, ServedApp, Size
from wsgiload.experiment.procedure import Procedure, usual_procedure
from wsgiload.experiment.public_options import ServerOptions, SupportingService, SweepOptions
from wsgiload.experiment.settings import raced, resolve_servers, runs_to_compare
from wsgiload.experiment.slices import slice_ns
from wsgiload.experiment.variables import variables_of
from wsgiload.loads.options import Level, default_max_connections, settings_of
from wsgiload.loads.precision import parse_precision
from wsgiload.loads.public_options import LoadOptions, RequestOptions
from wsgiload.units import NS_PER_S, seconds_to_ns

# Until closed loops have determined the rates.
UNKNOWN_LEVELS = (Level(rate_per_s=1000.0),)
DEFAULT_BUDGET_S, DEFAULT_DURATION_NS = 300.0, 10 * NS_PER_S
# Of the slices of one launch, which follow each other.
RACE_DEFAULTS = LoadOptions(warmup=0.5, cooldown=0.2, seed=1)
SWEEP_DEFAULTS = LoadOptions(warmup=2.0, cooldown=1.0, seed=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSpec:
    """All options of a sweep. ``app`` is ``module:callable``; None: a bundled app, or an app that
    only the user's server commands name."""

    app: str | None = None
    rates: Sequence[float] | None = None
    connections: Sequence[int] | None = None
    servers: Sequence[str] | None = None
    # In seconds; None: 10, or in a race as long as p99 needs.
    duration: float | None = None
    load: LoadOptions = field(default_factory=LoadOptions)
    request: RequestOptions = field(default_factory=RequestOptions)
    server: ServerOptions = field(default_factory=ServerOptions)
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    options: SweepOptions = field(default_factory=SweepOptions)
    out: str | Path = ".wsgiload/runs"
    services: Mapping[str, SupportingService] = field(default_factory=dict)

    @property
    def is_bundled(self) -> bool:
        """Whether a bundled app is measured."""
        return self.app is None and not (self.server.command and self.server.app_name is None)


def experiment_of(spec: SweepSpec) -> Experiment:
    """Build the experiment; the caller adds the objective."""
    server, options = spec.server, spec.options
    load = spec.load.filled(replace(SWEEP_DEFAULTS, max_connections=default_max_connections()))
    require(load.max_duration is None, "--max-duration applies only to `wsgiload load`")
    require(load.requests is None, "--requests applies only to `wsgiload load`")
    require(load.processes == 1, "--processes applies only to `wsgiload load`")
    sizes = combinations(server.workers, server.server_threads, server.grid)
    _require_compatible(spec, sizes)
    variables = variables_of(server.env, map(Path, server.env_file))
    own_servers = own_servers_of(server, _folder(spec), variables) if server.command else ()
    require_compatible_with_own(spec.app, spec.servers or (), server, sizes, own_servers)
    names = apps_of(sizes) or [server.app_name or DEFAULT_APP]
    _require_bundled(names if spec.is_bundled else (), server.interface)
    served = _served(spec, names[0], is_one_of_several=sizes[0].app is not None)
    upstreams, addresses = upstream_services(names if spec.is_bundled else (), variables)
    if not spec.is_bundled:
        names = [spec.app] if spec.app is not None else [one.name for one in own_servers]

    experiment = Experiment(
        name=_file_name(options.name or "-".join(names)),
        app=served.app,
        app_dir=served.app_dir,
        request=served.request,
        load=settings_of(load, _duration_ns(spec)),
        levels=levels_of(spec.rates, spec.connections),
        servers=None if spec.servers is None and not own_servers else tuple(spec.servers or ()),
        own_servers=own_servers,
        servers_from=Path(server.servers_from).resolve() if server.servers_from else None,
        services=supporting_services_of({**upstreams, **spec.services}, _folder(spec), variables),
        adjustments=_adjustments(spec),
        variables={**variables, **addresses},
        profile=server.profile,
        interface=server.interface,
        sizes=sizes,
        seed=load.seed or 0,
        limits=spec.limits,
        precision=None if load.precision is None else parse_precision(load.precision),
        bundled=spec.is_bundled,
        python=server.python,
        python_version=server.python_version,
        pythonpath=_pythonpath(spec),
        port=server.port,
        ready_timeout_ns=seconds_to_ns(server.ready_timeout),
        sample_interval_ns=seconds_to_ns(options.sample_interval),
        intervene=options.intervene,
        store_secrets=options.store_secrets,
        show=tuple(options.show),
        out=Path(spec.out),
    )
    require(
        "PYTHONPATH" not in variables or not experiment.measures_catalogue,
        "--env PYTHONPATH cannot be used with catalogue servers",
        "name the directory with --chdir or --pythonpath, or the environment with --python",
    )
    require_own_folders(experiment)
    budget_s = _budget_s(experiment, spec) if _is_raced(spec) else None
    if budget_s is None:
        return _repeated(experiment, options)
    slices = replace(
        load,
        **{
            name: getattr(RACE_DEFAULTS, name)
            for name in ("warmup", "cooldown")
            if getattr(spec.load, name) is None
        },
    )
    slo = tuple(options.slo)
    longest_ns = max(slice_ns(level, slo) for level in experiment.levels)
    sliced = replace(
        experiment,
        slo=slo,
        load=settings_of(slices, _duration_ns(spec, longest_ns)),
        is_sliced=spec.duration is None,
        margin=options.margin,
    )
    return _raced(sliced, options, seconds_to_ns(budget_s))


def _duration_ns(spec: SweepSpec, usual_ns: int = DEFAULT_DURATION_NS) -> int:
    return usual_ns if spec.duration is None else seconds_to_ns(spec.duration)


def _is_raced(spec: SweepSpec) -> bool:
    """Whether the experiment ends when the question is decided. Anything that fixes the trials
    fixes the design."""
    options = spec.options
    if options.budget is not None:
        return True
    fixed = (options.runs, options.intervene, spec.duration, options.compare or None)
    return all(one is None for one in fixed)


def _budget_s(experiment: Experiment, spec: SweepSpec) -> float | None:
    """The budget of a race; None if there is nothing to decide."""
    rivals = Counter(variant.app for variant in resolve_servers(experiment).values())
    if spec.options.budget is not None:
        fix = "use --runs, or measure one app at a time"
        require(len(rivals) == 1, "--budget decides between servers of one app", fix)
        return spec.options.budget
    is_question = max(rivals.values()) > 1 or bool(spec.options.slo)
    return DEFAULT_BUDGET_S if len(rivals) == 1 and is_question else None


def _repeated(experiment: Experiment, options: SweepOptions) -> Experiment:
    """The experiment with the number of runs and the procedure from the options."""
    compares = options.compare or bool(options.slo)
    runs = options.runs or (runs_to_compare(experiment) if compares else 1)
    settle_ns = None if options.settle is None else seconds_to_ns(options.settle)
    procedure = usual_procedure(runs, settle_ns, options.reruns, options.aggregate)
    return replace(experiment, runs=runs, procedure=procedure)


def _raced(experiment: Experiment, options: SweepOptions, budget_ns: int) -> Experiment:
    """The experiment as a race, with at most as many rounds as the budget allows."""
    require_exclusive(
        "--budget",
        {
            "--runs": options.runs,
            "--compare": options.compare or None,
            "--intervene": options.intervene,
        },
    )
    # A disturbed launch is recognised by its figure, and does not count.
    require(not options.reruns, "--reruns has no effect in a race", "omit it, or use --runs")
    procedure = Procedure(seconds_to_ns(options.settle or 0.0), 0, options.aggregate)
    return raced(replace(experiment, procedure=procedure, budget_ns=budget_ns))


def levels_of(
    rates: Sequence[float] | None, connections: Sequence[int] | None
) -> tuple[Level, ...]:
    """The load levels to measure. Default: UNKNOWN_LEVELS."""
    if rates is not None and connections is not None:
        raise UsageError(
            "--rates and --connections are mutually exclusive",
            "use --rates for an open loop or --connections for a closed one; --max-connections "
            "caps an open loop",
        )
    if connections is not None:
        return tuple(Level(connections=count) for count in connections)
    return tuple(Level(rate_per_s=float(rate)) for rate in rates or ()) or UNKNOWN_LEVELS


def _served(spec: SweepSpec, bundled_name: str, *, is_one_of_several: bool) -> ServedApp:
    """The app and its request. A bundled app has its own path and expected body. If a grid names
    several apps, ``Experiment.served`` builds the request of each."""
    if spec.is_bundled:
        app = bundled_app(bundled_name)
        request = spec.request.request(app.path, app.expected_body)
        if not is_one_of_several:
            request = request_of(app, request)
        return ServedApp(app.app_for(spec.server.interface), app.app_dir, request)

    return ServedApp(spec.app, _folder(spec), spec.request.request())


def _require_bundled(names: Sequence[str], interface: Interface) -> None:
    """Raise UsageError for a bundled app that is unknown or does not have this interface."""
    for name in names:
        bundled_app(name).app_for(interface)


def _folder(spec: SweepSpec) -> Path:
    folder = Path(spec.server.chdir).resolve()
    fix = "set the app's directory with --chdir"
    require(folder.is_dir(), f"directory {spec.server.chdir} does not exist", fix)
    return folder


def require_own_folders(experiment: Experiment) -> None:
    """Raise UsageError if root would run what another user owns: the app's folders, or those of the
    user's servers and services. Whose interpreter it is, is checked before it is run."""
    if account_of(experiment.limits.user) is not None:
        return
    apps = [] if experiment.bundled else [experiment.app_dir, *experiment.pythonpath]
    started = [Path(one.cwd) for one in experiment.services.values() if one.command is not None]
    started += [one.working_folder for one in experiment.own_servers]
    configs = [one.config for one in experiment.adjustments if one.config is not None]
    require_own([*apps, *started, *configs], "run code from it")
    for one in experiment.own_servers:
        program = find_user_program(one, {**experiment.variables, **one.env})
        require_own_program(program, "run it")


def _adjustments(spec: SweepSpec) -> tuple[Adjustment, ...]:
    """Changes to catalogue servers: configuration files and arguments."""
    server = spec.server
    configs = {name: Path(file) for name, file in server.server_config.items()}
    return (
        *(Adjustment(name, config=_existing(name, file, spec)) for name, file in configs.items()),
        *(Adjustment(name, arguments) for name, arguments in server.server_args.items()),
    )


def _existing(name: str, file: Path, spec: SweepSpec) -> Path:
    """The file, relative to the current directory or to --chdir."""
    for candidate in (file.expanduser(), Path(spec.server.chdir) / file):
        if candidate.is_file():
            return candidate.resolve()
    raise UsageError(f"--server-config {name}: file {file} does not exist", "correct its path")


def _pythonpath(spec: SweepSpec) -> tuple[Path, ...]:
    """Additional import directories as absolute paths."""
    folders = spec.server.pythonpath
    require(spec.app is not None or not folders, "--pythonpath applies only to APP", "omit it")
    return tuple(_directory(Path(folder), Path(spec.server.chdir)) for folder in folders)


def _directory(folder: Path, chdir: Path) -> Path:
    """The directory, relative to the current directory or to --chdir."""
    for place in (folder, chdir / folder):
        if place.is_dir():
            return place.resolve()
    raise UsageError(
        f"directory {folder} does not exist", "name an existing directory with --pythonpath"
    )


def _require_compatible(spec: SweepSpec, sizes: tuple[Size, ...]) -> None:
    """Raise UsageError for options that contradict each other."""
    app, server = spec.app, spec.server
    own_app = {f"APP {app!r}": app}
    require_exclusive("--app-name", own_app if server.app_name is not None else {})
    require_exclusive(
        "--python-version", {"--python": server.python} if server.python_version else {}
    )
    require(
        app is None or server.python_version is None,
        "--python-version applies only to the bundled apps",
        "choose your app's interpreter with --python",
    )

    if sizes[0].app is not None:
        require_exclusive("--grid app=", own_app | {"--app-name": server.app_name})
        require_exclusive("--grid app=", _single_app_options(spec.request), SINGLE_APP_FIX)
    if sizes[0].python is not None:
        require_exclusive("--grid python=", own_app, INTERPRETER_FIX)
        named = {"--python": server.python, "--python-version": server.python_version}
        require_exclusive("--grid python=", named)


def _single_app_options(request: RequestOptions) -> Mapping[str, object]:
    """The request options that apply to only one app."""
    return {
        "--path": request.path,
        "--targets": request.targets,
        "--sessions": request.sessions,
        "--expect-body-file": request.expect_body,
        "--expect-length": request.expect_length,
        "--expect-sha256": request.expect_sha256,
        "--expect-regex": request.expect_regex,
    }


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.") or "sweep"
