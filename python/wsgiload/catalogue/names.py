"""Loads the server files and resolves the server names of a user to variants.

It creates no environment and starts no process. Each file is imported by its path under a private
name, so ``servers/gevent.py`` never shadows the package ``gevent``.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args

from wsgiload.account import require_own
from wsgiload.catalogue.contract import Dependency, Interface, Profile, Server, Variant
from wsgiload.catalogue.pin import parts_of, pinned
from wsgiload.catalogue.user_server import NAME, UserServer, require_name, server_of
from wsgiload.errors import UsageError, require

DEFAULT_FOLDER = Path(__file__).parents[1] / "_servers"
PROFILES: tuple[Profile, ...] = get_args(Profile)
INTERFACES: tuple[Interface, ...] = get_args(Interface)
ALL = "all"
DEFAULT = "default"
_KEEPALIVES: dict[str | int, str] = {"on": "keep", "off": "close"}


@dataclass(frozen=True, slots=True)
class ServerVariant:
    """One configuration of a server: a variant and the requested settings.

    ``alias`` is a user-defined name; with it, a server can be measured twice (an A/A test). ``app``
    names a bundled app and ``python`` a version; None: as in the experiment. ``arguments``,
    ``config`` (a file) and ``variables`` are the user's additions to the settings.
    """

    server: Server
    variant: Variant
    workers: int | None = None
    threads: int | None = None
    alias: str | None = None
    profile: Profile | None = None
    keepalive: Literal["on", "off"] | int | None = None
    app: str | None = None
    python: str | None = None
    arguments: tuple[str, ...] = ()
    config: Path | None = None
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """``server-variant``, with the requested version and size; without the variant if it is
        called ``default``."""
        parts = [self.alias] if self.alias is not None else self._name_parts()
        return "-".join([*parts, *([self.size] if self.size else [])])

    def _name_parts(self) -> list[str]:
        parts = [self.server.name]
        parts += [self.variant.name] if self.variant.name != "default" else []
        return parts + ([self.server.pinned] if self.server.pinned is not None else [])

    @property
    def size(self) -> str | None:
        """The requested settings, such as ``w2-t4-stock-close-py3.13-cpu``; None if there are
        none."""
        parts = [f"w{self.workers}"] if self.workers is not None else []
        parts += [f"t{self.threads}"] if self.threads is not None else []
        parts += [self.profile] if self.profile is not None else []
        parts += (
            [_KEEPALIVES.get(self.keepalive, f"k{self.keepalive}")]
            if self.keepalive is not None
            else []
        )
        parts += [f"py{self.python}"] if self.python is not None else []
        parts += [self.app] if self.app is not None else []
        return "-".join(parts) or None

    @property
    def reason(self) -> str | None:
        """Why the variant can no longer be run; None if it can."""
        return self.variant.reason or self.server.reason

    @property
    def needs(self) -> tuple[Dependency, ...]:
        """The required system packages."""
        return (*self.server.needs, *self.variant.needs)

    @property
    def takes_arguments(self) -> bool:
        """Whether a user can add arguments to its command line."""
        of_variant = self.variant.takes_arguments
        return self.server.takes_arguments if of_variant is None else of_variant

    @property
    def requested_keepalive(self) -> Literal["on", "off"] | int | None:
        """The keep-alive mode of the load, from the grid or the user's server; None: as in the
        experiment."""
        user_server = self.server.user_server
        return (
            user_server.keepalive
            if self.keepalive is None and user_server is not None
            else self.keepalive
        )

    def sized(self, workers: int | None, threads: int | None) -> ServerVariant:
        """A copy with these numbers of workers and threads, each only if the variant uses it."""
        return replace(
            self,
            workers=workers if self.variant.uses_workers else None,
            threads=threads if self.variant.uses_threads else None,
        )


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All servers that can be selected."""

    servers: tuple[Server, ...]

    def variants(self, interface: Interface | None = None) -> list[ServerVariant]:
        """Every variant for this interface (None: any), including those that can no longer be
        run."""
        return [
            ServerVariant(server, variant)
            for server in self.servers
            for variant in server.variants
            if server.serves(variant, interface)
        ]

    def names(self) -> list[str]:
        """Every name that selects servers, without those that can no longer be run."""
        known = self._by_name(None).items()
        return [DEFAULT, ALL, *sorted(name for name, one in known if one.reason is None)]

    def has(self, name: str) -> bool:
        """Whether the name is taken."""
        names = {ALL, DEFAULT, *(server.name for server in self.servers)}
        return name in names or any(variant.id == name for variant in self.variants())

    def with_user_servers(self, user_servers: Sequence[UserServer]) -> Catalogue:
        """This catalogue with the user's servers. Raises UsageError if a name is invalid or
        taken."""
        for user_server in user_servers:
            require_name(user_server.name)
            self._require_free(user_server.name, "name")
        return Catalogue((*self.servers, *(server_of(user_server) for user_server in user_servers)))

    def select(
        self, names: Sequence[str] | None = None, interface: Interface | None = None
    ) -> list[ServerVariant]:
        """The variants selected by ``names``, in this order, without duplicates.

        A name is ``server-variant``, a bare server (its default variant), ``all`` or ``default``;
        ``alias=waitress`` is waitress under an alias, and ``waitress==3.0.1`` is that version.
        None means ``default``: the servers that need no system packages and no compiler.

        With an ``interface``, only variants for it can be selected. Without one, all can, and
        ``default`` and bare servers mean WSGI.
        """
        if names is None:
            return self._default(interface)
        requested = [name.strip().lower() for name in names if name.strip()]
        if not requested:
            raise UsageError("--servers is empty", "see `wsgiload servers list`, or omit it")
        selected: dict[str, ServerVariant] = {}
        for name in requested:
            for variant in self._variants_named(name, interface):
                _require_one_meaning(variant, selected.setdefault(variant.id, variant))
        return list(selected.values())

    def servers_named(self, names: Sequence[str] | None = None) -> list[Server]:
        """The servers of ``select(names)`` without duplicates, for installation."""
        return list({variant.server.key: variant.server for variant in self.select(names)}.values())

    def _variants_named(self, name: str, interface: Interface | None) -> list[ServerVariant]:
        alias, server, version = parts_of(name)
        if alias or name.startswith("="):
            variant = self._in_version(self._resolve(server, interface), version, name)
            return [replace(variant, alias=self._free_alias(alias))]
        if "==" in name:
            return [self._in_version(self._resolve(server, interface), version, name)]
        if name == ALL:
            return self._runnable(interface)
        if name == DEFAULT:
            return self._default(interface)
        return [self._resolve(name, interface)]

    @staticmethod
    def _in_version(variant: ServerVariant, version: str, requested: str) -> ServerVariant:
        if "==" not in requested:
            return variant
        return replace(variant, server=pinned(variant.server, version))

    def _default(self, interface: Interface | None) -> list[ServerVariant]:
        return [variant for variant in self._runnable(interface or "wsgi") if _is_default(variant)]

    def _runnable(self, interface: Interface | None) -> list[ServerVariant]:
        return [variant for variant in self.variants(interface) if variant.reason is None]

    def _free_alias(self, alias: str) -> str:
        if not NAME.fullmatch(alias):
            raise UsageError(
                f"{alias!r} is not a valid alias",
                "use letters, digits and dashes: alias=waitress",
            )
        self._require_free(alias, "alias")
        return alias

    def _require_free(self, name: str, kind: str) -> None:
        taken = {
            ALL,
            DEFAULT,
            *(variant.id for variant in self.variants()),
            *(server.name for server in self.servers),
        }
        if name in taken:
            raise UsageError(f"{name!r} is a server's name", f"choose another {kind}")

    def _resolve(self, name: str, interface: Interface | None) -> ServerVariant:
        known = self._by_name(interface)
        variant = known.get(name)
        if variant is None:
            self._require_interface(name, interface)
            names = [*known, ALL, DEFAULT]
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.9)
            close = close or difflib.get_close_matches(name, names, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(close)}?" if close else "see `wsgiload servers list`"
            raise UsageError(f"unknown server {name!r}", hint)
        if variant.reason is not None:
            raise UsageError(
                f"server {name!r} is not supported: {variant.reason}", "see `wsgiload servers list`"
            )
        return variant

    def _by_name(self, interface: Interface | None) -> dict[str, ServerVariant]:
        known = {variant.id: variant for variant in self.variants(interface)}
        for server in self.servers:
            kinds = INTERFACES if interface is None else (interface,)
            usual = next(filter(None, map(server.usual_variant, kinds)), None)
            if usual is not None:
                known.setdefault(server.name, ServerVariant(server, usual))
        return known

    def _require_interface(self, name: str, interface: Interface | None) -> None:
        """Raise UsageError if the server only runs apps of another interface, and suggest servers
        for this one."""
        if interface is None or name not in self._by_name(None):
            return
        cause = f"server {name!r} does not run {interface.upper()} apps"
        if interface == "wsgi":
            raise UsageError(cause, "add --interface asgi, or choose another server")
        suggested = [
            variant.server.name
            for variant in self._default(interface)
            if variant.server.user_server is None
        ]
        raise UsageError(cause, f"use --servers {','.join(suggested)}, or omit --interface asgi")


def _require_one_meaning(variant: ServerVariant, earlier: ServerVariant) -> None:
    """Raise UsageError if an alias stands for two servers, because only one would be measured."""
    if variant.alias is not None and variant != earlier:
        first, second = replace(earlier, alias=None).id, replace(variant, alias=None).id
        raise UsageError(
            f"the alias {variant.alias!r} stands for both {first} and {second}",
            f"use a different alias for each, such as {variant.alias}-2={second}",
        )


def _is_default(variant: ServerVariant) -> bool:
    server = variant.server
    return not (server.needs_compiler or server.legacy or variant.needs or variant.variant.extra)


def load_catalogue(folder: Path = DEFAULT_FOLDER, further: Path | None = None) -> Catalogue:
    """Load every server file of ``folder`` and of the user's folder ``further``. Raises UsageError,
    which names the file, if one is invalid."""
    if not folder.is_dir():
        raise UsageError(
            f"the directory of server files is missing: {folder}", "reinstall wsgiload"
        )
    servers = _servers_in(folder)
    return Catalogue((*servers, *(_further_servers(further, servers) if further else ())))


def _servers_in(folder: Path) -> tuple[Server, ...]:
    # In a checkout, the package contains a symlink; resolve it, so paths do not depend on it.
    return tuple(_load_server(path) for path in sorted(folder.resolve().glob("*.py")))


def _further_servers(folder: Path, known: Iterable[Server]) -> tuple[Server, ...]:
    option = f"--servers-from {folder}"
    require(folder.is_dir(), f"{option}: there is no such directory", "correct its path")
    files = sorted(folder.glob("*.py"))
    require_own([folder, *files], "run its files", "a folder of root (--user covers only the app)")
    servers = _servers_in(folder)
    fix = "put a file into it that defines SERVER, as described in docs/adding-a-server.md"
    require(bool(servers), f"{option}: it contains no server file", fix)
    taken = {server.name for server in known}
    for server in servers:
        cause = f"{option}: {server.name!r} is a catalogue server"
        require(server.name not in taken, cause, f"rename {server.source.name} and its SERVER")
    return servers


def catalogue_rows(
    catalogue: Catalogue, installed: Collection[str] = frozenset()
) -> list[dict[str, str | bool | list[str] | None]]:
    """The rows of ``servers list --json``, one per variant; ``id`` is its name for
    ``--servers``. The servers named in ``installed`` are cached."""
    return [
        {
            "id": variant.id,
            "name": variant.server.name,
            "variant": variant.variant.name,
            "profiles": list(PROFILES),
            "python": variant.server.pythons,
            "status": _status(variant, installed),
            "legacy": variant.server.legacy,
            "reason": variant.reason,
        }
        for variant in catalogue.variants()
    ]


def _status(variant: ServerVariant, installed: Collection[str]) -> str:
    if variant.reason is not None:
        return "refused"
    return "installed" if variant.server.name in installed else "available"


def _load_server(path: Path) -> Server:
    try:
        server = getattr(_import_file(path), "SERVER", None)
    except Exception as error:
        raise UsageError(
            f"server file {path} cannot be read: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(server, Server):
        raise UsageError(
            f"server file {path} does not define SERVER", "see wsgiload.catalogue.contract"
        )
    for fault in _faults(server):
        raise UsageError(f"server file {path}: {fault}")
    return server


def _import_file(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"wsgiload_server_{path.stem}", path)
    if specification is None or specification.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _faults(server: Server) -> Iterable[str]:
    names = [variant.name for variant in server.variants]
    if server.name != server.source.stem:
        yield f"the server is named {server.name!r}, but the file name must match"
    if server.name != server.name.lower():
        yield f"the name {server.name!r} must be in lower case"
    if server.default_variant not in names:
        yield f"default_variant {server.default_variant!r} is not among its variants {names}"
    if len(set(names)) != len(names):
        yield f"duplicate variant name in {names}"
    if any("==" not in requirement for requirement in server.requirements):
        yield "every requirement must be pinned with =="
