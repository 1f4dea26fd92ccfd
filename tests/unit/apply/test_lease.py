"""The right to write: one holder, prolonged while it is held, waited for, and lost rather than shared."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.apply.lease import held_lease
from pulsar_steward.errors import LeaseLost
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.policy.schema import ApplyPolicy
from tests.builders import NAMED
from tests.cases import cases
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from pulsar_steward.ledger.rows import Lease

SHORT = ApplyPolicy.model_construct(lease_seconds=3, lease_wait_seconds=10)
IMPATIENT = ApplyPolicy.model_construct(lease_seconds=1, lease_wait_seconds=0)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An empty ledger."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    yield engine
    engine.dispose()


def now() -> datetime:
    """The present, UTC."""
    return datetime.now(UTC)


def recorded(engine: Engine) -> Lease:
    """The lease on the cluster as the ledger has it."""
    lease = LedgerReader(engine).lease(NAMED)
    assert lease is not None
    return lease


def wait_until(condition: Callable[[], bool]) -> None:
    """Returns once it holds, or fails after a good while."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass within 10 s"
        time.sleep(0.02)


def test_a_held_lease_is_prolonged(engine: Engine) -> None:
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now) as lease:
        first = lease.current
        wait_until(lambda: recorded(engine).expires_at > first.expires_at + timedelta(seconds=0.5))
        assert lease.current.fence == first.fence == recorded(engine).fence


def test_a_lease_ends_with_its_block(engine: Engine) -> None:
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now):
        pass
    assert recorded(engine).expires_at <= now()
    with held_lease(LedgerWriter(engine), NAMED, "another run", IMPATIENT, now) as lease:
        assert lease.current.holder.startswith("another run#")


@cases("second", ("another", "another run"), ("the same run again", "a run"))
def test_a_second_writer_gives_up(engine: Engine, second: str) -> None:
    with (
        held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now),
        pytest.raises(LeaseLost, match=r"a run#\w+ is changing cluster east .* waited 0 s"),
        held_lease(LedgerWriter(engine), NAMED, second, IMPATIENT, now),
    ):
        pytest.fail("two writers at once")


def test_a_second_writer_waits_and_goes_on(engine: Engine) -> None:
    entered = threading.Event()
    fences: list[int] = []

    def second() -> None:
        with held_lease(LedgerWriter(engine), NAMED, "another run", SHORT, now) as lease:
            fences.append(lease.current.fence)
            entered.set()

    waiting = threading.Thread(target=second)
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now) as lease:
        first = lease.current.fence
        waiting.start()
        assert not entered.wait(0.3)
    waiting.join(10)
    assert fences == [first + 1]


def test_a_crashed_writers_lease_runs_out(engine: Engine) -> None:
    LedgerWriter(engine).take_lease(NAMED, "a crashed run", 1, now())
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now) as lease:
        assert lease.current.holder.startswith("a run#")


def test_a_lease_that_ran_out_is_not_taken_up_again(engine: Engine) -> None:
    """A writer that did not prolong its lease in time has lost it, also if no other writer took it."""
    later = timedelta()
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, lambda: now() + later) as lease:
        later = timedelta(minutes=1)
        wait_until(lambda: _lost(lambda: lease.current))
        with pytest.raises(LeaseLost, match="ran out before it was prolonged"):
            _ = lease.current


def test_a_lease_that_another_took_is_lost(engine: Engine) -> None:
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now) as lease:
        LedgerWriter(engine).take_lease(NAMED, "another run", 60, now() + timedelta(minutes=1))
        wait_until(lambda: _lost(lambda: lease.current))
        with pytest.raises(LeaseLost, match="another run is changing cluster east"):
            _ = lease.current
    assert recorded(engine).holder == "another run"
    assert recorded(engine).expires_at > now()


def _lost(current: Callable[[], Lease]) -> bool:
    try:
        current()
    except LeaseLost:
        return True
    return False
