"""The programs of installed catalogue servers, as a user's own command would use them."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.names import load_catalogue
from wsgiload.environments.interpreter import bundled_app_interpreter
from wsgiload.environments.provision import provision


def programs_of(server: str) -> Path:
    """The folder of this server's programs."""
    (variant,) = load_catalogue().select([server])
    return provision(variant.server, bundled_app_interpreter(), log=lambda text: None).bin
