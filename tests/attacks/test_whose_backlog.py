"""Whose backlog: quotas, eviction and times to live go by every durable cursor, and Pulsar's own lose nothing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, ReplicatorSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.apply.worksite import a_worksite
from tests.builders import a_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.model.step import Step
    from tests.apply.worksite import Worksite

NAMESPACE, TOPIC = "shop/orders", "persistent://shop/orders/t"
WEST = ReplicatorSpec("west", backlog=2500, connected=False)
LIMIT = 100_000
"""Bytes of the quotas here; 2,500 messages of 100 bytes are more, and 500 are not."""

BEHIND: dict[str, tuple[dict[str, Any], str]] = {
    "a replicator": ({"replicators": (WEST,)}, "were never replicated to west would be lost at once: mend"),
    "a replicator beside a subscription": (
        {"replicators": (WEST,), "subscriptions": (SubscriptionSpec("app", backlog=100),)},
        "were never replicated to west would be lost at once: mend",
    ),
    "compaction": (
        {"subscriptions": (SubscriptionSpec("__compaction", kind="None", backlog=2500),)},
        "are not in the compacted view yet would be lost at once: have the topic compacted",
    ),
    "deduplication, which no statistics show": (
        {"dedup_behind": 2500, "subscriptions": (SubscriptionSpec("app"),)},
        "by which brokers recognise what is sent twice would be lost at once: wait for its next snapshot",
    ),
    "deduplication behind a subscription": (
        {"dedup_behind": 2000, "subscriptions": (SubscriptionSpec("app", backlog=2500),)},
        "by which brokers recognise what is sent twice would be lost at once: wait for its next snapshot",
    ),
}


@contextmanager
def with_topic(folder: Path, **fields: Any) -> Iterator[Worksite]:
    """A cluster with one topic, which is loaded unless ``loaded=False``."""
    loaded = fields.pop("loaded", True)
    namespace = NamespaceSpec(NAMESPACE, bundles=1, topics=(TopicSpec("t", **fields),), loaded=loaded)
    with a_worksite(folder, ClusterSpec(brokers=1, namespaces=(namespace,))) as site:
        yield site


def own(name: SettingName, after: Setting) -> Step:
    """A step that sets it on the topic itself, for which any loss is approved."""
    change = ChangeSetting(namespace=NAMESPACE, topic=TOPIC, name=name, before=None, after=after, inherited=None)
    return a_step(change, loss=Loss(messages=10**9, bytes=10**18))


def size_quota(policy: QuotaPolicy, limit: int = LIMIT) -> Step:
    return own(SettingName.SIZE_QUOTA, BacklogQuota(limit_bytes=limit, policy=policy))


def outcome_of(site: Worksite, step: Step) -> tuple[str, str]:
    """Outcome and reason of a step; nothing is called where it is refused."""
    (outcome,) = site.carry_out(site.approved(step))
    assert site.untouched() is (outcome.outcome == "refused")
    return outcome.outcome, outcome.reason


@pytest.mark.parametrize(("fields", "words"), BEHIND.values(), ids=BEHIND)
def test_nothing_is_evicted_that_a_cursor_of_pulsars_own_holds(
    tmp_path: Path, fields: dict[str, Any], words: str
) -> None:
    """An evicting quota is refused if it takes from one of Pulsar's own cursors, whatever was approved."""
    with with_topic(tmp_path, **fields) as site:
        outcome, reason = outcome_of(site, size_quota(QuotaPolicy.EVICT))
    assert (outcome, reason.partition(": ")[0]) == ("refused", "own_cursors")
    assert words in reason


def test_what_an_own_cursor_holds_below_the_limit_is_no_reason(tmp_path: Path) -> None:
    """An evicting quota is set if it takes from a subscription alone, while Pulsar's own cursors hold a tenth of it."""
    fields: dict[str, Any] = {
        "replicators": (ReplicatorSpec("west", backlog=100),),
        "dedup_behind": 100,
        "subscriptions": (SubscriptionSpec("app", backlog=2500), SubscriptionSpec("__compaction", backlog=100)),
    }
    with with_topic(tmp_path, **fields) as site:
        assert outcome_of(site, size_quota(QuotaPolicy.EVICT)) == (
            "done",
            f"the size quota of {TOPIC} is 97.66 KiB; when exceeded, evict oldest unread",
        )


def test_no_message_expires_before_it_is_replicated(tmp_path: Path) -> None:
    """A time to live is refused while a replicator waits with what may be older than it."""
    with with_topic(tmp_path, replicators=(WEST,), stored_ago_s=7200) as site:
        outcome, reason = outcome_of(site, own(SettingName.TTL, TimeToLive(seconds=3600)))
    assert (outcome, reason.partition(": ")[0]) == ("refused", "own_cursors")
    assert "2,500 entries of" in reason


@pytest.mark.parametrize(
    "fields",
    [
        {"dedup_behind": 2500, "subscriptions": (SubscriptionSpec("app"),)},
        {"subscriptions": (SubscriptionSpec("__compaction", backlog=2500),)},
    ],
    ids=["deduplication", "compaction"],
)
def test_what_brokers_do_not_expire_is_no_reason(tmp_path: Path, fields: dict[str, Any]) -> None:
    """A time to live is set where only cursors wait that brokers move past nothing for it."""
    with with_topic(tmp_path, stored_ago_s=7200, **fields) as site:
        words = f"the time to live of {TOPIC} is 1 h"
        assert outcome_of(site, own(SettingName.TTL, TimeToLive(seconds=3600))) == ("done", words)


@pytest.mark.parametrize(
    ("loaded", "words"), [(True, "244.14 KiB"), (False, "is not loaded")], ids=["loaded", "not loaded"]
)
@pytest.mark.parametrize(
    "fields", [{"replicators": (WEST,)}, {"dedup_behind": 2500}], ids=["a replicator", "deduplication"]
)
def test_producers_are_not_stopped_by_a_backlog_without_a_subscription(
    tmp_path: Path, fields: dict[str, Any], words: str, *, loaded: bool
) -> None:
    """A quota that holds producers is refused over the backlog of a topic that no subscription waits for."""
    quota = BacklogQuota(limit_bytes=LIMIT, policy=QuotaPolicy.HOLD)
    change = ChangeSetting(namespace=NAMESPACE, name=SettingName.SIZE_QUOTA, before=None, after=quota)
    with with_topic(tmp_path, loaded=loaded, **fields) as site:
        outcome, reason = outcome_of(site, a_step(change))
    assert (outcome, reason.partition(": ")[0]) == ("refused", "quota_room")
    assert words in reason


@pytest.mark.parametrize("policy", [QuotaPolicy.HOLD, QuotaPolicy.EVICT])
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"replicators": (WEST,)}, "held by the replicator to west: mend"),
        ({"dedup_behind": 2500, "subscriptions": (SubscriptionSpec("app"),)}, "held by deduplication (pulsar.dedup)"),
    ],
    ids=["a replicator", "deduplication"],
)
def test_an_age_quota_goes_by_the_oldest_cursor_of_any_kind(
    tmp_path: Path, fields: dict[str, Any], words: str, policy: QuotaPolicy
) -> None:
    """An age quota is refused if what one of Pulsar's own cursors holds may be too old for it, with who holds it."""
    with with_topic(tmp_path, stored_ago_s=7200, **fields) as site:
        outcome, reason = outcome_of(site, own(SettingName.AGE_QUOTA, BacklogQuota(limit_seconds=3600, policy=policy)))
    assert outcome == "refused"
    assert "age_room: the oldest backlog known" in reason
    assert words in reason


def test_a_reader_that_is_not_durable_holds_nothing(tmp_path: Path) -> None:
    """An evicting quota takes nothing from a reader without a durable cursor, and is set where that alone waits."""
    reader = SubscriptionSpec("reader-0a1b2c3d4e", kind="Exclusive", consumers=1, backlog=2500, durable=False)
    with with_topic(tmp_path, subscriptions=(reader,), storage_bytes=250_000) as site:
        assert outcome_of(site, a_step(size_quota(QuotaPolicy.EVICT).change))[0] == "done"
