"""``make test-vm``: tests of the limits in emulated machines whose kernel has only cgroup v2.

    python -m tests.vm [GUEST...]

``direct`` runs them as root without systemd, ``systemd`` as an unprivileged user under systemd, and
``systemd-root`` runs whole sweeps as root under systemd. The default is all three, one after the
other. Exits with 0 if all passed, or if qemu is missing (and prints what to install).
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from tests.vm import image

# Each takes about two minutes on a quiet host.
MAX_DURATION_S = 600.0
MEMORY_MIB = 2048
KERNEL_OPTIONS = (
    "console=ttyS0 quiet panic=-1 psi=1 cgroup_no_v1=all mitigations=off nokaslr "
    "tsc=reliable no_timer_check"
)
SYSTEMD = "rdinit=/lib/systemd/systemd systemd.show_status=false systemd.wants"
GUESTS: Mapping[str, str] = {
    "direct": "rdinit=/vm/direct",
    "systemd": f"{SYSTEMD}=wsgiload-tests.service",
    "systemd-root": f"{SYSTEMD}=wsgiload-tests-as-root.service",
}
# Program: the Debian package that contains it.
NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "dpkg-deb": "dpkg",
    "apt-get": "apt",
}
# Installed on the host, because the guests have no network.
SERVERS = ("wsgiref", "waitress")


def main(names: list[str]) -> int:
    """Run these guests, one after the other."""
    unknown = sorted(set(names) - set(GUESTS))
    if unknown:
        say(f"unknown guest {unknown[0]}; choose from {', '.join(GUESTS)}")
        return 2

    reason = unmet_requirement()
    if reason:
        say(f"not run: {reason}")
        return 0

    image.CACHE.mkdir(parents=True, exist_ok=True)
    with (image.CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second test-vm would overwrite the images
        kernel, initial = make_images()
        failed = [name for name in names or GUESTS if not run_guest(name, kernel, initial)]
    return 1 if failed else 0


def unmet_requirement() -> str:
    """Why the guests cannot run on this host, or an empty text."""
    missing = [package for program, package in NEEDED.items() if shutil.which(program) is None]
    if missing:
        return f"missing packages; as root run: apt-get install {' '.join(missing)}"
    if image.release()[0] not in image.KERNEL_PACKAGES:
        return f"the guests need one of the distributions {', '.join(image.KERNEL_PACKAGES)}"
    return ""


def make_images() -> tuple[Path, Path]:
    """Write the kernel and the initial file system, which is the base followed by the project."""
    began_s = time.monotonic()
    base, kernel = image.base_image(), image.kernel()
    project = image.project_image(base, install_servers())

    initial = image.CACHE / "initial.cpio"
    with initial.open("wb") as stream:
        for part in (base, project):
            with part.open("rb") as source:
                shutil.copyfileobj(source, stream)
    project.unlink()
    say(f"wrote {initial.stat().st_size >> 20} MiB of images in {time.monotonic() - began_s:.0f} s")
    return kernel, initial


def install_servers() -> Path:
    """Install the servers in a separate cache, and return its path."""
    cache = image.CACHE / "cache"
    command = [sys.executable, "-P", "-m", "wsgiload", "servers", "install", *SERVERS]
    subprocess.run(
        command, env=os.environ | {"WSGILOAD_CACHE_DIR": str(cache)}, check=True, stdout=sys.stderr
    )
    return cache


def run_guest(name: str, kernel: Path, initial: Path) -> bool:
    """Boot one machine, print its console, and return whether its tests passed."""
    began_s = time.monotonic()
    console = boot(name, machine_command(GUESTS[name], kernel, initial))
    duration_s = time.monotonic() - began_s

    result = re.search(r"TESTS ENDED WITH (\d+)", console)
    if result is None:
        say(f"{name}: no result after {duration_s:.0f} s (limit {MAX_DURATION_S:.0f} s)")
        return False

    passed = result[1] == "0"
    say(f"{name}: {'passed' if passed else f'failed with {result[1]}'} in {duration_s:.0f} s")
    return passed


def machine_command(options: str, kernel: Path, initial: Path) -> list[str]:
    """The qemu command of a machine with two emulated CPUs, no network and no disk."""
    hardware = f"-accel tcg,thread=multi -M q35 -cpu max -smp 2 -m {MEMORY_MIB}"
    devices = "-nodefaults -no-user-config -display none -serial stdio -no-reboot -nic none"
    command = ["qemu-system-x86_64", *hardware.split(), *devices.split()]
    command += ["-kernel", str(kernel), "-initrd", str(initial)]
    return [*command, "-append", f"{KERNEL_OPTIONS} {options}"]


def boot(name: str, command: list[str]) -> str:
    """The console output of a machine, which is also printed and written to a log. The machine is
    killed after ``MAX_DURATION_S``."""
    with (
        (image.CACHE / f"{name}.log").open("w") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as machine,
    ):
        guard = threading.Timer(MAX_DURATION_S, machine.kill)
        guard.start()

        lines = []
        try:
            assert machine.stdout is not None
            for line in machine.stdout:
                sys.stdout.write(f"{name}: {line}")
                sys.stdout.flush()
                log.write(line)
                lines.append(line)
        finally:
            guard.cancel()
            machine.kill()
    return "".join(lines)


def say(text: str) -> None:
    """Print one line and flush it."""
    sys.stdout.write(f"test-vm: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
