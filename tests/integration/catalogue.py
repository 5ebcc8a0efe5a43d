"""Starts a catalogue server on its own, as a user would before ``wsgiload load``."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wsgiload.catalogue.bundled import BUNDLED
from wsgiload.catalogue.contract import LaunchContext, Profile
from wsgiload.catalogue.names import load_catalogue
from wsgiload.environments.interpreter import bundled_app_interpreter
from wsgiload.environments.provision import provision
from wsgiload.sampling.listen_queue import listener_pids
from wsgiload.serving.launch import tuned_backlog

from .command import until
from .target import unused_port


@contextmanager
def catalogue_server(name: str, profile: Profile, folder: Path) -> Iterator[str]:
    """Serve the bundled app hello without limits, logging to ``folder``; yields the URL."""
    (entry,) = load_catalogue().select([name])
    server, variant, app, port = entry.server, entry.variant, BUNDLED["hello"], unused_port()

    environment = provision(server, bundled_app_interpreter(), log=lambda text: None)
    paths = (environment.python, environment.bin, "127.0.0.1", port, app.app, app.app_dir, folder)
    stock = dict.fromkeys(("workers", "threads", "backlog", "max_connections"))
    sizes = stock if profile == "stock" else {"backlog": tuned_backlog()}
    context = LaunchContext(*paths, profile=profile, **sizes)
    variables = environment.environ(app.app_dir) | server.environ(variant, context)

    with (folder / "server.log").open("wb") as log:
        argv = server.command(variant, context)
        process = subprocess.Popen(
            argv, cwd=app.app_dir, env=variables, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until(lambda: bool(listener_pids(port)), f"{name} to listen")
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(timeout=30)
        with suppress(ProcessLookupError):  # unless the whole process group has ended
            os.killpg(process.pid, signal.SIGKILL)
