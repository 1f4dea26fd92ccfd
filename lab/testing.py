"""For tests that need a real Pulsar: skip where none can run, and say why."""

import os

import pytest

from lab import jars, prerequisites
from lab.model import VERSIONS


def need_lab(version: str = VERSIONS[0]) -> None:
    """Skips where a lab cannot run, saying what to install; with ``CI=true`` it fails instead."""
    missing = prerequisites.missing(maven=not jars.fetched(version))
    if not missing:
        return
    reason = f"no real Pulsar on this machine: {'; '.join(missing)}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
