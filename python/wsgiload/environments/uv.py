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
    """Its path. Raises ProvisionError where it is missing."""
    try:
        return str(find_uv_bin())
    except FileNotFoundError as error:
        raise ProvisionError(
            "the program uv is missing", "reinstall wsgiload, which includes it"
        ) from error


def uv_variables() -> dict[str, str]:
    """The variables that it runs with."""
    variables = clean_variables(os.environ, Path())
    del variables["PYTHONPATH"]  # a build must not see the app
    # The app's interpreter decides, and uv must not fetch another one behind our back.
    return variables | {"UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}
