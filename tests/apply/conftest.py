"""A worksite of each test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator import running_simulator
from pulsar_steward.ledger.store import open_ledger
from tests.apply.worksite import SKEWED, Worksite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Worksite]:
    """Three made-up brokers, all coordinators on the first, and an empty ledger."""
    with running_simulator(SKEWED, session_s=3600) as simulator:
        engine = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
        yield Worksite(simulator, engine)
        engine.dispose()
