"""Which failures of timed tests may be repeated: those on a host that was disturbed."""

import subprocess
import sys
import time

import pytest

from wsgiload.doctor.checks import CpuTimes

from ..disturbance import OwnProcesses, is_disturbed


@pytest.mark.parametrize(
    ("busy", "stolen", "own", "disturbed"),
    [
        (200, 0, 200, False),
        (200, 0, 180, False),
        (200, 0, 160, True),
        (0, 9, 0, False),
        (0, 11, 0, True),
    ],
)
def test_time_of_others_is_a_disturbance(busy: int, stolen: int, own: int, disturbed: bool) -> None:
    assert is_disturbed(CpuTimes(0, 0, 0), CpuTimes(busy, stolen, 200), own) == disturbed


def test_time_of_ended_children_is_our_own() -> None:
    own = OwnProcesses()
    before = own.total()
    code = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running = own.total() - before
        child.communicate(b"\n")

    assert 45 <= running <= 45 + 100 * time.process_time()
    assert own.total() - before >= running
