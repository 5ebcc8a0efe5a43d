"""Builds the package with maturin, after one line for a system that wsgiload cannot run on."""

import sys

from maturin import *  # noqa: F403

if sys.platform != "linux":
    sys.exit("wsgiload needs Linux 5.11 or newer: use a Linux container, virtual machine or host")
