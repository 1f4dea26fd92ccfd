"""``steward questions``: what is silent, and how that is taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from sqlalchemy import Engine, select

from pulsar_steward.ledger import tables
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.policy.never_asked import never_asked_entry
from tests.builders import CLUSTER, a_batch, a_plan
from tests.cases import row_by_row
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import approved

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.cli.conftest import Steward


PLAN = a_plan(a_batch(title="a time to live \u202e", kind="retention"))
ENTRY = never_asked_entry("acme/x", ["retention"])


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A ledger with a plan, named in the environment, and Bob at the keyboard."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    monkeypatch.setenv("STEWARD_LEDGER", url)
    monkeypatch.setenv("LOGNAME", "bob")
    LedgerWriter(engine).record_plan(PLAN, datetime.now(UTC))
    yield engine
    engine.dispose()


def record_no(engine: Engine, decision: Decision) -> int:
    """A no of Alice, an hour ago; the number of the answer."""
    at = datetime.now(UTC) - timedelta(hours=1)
    usual = msgspec.structs.replace(approved(PLAN, at), decision=decision, step_ids=(), digest=None, expires_at=None)
    snoozed = decision is Decision.SNOOZED
    return LedgerWriter(engine).record_answer(
        msgspec.structs.replace(
            usual,
            silent_until=at + timedelta(days=2) if snoozed else None,
            until_worse=True if snoozed else None,
            policy_entry=ENTRY if decision is Decision.NEVER else None,
        )
    )


@row_by_row(
    "decision, words",
    (Decision.SNOOZED, "or until it gets worse"),
    (Decision.NEVER, "until it is taken back"),
    (Decision.REJECTED, "rejected by alice at"),
)
def test_what_is_silent_is_listed_until_it_is_taken_back(
    steward: Steward, engine: Engine, decision: Decision, words: str
) -> None:
    """A silent question is listed with who silenced it and until when; its end is recorded with a reason."""
    number = record_no(engine, decision)
    listed = steward("questions", "silent", CLUSTER)
    assert (listed.code, listed.err) == (0, "")
    for each in (f"answer {number}: {CLUSTER}: a time to live \\u202e", "by alice at", '"after lunch"', words):
        assert each in listed.out
    assert all(line in listed.out for line in ENTRY.splitlines()) is (decision is Decision.NEVER)

    ended = steward("questions", "ask-again", str(number), "--reason", "the fair\nis over")
    assert (ended.code, ended.err) == (0, "")
    assert steward("questions", "silent").out == "nothing is silent by this ledger\n"
    with transaction(engine) as connection:
        (row,) = connection.execute(select(tables.SILENCE_ENDS)).mappings()
    assert (row["answer_id"], row["reason"]) == (number, "the fair\nis over")
    assert row["said_by"].startswith("bob at ")
    assert "taken back before" in steward("questions", "ask-again", str(number), "--reason", "again").out


def test_of_one_cluster(steward: Steward, engine: Engine) -> None:
    """The silent questions of other clusters are not listed if a cluster is named."""
    record_no(engine, Decision.SNOOZED)
    assert steward("questions", "silent", "elsewhere").out == "nothing is silent in cluster elsewhere by this ledger\n"


def test_nothing_is_taken_back_without_a_reason_or_by_mistake(steward: Steward, engine: Engine) -> None:
    """The command needs a reason, and refuses the number of an approval and a number that does not exist."""
    number = record_no(engine, Decision.SNOOZED)
    silent = steward("questions", "ask-again", str(number))
    assert (silent.code, "--reason" in silent.err) == (2, True)
    other = LedgerWriter(engine).record_answer(msgspec.structs.replace(approved(PLAN, datetime.now(UTC)), run="x/y/0"))
    for each in (other, other + 1):
        ended = steward("questions", "ask-again", str(each), "--reason", "x")
        assert (ended.code, "silences nothing" in ended.err) == (2, True)
