"""Starts a process without variables that, as root, leaves its control group: on the first
request, or already at the import if ``ESCAPE_AT_IMPORT`` is set."""

import os
import subprocess

MOVE = (
    "for procs in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do "
    "echo 0 > $procs; done 2> /dev/null; exec sleep 600"
)
started = []


def escape():
    if not started:
        started.append(subprocess.Popen(["/bin/sh", "-c", MOVE], env={}, start_new_session=True))


if os.environ.get("ESCAPE_AT_IMPORT"):
    escape()


def app(environ, start_response):
    escape()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"ok\n"]
