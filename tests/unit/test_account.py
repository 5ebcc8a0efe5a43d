"""The user of servers is resolved, and root refuses to run what other users own."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from wsgiload.account import (
    TRUST_VARIABLE,
    Account,
    account_of,
    require_own,
    require_own_program,
    trusting_folder,
)
from wsgiload.environments.interpreter import _describe, describe_interpreter
from wsgiload.errors import UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import ResourceLimits
from wsgiload.experiment.public_options import ServerOptions

STRANGER = 54_321  # has no account
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners and users")


@pytest.fixture(autouse=True)
def no_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRUST_VARIABLE, raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    _describe.cache_clear()


def stranger() -> Account:
    return Account(str(STRANGER), STRANGER, STRANGER, "/")


def test_the_current_user_needs_no_change() -> None:
    me = pwd.getpwuid(os.geteuid())
    assert account_of(None) is None
    assert account_of(me.pw_name) is None
    assert account_of(str(me.pw_uid)) is None


@needs_root
def test_a_user_is_found_by_name_and_by_number() -> None:
    nobody = pwd.getpwnam("nobody")
    found = account_of("nobody")
    assert found is not None
    assert (found.uid, found.gid, found.home) == (nobody.pw_uid, nobody.pw_gid, nobody.pw_dir)
    assert account_of(str(nobody.pw_uid)) == found
    assert account_of(str(STRANGER)) == stranger()


def test_an_unknown_user_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no user 'no-such-user'"):
        account_of("no-such-user")


def test_only_root_can_change_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="needs root"):
        account_of(str(STRANGER))


def test_variables_of_the_account_are_replaced_unless_they_were_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.setenv("USER", "root")
    user = Account("alice", 1000, 1000, "/home/alice")

    changed = user.variables({"HOME": "/root", "USER": "given", "PORT": "1"})

    assert changed == {"HOME": "/home/alice", "USER": "given", "LOGNAME": "alice", "PORT": "1"}


@needs_root
def test_a_command_runs_as_the_user_and_cannot_become_root_again(tmp_path: Path) -> None:
    script = "id -u; id -g; id -G; grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)' /proc/self/status"
    words = [*Account("alice", STRANGER, 5, "/").prefix(), "/bin/sh", "-c", script]

    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()

    assert lines[:3] == [str(STRANGER), "5", "5"]
    facts = dict(line.split() for line in lines[3:])
    assert facts.pop("NoNewPrivs:") == "1"
    assert set(facts.values()) == {"0" * 16}


@needs_root
def test_a_command_cannot_execute_what_the_user_cannot_read(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    tmp_path.chmod(0o700)

    done = subprocess.run([*stranger().prefix(), program], capture_output=True, check=False)

    assert done.returncode == 126


def _folder(path: Path) -> Path:
    os.chown(path, STRANGER, -1)
    return path


def _file(path: Path) -> Path:
    file = path / "file"
    file.touch()
    os.chown(file, STRANGER, -1)
    return file


def _link(path: Path) -> Path:
    link = path / "link"
    link.symlink_to(_file(path))
    return link


def _strangers_link(path: Path) -> Path:
    link = path / "link"
    link.symlink_to("/bin/sh")
    os.chown(link, STRANGER, -1, follow_symlinks=False)
    return link


OWNED = pytest.mark.parametrize("owned", [_folder, _file, _link, _strangers_link])


@needs_root
@OWNED
def test_root_refuses_what_another_user_owns(tmp_path: Path, owned: Callable[..., Path]) -> None:
    path = owned(tmp_path)
    with pytest.raises(UsageError) as refused:
        require_own([path], "run it")
    assert str(refused.value) == (
        f"{path} belongs to {STRANGER}, and root would run it; use --user {STRANGER}, or "
        f"--trust-folder if you trust {STRANGER}"
    )


@needs_root
@OWNED
def test_trust_is_given_by_the_caller_the_environment_or_sudo(
    tmp_path: Path, owned: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = owned(tmp_path)
    with trusting_folder(True):
        require_own([path], "run it")
    with monkeypatch.context() as patch:
        patch.setenv(TRUST_VARIABLE, "1")
        require_own([path], "run it")
        patch.setenv(TRUST_VARIABLE, "0")
        with pytest.raises(UsageError):
            require_own([path], "run it")
    with monkeypatch.context() as patch:
        patch.setenv("SUDO_UID", str(STRANGER))
        require_own([path], "run it")
        patch.setenv("SUDO_UID", "no number")
        with pytest.raises(UsageError):
            require_own([path], "run it")
    with pytest.raises(UsageError):
        require_own([path], "run it")


@needs_root
@OWNED
def test_other_users_may_run_what_others_own(
    tmp_path: Path, owned: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = owned(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    require_own([path], "run it")


@needs_root
@pytest.mark.parametrize("foreign", ["env", "env/bin", "env/bin/python"])
def test_an_environment_counts_as_a_whole(tmp_path: Path, foreign: str) -> None:
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/bin/sh")
    require_own_program(python, "run it")
    os.chown(tmp_path / foreign, STRANGER, -1, follow_symlinks=False)
    with pytest.raises(UsageError, match=f"belongs to {STRANGER}"):
        require_own_program(python, "run it")


def planted_python(folder: Path, **changes: object) -> Path:
    """An interpreter that notes its user in the file ``ran`` beside it, and describes itself as
    CPython 3.12 with these changes."""
    facts: dict[str, object] = {
        "executable": str(folder / "python"),
        "base": "/usr/bin/python3.12",
        "version": "3.12.1",
        "minor": [3, 12],
        "implementation": "CPython",
        "site": [],
        "distributions": {},
    }
    text = str(facts | changes).replace("'", '"')
    python = folder / "python"
    python.write_text(f"#!/bin/sh\nid -u > {folder}/ran\necho '{text}'\n")
    python.chmod(0o755)
    os.chown(python, STRANGER, -1)
    os.chown(folder, STRANGER, -1)
    for parent in folder.parents:
        if parent != Path("/tmp") and parent.is_relative_to("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o011)
    return python


@needs_root
def test_root_does_not_run_an_interpreter_to_ask_whose_it_is(tmp_path: Path) -> None:
    python = planted_python(tmp_path)
    with pytest.raises(UsageError, match=f"{python} belongs to {STRANGER}, and root would run it"):
        describe_interpreter(python, "--python")
    assert not (tmp_path / "ran").exists()


@needs_root
def test_an_interpreter_is_asked_as_the_user_of_the_servers(tmp_path: Path) -> None:
    python = planted_python(tmp_path)
    found = describe_interpreter(python, "--python", stranger())
    assert (tmp_path / "ran").read_text() == f"{STRANGER}\n"
    assert found.account == stranger()


@needs_root
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base": "/usr/bin/env"}, "names /usr/bin/env as its base interpreter"),
        ({"version": "../../etc"}, "does not work as a Python 3 interpreter"),
    ],
)
def test_a_lying_interpreter_is_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    python = planted_python(tmp_path, **changes)
    with pytest.raises(UsageError, match=message):
        describe_interpreter(python, "--python", stranger())


@needs_root
def test_root_installs_no_server_with_the_users_own_base(tmp_path: Path) -> None:
    base = tmp_path / "python3.12"
    base.touch()
    os.chown(base, STRANGER, -1)
    python = planted_python(tmp_path, base=str(base))
    with pytest.raises(UsageError) as refused:
        describe_interpreter(python, "--python", stranger())
    assert "root would run it to install servers" in str(refused.value)
    assert "--command" in str(refused.value) and "--trust-folder" in str(refused.value)
    with trusting_folder(True):
        assert describe_interpreter(python, "--python", stranger()).base_executable == base


def spec(folder: Path, user: str | None = None, **server: object) -> SweepSpec:
    options = ServerOptions(chdir=folder, **server)  # type: ignore[arg-type]
    return SweepSpec(app="app:app", server=options, limits=ResourceLimits(user=user))


@needs_root
def test_a_plan_for_another_users_folder_needs_a_way_out(tmp_path: Path) -> None:
    os.chown(tmp_path, STRANGER, -1)
    for same in (None, "root", "0"):
        with pytest.raises(UsageError, match="root would run code from it; use --user 54321, or"):
            experiment_of(spec(tmp_path, same))
    experiment_of(spec(tmp_path, str(STRANGER)))
    with trusting_folder(True):
        experiment_of(spec(tmp_path))


@needs_root
def test_the_folder_of_a_server_command_and_its_program_count_too(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    program = inner / "serve"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    command = {"own": f"{program} --port {{port}}"}
    experiment_of(spec(tmp_path, command=command))
    os.chown(program, STRANGER, -1)
    with pytest.raises(UsageError, match=f"{program} belongs to {STRANGER}"):
        experiment_of(spec(tmp_path, command=command))
