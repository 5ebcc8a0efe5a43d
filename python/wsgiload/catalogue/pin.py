"""Parses and applies requested versions of servers, such as ``gunicorn==23.0.0``. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from wsgiload.catalogue.contract import Server
from wsgiload.errors import UsageError

_VERSION = re.compile(r"\d[0-9a-z.!+-]*")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9._-]+")


def parts_of(name: str) -> tuple[str, str, str]:
    """Alias, server and version of a name in ``--servers``; empty if absent."""
    rest, _, version = name.partition("==")
    alias, equals, server = rest.partition("=")
    return (alias.strip(), server.strip(), version.strip()) if equals else ("", rest, version)


def server_in(name: str) -> str:
    """The server of a name, without alias and version."""
    return parts_of(name)[1].strip()


def pinned(server: Server, version: str) -> Server:
    """The server in this version. Raises UsageError if the version cannot be chosen."""
    requested = f"{server.name}=={version}"
    if server.user_server is not None:
        raise UsageError(
            f"--servers {requested}: your own command", "install that version in its environment"
        )
    if server.distribution is None:
        raise UsageError(
            f"--servers {requested}: {server.name} comes with its interpreter and has no version "
            "of its own",
            f"write --servers {server.name}",
        )
    if not _VERSION.fullmatch(version):
        raise UsageError(
            f"--servers {requested}: {version!r} is not a version",
            f"write it like {_requirement_of(server)}",
        )
    requirements = [
        _in_version(requirement, server.distribution, version)
        for requirement in server.requirements
    ]
    return replace(server, requirements=tuple(requirements), pinned=version)


def _requirement_of(server: Server) -> str:
    """An example for messages, with the catalogue's version."""
    known = (
        requirement
        for requirement in server.requirements
        if _is_of(requirement, server.distribution or "")
    )
    return f"{server.name}=={next(known, '==1.0').partition('==')[2]}"


def _in_version(requirement: str, distribution: str, version: str) -> str:
    if not _is_of(requirement, distribution):
        return requirement
    return f"{requirement.partition('==')[0]}=={version}"


def _is_of(requirement: str, distribution: str) -> bool:
    match = _DISTRIBUTION.match(requirement)
    return match is not None and match[0].lower() == distribution.lower()
