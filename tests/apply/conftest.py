"""A worksite of each test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.apply.worksite import a_worksite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.apply.worksite import Worksite


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Worksite]:
    """Three made-up brokers, all coordinators on the first, and an empty ledger."""
    with a_worksite(tmp_path) as site:
        yield site
