"""The program uv, which resolves and installs packages."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from wsgiload.account import require_own_program
from wsgiload.environments.interpreter import clean_variables
from wsgiload.errors import ProvisionError, UsageError

OLDEST = (0, 8)


@functools.cache
def uv_program() -> str:
    """The path of uv: that on PATH if it is new enough, otherwise that of the dependency. Raises
    ProvisionError if both are missing."""
    found = shutil.which("uv")
    if found is not None and _is_usable(Path(found)):
        return found
    try:
        from uv import find_uv_bin  # only here: where PATH has uv, the package may be left out

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError) as error:
        raise ProvisionError("the program uv is missing", "python -m pip install uv") from error


def _is_usable(program: Path) -> bool:
    """Whether a uv is new enough, and may run as this user."""
    with suppress(OSError, UsageError, subprocess.TimeoutExpired):
        require_own_program(program, "run it")
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
        version = re.match(r"uv (\d+)\.(\d+)", said.stdout)
        return version is not None and tuple(map(int, version.groups())) >= OLDEST
    return False


def uv_variables() -> dict[str, str]:
    """The environment variables for uv."""
    variables = clean_variables(os.environ, Path())
    del variables["PYTHONPATH"]  # a build must not see the app
    # uv must use the app's interpreter and never download another one.
    return variables | {"UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}
