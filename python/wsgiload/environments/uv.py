"""The program uv, which resolves and installs packages."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from uv import find_uv_bin

from wsgiload.environments.interpreter import clean_variables
from wsgiload.errors import ProvisionError


@functools.cache
def uv_program() -> str:
    """The path of uv. Raises ProvisionError if it is missing."""
    try:
        return str(find_uv_bin())
    except FileNotFoundError as error:
        raise ProvisionError(
            "the program uv is missing", "reinstall wsgiload, which includes it"
        ) from error


def uv_variables() -> dict[str, str]:
    """The environment variables for uv."""
    variables = clean_variables(os.environ, Path())
    del variables["PYTHONPATH"]  # a build must not see the app
    # uv must use the app's interpreter and never download another one.
    return variables | {"UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}
