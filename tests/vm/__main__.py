"""``make test-vm``: the tests of the limits in emulated machines whose kernel has cgroup v2 and
nothing else.

    python -m tests.vm [GUEST...]

``direct`` runs them as root without systemd, ``systemd`` as a user without rights; ``systemd-root``
runs whole sweeps as root where systemd rules. All by default. Exits with 0 when all passed, or when
there is no qemu; then it says so.
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

# On a quiet host each takes two minutes or so; this is for one that does not end at all.
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
# Program and the Debian package that brings it.
NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "dpkg-deb": "dpkg",
    "apt-get": "apt",
}
# A server whose environment the sweeps of the guests use, which have no network.
SERVERS = ("wsgiref", "waitress")


def main(names: list[str]) -> int:
    """Run these guests, one after the other."""
    unknown = sorted(set(names) - set(GUESTS))
    if unknown:
        say(f"there is no guest {unknown[0]}; choose from {', '.join(GUESTS)}")
        return 2
    missing = [package for program, package in NEEDED.items() if shutil.which(program) is None]
    if missing or image.release()[0] not in image.KERNEL_PACKAGES:
        what = f"{', '.join(missing)} missing; as root run: apt-get install {' '.join(missing)}"
        say(f"not run: {what if missing else 'this is neither Debian nor Ubuntu'}")
        return 0
    image.CACHE.mkdir(parents=True, exist_ok=True)
    with (image.CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at a time would write the same images
        kernel, initial = make_images()
        failed = [name for name in names or GUESTS if not run_guest(name, kernel, initial)]
    return 1 if failed else 0


def make_images() -> tuple[Path, Path]:
    """The kernel, and its first file system: the base and the project, one after the other."""
    began_s = time.monotonic()
    base, kernel = image.base_image(), image.kernel()
    project = image.project_image(base, install_servers())
    initial = image.CACHE / "initial.cpio"
    with initial.open("wb") as stream:
        for part in (base, project):
            with part.open("rb") as source:
                shutil.copyfileobj(source, stream)
    project.unlink()
    say(f"images of {initial.stat().st_size >> 20} MiB made in {time.monotonic() - began_s:.0f} s")
    return kernel, initial


def install_servers() -> Path:
    """The environments of the servers, in a cache of their own."""
    cache = image.CACHE / "cache"
    command = [sys.executable, "-P", "-m", "wsgiload", "servers", "install", *SERVERS]
    subprocess.run(
        command, env=os.environ | {"WSGILOAD_CACHE_DIR": str(cache)}, check=True, stdout=sys.stderr
    )
    return cache


def run_guest(name: str, kernel: Path, initial: Path) -> bool:
    """Boot one machine, show what it prints, and say whether its tests passed."""
    began_s = time.monotonic()
    command = [
        "qemu-system-x86_64",
        *(
            "-accel",
            "tcg,thread=multi",
            "-M",
            "q35",
            "-cpu",
            "max",
            "-smp",
            "2",
            "-m",
            str(MEMORY_MIB),
        ),
        *(
            "-kernel",
            str(kernel),
            "-initrd",
            str(initial),
            "-append",
            f"{KERNEL_OPTIONS} {GUESTS[name]}",
        ),
        *(
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-serial",
            "stdio",
            "-no-reboot",
            "-nic",
            "none",
        ),
    ]
    said = []
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
        try:
            assert machine.stdout is not None
            for line in machine.stdout:
                sys.stdout.write(f"{name}: {line}")
                sys.stdout.flush()
                log.write(line)
                said.append(line)
        finally:
            guard.cancel()
            machine.kill()
    took_s = time.monotonic() - began_s
    ended = re.search(r"TESTS ENDED WITH (\d+)", "".join(said))
    passed = ended is not None and ended[1] == "0"
    how = (
        "passed"
        if passed
        else f"failed with {ended[1]}"
        if ended
        else f"no result after {took_s:.0f} s"
    )
    say(f"{name}: {how} in {took_s:.0f} s (at most {MAX_DURATION_S:.0f})")
    return passed


def say(text: str) -> None:
    """One line for whoever waits."""
    sys.stdout.write(f"test-vm: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
