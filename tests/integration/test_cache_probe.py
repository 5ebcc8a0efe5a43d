"""The probe for response caches, against servers in this process."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from wsgiload.documents.load_plan import RequestPlan, WeightedRequest
from wsgiload.loads.request import Request
from wsgiload.serving.exchange import PAIRS, probe_cache

from .target import CountingServer


def address_of(server: CountingServer) -> tuple[str, int]:
    host, port = server.server_address[:2]
    return str(host), int(port)


def test_the_probe_alternates_between_the_url_and_new_urls() -> None:
    with CountingServer() as server:
        probe = probe_cache(address_of(server), Request(path="/?a=1"))
    assert probe is not None and probe.slowest_same_ns > 0 < probe.fastest_new_ns
    paths = [path for _, path, _, _ in server.requests]
    assert paths[::2] == ["/?a=1"] * PAIRS
    assert len(set(paths[1::2])) == PAIRS
    assert all(path.startswith("/?a=1&wsgiload=") for path in paths[1::2])


@pytest.mark.parametrize(
    "request_of_load",
    [
        Request(method="POST"),
        Request(targets=(WeightedRequest(request=RequestPlan(url="http://127.0.0.1/")),)),
        Request(statuses=(404,)),
    ],
    ids=["POST", "targets", "unexpected status"],
)
def test_a_load_without_comparable_responses_has_no_probe_result(request_of_load: Request) -> None:
    with CountingServer() as server:
        assert probe_cache(address_of(server), request_of_load) is None


def test_a_probe_without_a_response_ends_after_one_timeout() -> None:
    with CountingServer() as server:
        started_s = time.monotonic()
        assert probe_cache(address_of(server), replace(Request(), path="/never")) is None
    assert time.monotonic() - started_s < 2.0
