"""Delegation of a cgroup by systemd, with a fake systemd. `make test-vm` tests the real one."""

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
    """Replaces systemctl, systemd-run and exec, and records their calls."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, delegated: bool, errors: Sequence[str] = ()
    ) -> None:
        self.executed: list[str] | None = None
        self.environment: dict[str, str] = {}
        self.commands: list[list[str]] = []
        self._delegated, self._errors = delegated, list(errors)
        scope._is_delegated.cache_clear()
        monkeypatch.delenv(scope.GUARD_VARIABLE, raising=False)
        monkeypatch.setattr(scope.subprocess, "run", self._run)
        monkeypatch.setattr(scope.os, "execvpe", self._execute)
        monkeypatch.setattr(scope.shutil, "which", lambda name: f"/usr/bin/{name}")

    def _run(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        if command[0] == "systemctl":
            output = "yes\n" if self._delegated else "no\n"
            return subprocess.CompletedProcess(command, 0, output, "")

        error = self._errors.pop(0) if self._errors else ""
        return subprocess.CompletedProcess(command, 1 if error else 0, "", error)

    def _execute(self, program: str, command: list[str], environment: dict[str, str]) -> None:
        self.executed, self.environment = command, environment


@pytest.fixture
def user(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    """An unprivileged user on a systemd host, with a running user service manager."""
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
def test_the_unit_of_a_group_is_found(group: str, unit: tuple[str, bool] | None) -> None:
    assert scope.own_unit(group) == unit


def test_the_command_restarts_in_a_delegated_scope(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(monkeypatch, delegated=False)

    enter_scope("strict", user.root)

    assert systemd.executed is not None
    separator = systemd.executed.index("--")
    options, command = systemd.executed[:separator], systemd.executed[separator + 1 :]
    assert options[:3] == ["systemd-run", "--user", "--scope"]
    properties = [options[index + 1] for index, word in enumerate(options) if word == "-p"]
    assert properties == list(scope.PROPERTIES)
    assert command == [sys.executable, *sys.orig_argv[1:]]
    assert systemd.environment[scope.GUARD_VARIABLE] == "1"
    assert systemd.environment["XDG_RUNTIME_DIR"] == "/run/user/1000"


def test_root_uses_the_system_manager(user: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd = Systemd(monkeypatch, delegated=False)
    monkeypatch.setattr(scope.os, "geteuid", lambda: 0)
    enter_scope("strict", user.root)
    assert systemd.executed is not None and "--user" not in systemd.executed


def test_a_delegated_group_is_used_without_a_new_scope(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(monkeypatch, delegated=True)
    enter_scope("strict", user.root)
    assert systemd.executed is None
    assert systemd.commands[0][:2] == ["systemctl", "--user"]
    assert systemd.commands[0][-1] == "app-terminal-3.scope"


def test_no_scope_is_created_twice_or_without_limits(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(monkeypatch, delegated=False)
    enter_scope("none", user.root)
    monkeypatch.setenv(scope.GUARD_VARIABLE, "1")
    enter_scope("strict", user.root)
    assert systemd.executed is None


def test_a_hybrid_host_needs_no_scope(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd = Systemd(monkeypatch, delegated=False)
    kernel.mount_v1("cpu")
    kernel.mount_v2("", point="/sys/fs/cgroup/unified")
    (kernel.root / "run/systemd/system").mkdir(parents=True)
    enter_scope("strict", kernel.root)
    assert systemd.executed is None


def test_an_older_systemd_gets_no_oom_policy(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = ["Unknown assignment: OOMPolicy=continue"]
    systemd = Systemd(monkeypatch, delegated=False, errors=errors)
    enter_scope("strict", user.root)
    assert systemd.executed is not None
    assert "Delegate=yes" in systemd.executed and "OOMPolicy=continue" not in systemd.executed


def test_an_error_of_systemd_is_quoted(user: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = ["Failed to start transient scope unit: Access denied\n", "no"]
    Systemd(monkeypatch, delegated=False, errors=errors)
    message = r"does not delegate .*: Failed to .*: Access denied; run as root, or use"
    with pytest.raises(LimitsError, match=message):
        select_backend(Limits(cpus=0.5), user.root)


def test_without_a_user_service_manager_the_fix_is_to_enable_lingering(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(monkeypatch, delegated=False)
    (user.root / "run/user/1000/systemd").rmdir()

    message = r"no user service manager is running .*; as root: loginctl enable-linger"
    enter_scope("strict", user.root)
    assert systemd.executed is None
    with pytest.raises(LimitsError, match=message):
        select_backend(Limits(cpus=0.5), user.root)


def test_no_group_is_created_in_a_hierarchy_managed_by_systemd(
    user: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    Systemd(monkeypatch, delegated=False)
    message = r"systemd manages the cgroups of this host; .*systemd-run --user"
    with pytest.raises(LimitsError, match=message):
        select_backend(Limits(cpus=0.5), user.root)
    assert select_backend(Limits(cpus=0.5, policy="best-effort"), user.root).name == "none"
    assert user.created == []
