"""Small snapshots of where things are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builders import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Check, Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import JudgeRows, Rows

ABOUT: Rows = {"snapshot": [{"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}]}


@pytest.fixture
def judged(judge_rows: JudgeRows) -> JudgeRows:
    """A check's judgement of rows, which need not say what the snapshot is: a whole one, by default."""

    def judge(check: Check, rows: Rows, policy: Policy | None = None, earlier: Sequence[Rows] = ()) -> Judgement:
        return judge_rows(check, ABOUT | rows, policy, earlier)

    return judge
