"""Fixtures of the measured faults: somebody who looks at them, and one lab after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.accuracy.labs import Labs
from benchmarks.accuracy.running import Workbench

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """Looks at faults as `make accuracy` does."""
    return Workbench(tmp_path_factory.mktemp("accuracy"), print)


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    """Starts labs as scenes need them; the last one ends with the module."""
    with Labs(tmp_path_factory.mktemp("labs"), print) as running:
        yield running
