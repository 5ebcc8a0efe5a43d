"""Converts the operations of an OpenAPI description to a targets file. Pure: reads nothing outside
of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from wsgiload.errors import UsageError
from wsgiload.loads.openapi.document import (
    ApiDescription,
    Object,
    Unfillable,
    document_of,
    items,
    mapping,
    text_or,
)
from wsgiload.loads.openapi.operations import Operation, base_path, operations_in, target_of
from wsgiload.loads.request import is_token
from wsgiload.loads.targets_text import ImportedTargets

# These methods change nothing on a server.
SAFE_METHODS = frozenset(("GET", "HEAD"))
# The largest number of targets in a plan.
MAX_TARGETS = 10_000
MAX_CHARACTERS = 64 << 20
MAX_NAMES = 3


def targets_of_openapi(content: bytes, methods: Collection[str] = ()) -> ImportedTargets:
    """Targets for the operations with a safe method, or with one of ``methods``, whose values can
    be filled in."""
    document = document_of(content)
    methods_to_import = SAFE_METHODS | set(methods)
    entries = list(operations_in(document))
    skipped: dict[str, list[str]] = {}
    for one in entries:
        if isinstance(one, tuple):
            skipped.setdefault(str(one[1]), []).append(one[0])
    operations = [one for one in entries if isinstance(one, Operation)]
    left_out = Counter(one.method for one in operations if one.method not in methods_to_import)
    texts, imported = _filled(
        document, [one for one in operations if one.method in methods_to_import], skipped
    )
    if not texts:
        raise _nothing_imported(skipped, left_out)

    notes = [
        *_base_note(document),
        *credentials_note(document, [one.operation for one in imported]),
        *_methods_note(left_out),
        *_skipped_note(skipped, len(entries)),
    ]
    return ImportedTargets("\n".join(texts), tuple(notes))


def _filled(
    document: ApiDescription, operations: list[Operation], skipped: dict[str, list[str]]
) -> tuple[list[str], list[Operation]]:
    """The targets and their operations; operations that cannot be filled in are added to
    ``skipped``."""
    texts: list[str] = []
    imported: list[Operation] = []
    room = MAX_CHARACTERS
    for operation in operations:
        try:
            text = target_of(document, operation)
        except (Unfillable, UsageError) as reason:
            skipped.setdefault(str(reason), []).append(operation.name)
            continue
        room -= len(text)
        if len(texts) == MAX_TARGETS or room < 0:
            raise UsageError(
                f"the targets would exceed {MAX_TARGETS:,} or 64 MiB",
                "split the description into several files",
            )
        texts.append(text)
        imported.append(operation)
    return texts, imported


def _skipped_note(skipped: dict[str, list[str]], total: int) -> list[str]:
    """What could not be filled in, by reason."""
    if not skipped:
        return []
    ordered = sorted(skipped.items(), key=lambda one: -len(one[1]))
    causes = [f"{reason} ({_listed(names)})" for reason, names in ordered]
    count = sum(map(len, skipped.values()))
    return [f"skipped {count:,} of {total:,} operations: {'; '.join(causes)}"]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _nothing_imported(skipped: dict[str, list[str]], left_out: Counter[str]) -> UsageError:
    if skipped:
        [note] = _skipped_note(skipped, sum(map(len, skipped.values())) + left_out.total())
        return UsageError(
            f"no operation can be imported: {note}",
            "add an example to the description, or write the targets by hand (docs/requests.md)",
        )
    if left_out:
        return UsageError("no operation can be imported", _methods_note(left_out)[0])
    return UsageError("the description has no operations")


def _base_note(document: ApiDescription) -> list[str]:
    base = base_path(document, document.root)
    return [f"the paths begin with {base}, the base path of the description"] if base else []


def _methods_note(left_out: Counter[str]) -> list[str]:
    """A note about operations that are only imported on request, because most of them change
    data."""
    if not left_out:
        return []
    counts = ", ".join(f"{count} {method}" for method, count in sorted(left_out.items()))
    flags = " ".join(f"--method {method}" for method in sorted(left_out))
    return [f"left out {counts}: only GET and HEAD are imported unless you add {flags}"]


def credentials_note(document: ApiDescription, operations: Sequence[Object]) -> list[str]:
    """How many operations need credentials, and an option that sends them."""
    names = [name for operation in operations if (name := _scheme_of(document, operation))]
    if not names:
        return []
    examples = dict.fromkeys(_example(_scheme(document, name)) for name in names)
    who = f"{len(names):,} requests need" if len(names) > 1 else "1 request needs"
    options = " or ".join(examples)
    return [f"{who} credentials; add them to the load, for example {options}"]


def _scheme_of(document: ApiDescription, operation: Object) -> str | None:
    """The name of the first required scheme; None if no scheme is required."""
    requirements = items(operation.get("security", document.root.get("security")))
    alternatives = [mapping(one) for one in requirements]
    if not alternatives or {} in alternatives:
        return None
    return next(iter(alternatives[0]))


def _scheme(document: ApiDescription, name: str) -> Object:
    schemes = document.root.get("securityDefinitions")
    if document.version == 3:
        schemes = mapping(document.root.get("components")).get("securitySchemes")
    try:
        return document.object_at(mapping(schemes).get(name))
    except Unfillable:
        return {}


def _example(scheme: Object) -> str:
    name = text_or(scheme.get("name"), "")
    if scheme.get("type") == "apiKey" and is_token(name):
        if scheme.get("in") == "header":
            return f"-H '{name}: KEY'"
        if scheme.get("in") == "cookie":
            return f"-H 'Cookie: {name}=VALUE'"
        return f"{name}=KEY in the queries of the file"
    if "basic" in (scheme.get("type"), scheme.get("scheme")):
        return "-H 'Authorization: Basic <base64 of user:password>'"
    return "-H 'Authorization: Bearer TOKEN'"
