"""``wsgiload calibrate`` on this machine: its document, its cache and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import Command, read_json
from .reference import needs_reference


@needs_reference
def test_the_noise_floor_is_measured_and_cached(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path / "cache"))
    result = command.run(
        "calibrate", "--rate", 500, "--duration", "1s", "--warmup", "200ms", "--json", "-"
    )

    document = json.loads(result.out)
    assert result.code == (98 if document["verdict"]["status"] == "invalid" else 0)

    floor = document["noise_floor"]["response_time_ns"]
    assert 0 < floor["p50"] <= floor["p99"] <= floor["p99.9"] <= floor["max"]
    assert document["noise_floor"]["send_lag_ns"]["p50"] < floor["max"]
    assert [bias["service_time_ns"] for bias in document["bias"]] == [1_000_000, 10_000_000]
    # On any host, the median response time is at least the hold; the bias depends on the host.
    assert all(bias["bias_ns"] >= 0 for bias in document["bias"])
    assert list(read_json(tmp_path / "cache" / "floor.json").values()) == [document]


def test_a_missing_reference_server_is_rejected(command: Command) -> None:
    result = command.run("calibrate", "--refsrv", command.folder / "none")
    assert result.code == 2
    assert "name the reference server with --refsrv" in result.err
