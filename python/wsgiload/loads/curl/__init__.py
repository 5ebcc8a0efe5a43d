"""Converts curl commands, as copied from browsers and manuals, to a targets file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from wsgiload.errors import UsageError
from wsgiload.loads.curl.flags import flags_of
from wsgiload.loads.curl.request import CurlRequest, requests_of
from wsgiload.loads.curl.shell import commands_in
from wsgiload.loads.targets_text import (
    ImportedTargets,
    secrets_note,
    skipped_note,
    target_text,
    with_weights,
)

MAX_NOTE_CHARACTERS = 60
_NEXT = ("--next", "-:")


def targets_of_curl(text: str, read: Callable[[str], bytes]) -> ImportedTargets:
    """Targets for all requests to the host of the first request; ``read`` returns the content of
    files that the commands name. Raises UsageError if no command can be imported."""
    commands = commands_in(text)
    requests: list[tuple[CurlRequest, str]] = []
    ignored: list[str] = []
    failures: list[UsageError] = []
    for command in commands.words:
        for words in _parts(command):
            try:
                flags = flags_of(words)
                requests += [(one, _target(one)) for one in requests_of(flags, read)]
                ignored += flags.ignored
            except UsageError as error:
                failures.append(error)
    failures = [*commands.failures, *failures]
    if not requests:
        raise failures[0]

    host = requests[0][0].host
    of_host = [(request, target) for request, target in requests if request.host == host]
    dropped = Counter(error.cause for error in failures)
    dropped.update({f"to hosts other than {host}": len(requests) - len(of_host)})
    notes = [
        *_ignored_note([*ignored, *commands.ignored]),
        *skipped_note(+dropped, len(requests) + len(failures), "requests"),
        *secrets_note({name for request, _ in of_host for name, _ in request.fields}, "command"),
    ]
    return ImportedTargets(with_weights(target for _, target in of_host), tuple(notes))


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
