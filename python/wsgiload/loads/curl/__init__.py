"""Converts curl commands, as copied from browsers and manuals, to a targets file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from wsgiload.loads.curl.flags import flags_of
from wsgiload.loads.curl.request import CurlRequest, requests_of
from wsgiload.loads.curl.shell import commands_in
from wsgiload.loads.targets_text import (
    ImportedTargets,
    hosts_note,
    secrets_note,
    target_text,
    with_weights,
)

MAX_NOTE_CHARACTERS = 60
_NEXT = ("--next", "-:")


def targets_of_curl(text: str, read: Callable[[str], bytes]) -> ImportedTargets:
    """Targets for all requests to the host of the first request; ``read`` returns the content of
    files that the commands name."""
    commands = commands_in(text)
    flags = [flags_of(words) for command in commands.words for words in _parts(command)]
    requests = [request for one in flags for request in requests_of(one, read)]
    host = requests[0].host
    of_host = [request for request in requests if request.host == host]
    ignored = [*(name for one in flags for name in one.ignored), *commands.ignored]
    names = {name for request in of_host for name, _ in request.fields}
    notes = [
        *_ignored_note(ignored),
        *hosts_note(len(of_host), len(requests), host),
        *secrets_note(names, "command"),
    ]

    return ImportedTargets(with_weights(map(_target, of_host)), tuple(notes))


def _parts(words: Sequence[str]) -> Iterator[list[str]]:
    """The words of each command, split at ``--next``."""
    part: list[str] = []
    for word in words:
        if word in _NEXT:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _target(request: CurlRequest) -> str:
    return target_text(request.method, request.path, request.fields, request.body)


def _ignored_note(ignored: Iterable[str]) -> list[str]:
    shown = [" ".join(one.split())[:MAX_NOTE_CHARACTERS] for one in dict.fromkeys(ignored)]
    return [f"ignored: {', '.join(shown)}"] if shown else []
