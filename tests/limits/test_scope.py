"""How a part of the hierarchy is had from systemd; the real thing is proven in the guests of `make
test-vm`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from wsgiload.errors import LimitsError
from wsgiload.limits import Limits, enter_scope, scope, select_backend

if TYPE_CHECKING:
    from conftest import FakeKernel

SHELL_OF_A_USER = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-terminal-3.scope"


class Systemd:
    """What systemctl and systemd-run would answer, and which program the command became."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, delegated: bool, refusals: Sequence[str] = ()
    ) -> None:
        self.became: list[str] | None = None
        self.environment: dict[str, str] = {}
        self.asked: list[list[str]] = []
        self._delegated, self._refusals = delegated, list(refusals)
        scope._is_delegated.cache_clear()
        monkeypatch.delenv(scope.GUARD_VARIABLE, raising=False)
        monkeypatch.setattr(scope.subprocess, "run", self._run)
        monkeypatch.setattr(scope.os, "execvpe", self._become)
        monkeypatch.setattr(scope.shutil, "which", lambda name: f"/usr/bin/{name}")

    def _run(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.asked.append(command)
        if command[0] == "systemctl":
            return subprocess.CompletedProcess(
                command, 0, "yes\n" if self._delegated else "no\n", ""
            )
        refusal = self._refusals.pop(0) if self._refusals else ""
        return subprocess.CompletedProcess(command, 1 if refusal else 0, "", refusal)

    def _become(self, program: str, command: list[str], environment: dict[str, str]) -> None:
        self.became, self.environment = command, environment


@pytest.fixture
def user(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    """A user without rights on a systemd host, whose own service manager runs."""
    kernel.mount_v2("cpu memory pids", group=SHELL_OF_A_USER)
    (kernel.root / "run/systemd/system").mkdir(parents=True)
    (kernel.root / "run/user/1000/systemd").mkdir(parents=True)
    monkeypatch.setattr(scope.os, "geteuid", lambda: 1000)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return kernel


@pytest.mark.parametrize(
    ("group", "unit"),
    [
        (SHELL_OF_A_USER, ("app-terminal-3.scope", True)),
        ("/user.slice/user-1000.slice/session-3.scope", ("session-3.scope", False)),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope/wsgiload-orchestrator-7",
            ("a.scope", True),
        ),
        ("/user.slice/user-1000.slice/user@1000.service", ("user@1000.service", False)),
        ("/system.slice/cron.service", ("cron.service", False)),
        ("/", None),
    ],
)
def test_finds_the_unit_of_a_group(group: str, unit: tuple[str, bool] | None) -> None:
    assert scope.own_unit(group) == unit


def test_becomes_itself_in_a_delegated_scope(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(monkeypatch, delegated=False)
    enter_scope("strict", user.root)
    assert systemd.became is not None
    before, after = (
        systemd.became[: systemd.became.index("--")],
        systemd.became[systemd.became.index("--") + 1 :],
    )
    assert before[:3] == ["systemd-run", "--user", "--scope"]
    assert [before[place + 1] for place, word in enumerate(before) if word == "-p"] == list(
        scope.PROPERTIES
    )
    assert after == [sys.executable, *sys.orig_argv[1:]]
    assert systemd.environment[scope.GUARD_VARIABLE] == "1"
    assert systemd.environment["XDG_RUNTIME_DIR"] == "/run/user/1000"


def test_root_asks_the_manager_of_the_system(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(monkeypatch, delegated=False)
    monkeypatch.setattr(scope.os, "geteuid", lambda: 0)
    enter_scope("strict", user.root)
    assert systemd.became is not None and "--user" not in systemd.became


def test_stays_where_the_group_was_handed_over(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(monkeypatch, delegated=True)
    enter_scope("strict", user.root)
    assert systemd.became is None
    assert (
        systemd.asked[0][:2] == ["systemctl", "--user"]
        and systemd.asked[0][-1] == "app-terminal-3.scope"
    )


def test_never_asks_twice_nor_without_need(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(monkeypatch, delegated=False)
    enter_scope("none", user.root)
    monkeypatch.setenv(scope.GUARD_VARIABLE, "1")
    enter_scope("strict", user.root)
    assert systemd.became is None


def test_a_hybrid_host_needs_no_scope(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd = Systemd(monkeypatch, delegated=False)
    kernel.mount_v1("cpu")
    kernel.mount_v2("", point="/sys/fs/cgroup/unified")
    (kernel.root / "run/systemd/system").mkdir(parents=True)
    enter_scope("strict", kernel.root)
    assert systemd.became is None


def test_an_older_systemd_has_no_policy_for_scopes(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(
        monkeypatch, delegated=False, refusals=["Unknown assignment: OOMPolicy=continue"]
    )
    enter_scope("strict", user.root)
    assert systemd.became is not None
    assert "Delegate=yes" in systemd.became and "OOMPolicy=continue" not in systemd.became


def test_a_refusal_is_told_in_the_words_of_systemd(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    Systemd(
        monkeypatch,
        delegated=False,
        refusals=["Failed to start transient scope unit: Access denied\n", "no"],
    )
    with pytest.raises(
        LimitsError,
        match=r"does not delegate .*: Failed to .*: Access denied; run as root, or use",
    ):
        enter_scope("strict", user.root)


def test_without_a_service_manager_of_the_user_the_fix_is_to_linger(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(monkeypatch, delegated=False)
    (user.root / "run/user/1000/systemd").rmdir()
    with pytest.raises(
        LimitsError,
        match=r"no user service manager is running .*; as root: loginctl enable-linger",
    ):
        enter_scope("strict", user.root)
    enter_scope("best-effort", user.root)  # goes on without
    assert systemd.became is None


def test_makes_no_group_beside_systemd(user: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    Systemd(monkeypatch, delegated=False)
    asked = Limits(cpus=0.5)
    with pytest.raises(
        LimitsError, match=r"systemd manages the cgroups of this host; .*systemd-run --user"
    ):
        select_backend(asked, user.root)
    assert select_backend(Limits(cpus=0.5, policy="best-effort"), user.root).name == "none"
    assert user.made == []
