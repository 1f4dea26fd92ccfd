"""Each remediation of business namespaces on real brokers: found, planned, approved, done, proved, gone, taken back.

No Airflow takes part here (`test_healing` and `test_answers` have it): these hold what is changed on the brokers, read
by the lab's own admin client.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from lab import placement
from lab.errors import AdminCallError
from lab.faults.clients.publishing import publish
from lab.faults.real.bundles import crowd, place_evenly
from lab.faults.real.operator import AGE, HOLD, SIZE, shown_topics
from lab.waiting import wait_until
from pulsar_steward.errors import Refused
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.step import ChangeSetting, SplitBundle
from tests.live.healing import Healer, found
from tests.live.plots import plot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground

pytestmark = pytest.mark.live

BACKLOG = 40_000_000
MEBIBYTE = 1 << 20
SMALL_DISK: dict[str, Any] = {
    "backlog_quota_missing": {"warning_backlog_bytes": 32_000_000},
    "retention_unbounded": {"warning_storage_bytes": 32_000_000},
    "backlog_quota_remedy": {"minimum_megabytes": 1},
}
"""A lab's disk is no place for the default thresholds."""


def kept(minutes: int, megabytes: int) -> dict[str, Any]:
    """A namespace's document with a retention."""
    return {"retention_policies": {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}}


QUOTA_OVER_RETENTION = {
    **kept(60, 100),
    "backlog_quota_map": {SIZE: {"limitSize": 200 * MEBIBYTE, "limitTime": -1, "policy": HOLD}},
}
"""Brokers refuse to set the one beside the other, but not to make a namespace with both."""

SHOWN_WITHIN_S = 60.0
BUNDLES = 12


@pytest.fixture
def healer_with(lab: Lab, tmp_path: Path) -> Iterator[Callable[..., Healer]]:
    """Puts the lab under Steward's care, with these sections of the policy, and these checks to look."""
    with contextlib.ExitStack() as open_ledgers:
        yield lambda policy, *checks: open_ledgers.enter_context(Healer.on(lab, tmp_path, policy, checks=checks))


@contextlib.contextmanager
def stored(lab: Lab, name: str, policies: dict[str, Any] | None = None) -> Iterator[Ground]:
    """A namespace made with these policies, and with a topic that nobody consumes."""
    with plot(lab, name, 4, **policies or {}) as here:
        here.subscription(here.topic())
        publish(here.producer(here.topic()), BACKLOG // 1000, 1000)
        here.until(here.topic(), lambda shown: shown["backlogSize"] >= BACKLOG, "the backlog is there")
        here.until_quiet(here.topic())
        yield here


def test_quotas_and_retention_change_in_an_order_that_brokers_accept(
    lab: Lab, healer_with: Callable[..., Healer]
) -> None:
    healer = healer_with(SMALL_DISK, "retention-unbounded", "backlog-quota-missing", "quota-over-retention")
    with (
        stored(lab, "kept-for-ever", kept(-1, -1)) as endless,
        stored(lab, "kept-too-briefly", kept(60, 10)) as brief,
        stored(lab, "quota-over-retention", QUOTA_OVER_RETENTION) as over,
    ):
        grounds = (endless, brief, over)
        before = {here.namespace: here.admin.policies(here.namespace) for here in grounds}
        snapshot = healer.observe()
        troubles = {
            ("retention-unbounded", endless.namespace),
            ("backlog-quota-missing", endless.namespace),
            ("backlog-quota-missing", brief.namespace),
            ("quota-over-retention", over.namespace),
        }
        assert troubles <= found(snapshot)
        plan = healer.plan(snapshot)
        changes = [
            (step.change.namespace, step.change.name.value)
            for batch in plan.batches
            for step in batch.steps
            if isinstance(step.change, ChangeSetting)
        ]
        assert sorted(changes, key=lambda change: change[0]) == [
            (endless.namespace, "age quota"),  # a batch of its own
            (endless.namespace, "size quota"),
            (endless.namespace, "retention"),
            (brief.namespace, "retention"),
            (brief.namespace, "size quota"),
            (over.namespace, "size quota"),
        ]
        with pytest.raises(AdminCallError, match="412"):  # the other order
            brief.admin.set_quota(brief.namespace, SIZE, 60 * MEBIBYTE, HOLD)

        healer.heal(plan)
        now = {here.namespace: here.admin.policies(here.namespace) for here in grounds}
        for policies in (now[brief.namespace], now[over.namespace]):
            retained = policies["retention_policies"]["retentionSizeInMB"] * MEBIBYTE
            assert 1.5 * BACKLOG <= policies["backlog_quota_map"][SIZE]["limitSize"] <= 0.9 * retained
        assert now[endless.namespace].items() >= kept(72 * 60, -1).items()
        assert now[endless.namespace]["backlog_quota_map"][AGE]["limitTime"] == 54 * 3600
        healer.until_gone(*troubles)

        texts = [healer.approval_text(plan, batch) for batch in plan.batches]
        assert sum("LETS BROKERS DELETE MESSAGES" in text and "stored and consumed" in text for text in texts) == 1
        backs = [(batch.title.partition(":")[0], healer.rollback_plan(plan, batch)) for batch in plan.batches]
        for here in (endless, brief):
            for back in (back for namespace, back in backs if namespace == here.namespace):
                healer.heal(back)
            assert here.admin.policies(here.namespace) == before[here.namespace]
        (last,) = (back for namespace, back in backs if namespace == over.namespace)
        outcome, reason = healer.refusal(last)  # what was before is what brokers refuse to set
        assert (outcome, "Backlog Quota exceeds configured retention quota" in reason) == (Outcome.DRIFTED, True), (
            reason
        )
        assert over.admin.policies(over.namespace) == now[over.namespace]


def test_a_crowded_bundle_is_split_until_none_is(lab: Lab, healer_with: Callable[..., Healer]) -> None:
    healer = healer_with({}, "bundle-topic-skew")
    with plot(lab, "crowded", 16) as here:
        place_evenly(here)
        topics = crowd(here, 120)
        for topic in topics:
            here.shared(topic, receiver_queue_size=1)
        wait_until(lambda: set(topics) <= shown_topics(lab).keys(), "all topics are shown", SHOWN_WITHIN_S, 0.5)
        trouble = ("bundle-topic-skew", here.namespace)
        before = here.admin.bundles(here.namespace)
        snapshot = healer.observe()
        assert trouble in found(snapshot)
        plan = healer.plan(snapshot)
        (batch,) = plan.batches
        splits = [step.change for step in batch.steps if isinstance(step.change, SplitBundle)]
        foretold = set(before)
        for split in splits:
            foretold = foretold - {split.bundle} | set(split.halves)
        assert "cannot be undone" in healer.approval_text(plan, batch)

        healer.heal(plan)
        bundles = here.admin.bundles(here.namespace)
        assert set(bundles) == foretold
        fullest = max(Counter(placement.bundle_of(topic, bundles) for topic in topics).values())
        assert fullest < 3 * len(topics) / len(bundles)
        healer.until_gone(trouble)
        assert healer.plan(healer.observe()).batches == ()

        with pytest.raises(Refused, match="cannot be undone"):
            healer.rollback_plan(plan, batch)
