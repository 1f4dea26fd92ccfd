"""Receivers of messages, and a ledger to send from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.ledgers import ledger_at
from tests.unit.notify.sinks import HttpSink, SmtpSink, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine


@pytest.fixture
def http() -> Iterator[HttpSink]:
    """A receiver of messages by HTTP."""
    sink = HttpSink()
    with running(sink):
        yield sink


@pytest.fixture
def smtp() -> Iterator[SmtpSink]:
    """A mail server."""
    sink = SmtpSink()
    with running(sink):
        yield sink


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An open, empty ledger."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    yield engine
    engine.dispose()
