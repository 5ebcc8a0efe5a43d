"""The names of checks and alarms, the codes they had in version 1 of the documents, and names that
were replaced."""

from __future__ import annotations

CODES = {
    "timestamp-order": "C1",
    "arrival-count": "C2",
    "missed-sends": "C3",
    "send-lag": "C4",
    "send-lag-absolute": "C5",
    "noise-floor": "C6",
    "client-cpu": "C7",
    "run-queue-wait": "C8",
    "client-throttling": "C9",
    "steal": "C10",
    "client-stalls": "C11",
    "client-resources": "C12",
    "poisson-gaps": "C13",
    "stationarity": "C14",
    "backlog-growth": "C15",
    "in-system-count": "C16",
    "app-calls": "C17",
    "kernel-drops": "C18",
    "shared-cores": "C19",
    "thread-agreement": "C20",
    "wrong-responses": "V1",
    "littles-law": "V2",
    "uneven-connections": "V3",
    "dead-interval": "V4",
    "network-resources": "V5",
    "no-keepalive": "V6",
    "nagle-delay": "V7",
    "idle-server": "V8",
    "rate-not-reached": "V9",
    "run-spread": "V10",
    "flat-throughput": "V11",
}
_RENAMED_WORDS = {"no-answer": "no-response", "settle": "host-not-idle"}
_NAMES = {code: name for name, code in CODES.items()} | _RENAMED_WORDS


def name_of(identifier: str) -> str:
    """The current name of a check by its name, an earlier name or its code; other identifiers are
    returned unchanged."""
    return _NAMES.get(identifier, identifier)


def code_of(name: str) -> str | None:
    """The code of the check in version 1; None for a check that has no code."""
    return CODES.get(name)
