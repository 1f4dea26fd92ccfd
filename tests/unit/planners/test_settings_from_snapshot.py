"""Facts for planners of settings, of a snapshot: ages, backlogs and who fills a quota, and topics that retain more."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.facts.backlogs import BacklogAges, backlog_of
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName, TimeToLive
from pulsar_steward.planners.settings.facts import FullTopic
from pulsar_steward.planners.settings.filling import Filling, fillings
from pulsar_steward.planners.settings.from_snapshot import backlog_caveats, defaults_of, namespace_facts, topic_facts
from pulsar_steward.snapshots.read import Snapshot, open_snapshot
from tests.builders import broker
from tests.cases import cases
from tests.unit.report_checkup.snapshots import META, Rows, a_finding, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

SHOP = "shop/orders"
KEPT = json.dumps({"retentionTimeInMinutes": 60, "retentionSizeInMB": 500})
QUOTA = json.dumps({"destination_storage": {"limitSize": 7000, "limitTime": -1, "policy": "producer_request_hold"}})


def named(name: str, namespace: str = SHOP) -> dict[str, Any]:
    """The columns that say which topic a row is about."""
    return {"topic": f"persistent://{namespace}/{name}", "namespace": namespace}


def a_topic(name: str, backlog: int, stored: int = 0, rate: float = 0.0) -> dict[str, Any]:
    """A loaded topic."""
    figures = {"backlog_bytes": backlog, "storage_bytes": stored, "throughput_in_bytes": rate, "producers": 1}
    return named(name) | figures


TABLES: dict[str, Rows] = {
    "namespaces": [{"namespace": SHOP, "policies_json": "{}"}],
    "topics": [
        a_topic("t", 100, 1000),
        a_topic("u", 300, 250, 10.0),
        a_topic("v", 0, 50),
        a_topic("big-partition-0", 9, 9, 3.0),
        a_topic("big-partition-1", 5, 5, 1.0),
        a_topic("__change_events", 10**9, 10**9),
    ],
    "subscriptions": [
        named(name) | {"subscription": subscription, "backlog_entries": messages}
        for name, subscription, messages in (("u", "s1", 30), ("u", "s2", 10), ("t", "s", 4), ("v", "s", 0))
    ],
    "drilled": [
        named("t") | {"oldest_backlog_age_seconds": 77, "topic_quota_json": QUOTA, "topic_retention_json": "{}"},
        named("u") | {"topic_quota_json": json.dumps({}), "topic_retention_json": None},
        named("big-partition-1") | {"topic_quota_json": "{}", "topic_retention_json": KEPT},
    ],
}
FINDINGS = [
    a_finding("warning", "backlog-quota-missing", subject=SHOP),
    *(a_finding("critical", "backlog-near-quota", subject=named(name)["topic"]) for name in ("u", "big-partition-1")),
    a_finding("info", "backlog-near-quota", subject=named("t")["topic"]),
]


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """One namespace of which something was found, and of two of its topics."""
    return open_snapshot(written(tmp_path / "snapshot", findings=FINDINGS, **TABLES))


def test_a_namespace_is_known_by_what_its_topics_hold(snapshot: Snapshot) -> None:
    """A namespace's facts sum up its topics without Pulsar's own, and prefer ages told by brokers to estimated ones."""
    (fact,) = namespace_facts(snapshot, snapshot.findings())

    assert fact.ages == BacklogAges(
        oldest_seconds=77, topic=named("t")["topic"], estimated=False, waiting=4, unknown=0, why_unknown=""
    )
    assert fact.backlogs[:2] == (
        backlog_of(named("u")["topic"], 300, {"s1": 30, "s2": 10}, {}),
        backlog_of(named("t")["topic"], 100, {"s": 4}, {}),
    )
    assert fact.filling.backlogs[:2] == fact.backlogs[:2]
    assert fact.consumed_bytes == 900 + 50
    assert fact.topic_quotas == (7000, 0)


def test_scalable_topics_are_known_by_their_segments(tmp_path: Path) -> None:
    segments = [{"topic": f"segment://{SHOP}/{each}", "namespace": SHOP} for each in ("b/0-7-1", "a/0-7-0", "a/8-f-2")]
    tables = TABLES | {"topics": [*TABLES["topics"], *segments]}
    snapshot = open_snapshot(written(tmp_path / "snapshot", findings=FINDINGS, **tables))
    (fact,) = namespace_facts(snapshot, snapshot.findings())
    assert fact.scalable == (f"topic://{SHOP}/a", f"topic://{SHOP}/b")


def test_only_topics_that_retain_themselves_are_looked_at_for_a_quota_of_their_own(snapshot: Snapshot) -> None:
    """Facts are read of topics with a warning and a retention of their own, with the largest figures of partitions."""
    (fact,) = topic_facts(snapshot, snapshot.findings())

    assert (fact.subject, fact.topic) == (named("big-partition-1")["topic"], named("big")["topic"])
    assert fact.own == {SettingName.RETENTION: Retention(minutes=60, megabytes=500)}
    assert (fact.peak, fact.busiest_bytes_per_second, fact.snapshots) == (9, 3.0, 1)
    assert [each.topic[-1] for each in fact.filling.backlogs] == ["0", "1"]


@pytest.mark.parametrize(("name", "of_namespace", "of_topic"), [("t", None, 3.0), ("big-partition-0", None, None)])
def test_a_busiest_topic_is_not_known_where_one_tells_no_throughput(
    tmp_path: Path, name: str, of_namespace: float | None, of_topic: float | None
) -> None:
    """A rate that is no number is not 0: that topic or partition may be the busiest."""
    topics = [
        row | {"throughput_in_bytes": None} if row["topic"] == named(name)["topic"] else row for row in TABLES["topics"]
    ]
    snapshot = open_snapshot(written(tmp_path / "snapshot", findings=FINDINGS, **{**TABLES, "topics": topics}))
    (whole,), (single,) = (facts(snapshot, snapshot.findings()) for facts in (namespace_facts, topic_facts))
    assert (whole.busiest_bytes_per_second, single.busiest_bytes_per_second) == (of_namespace, of_topic)


def a_folder(folder: Path, taken_at: datetime, **tables: Rows) -> Snapshot:
    """A snapshot of a home with others, taken at a time; `t` is near a quota in it, and messages of `u` are delayed."""
    name = taken_at.strftime("taken_at=%Y%m%dT%H%M%SZ")
    delayed = {"series": "pulsar_subscription_delayed", "source_kind": "broker", "source": "broker-00:8080"}
    samples = [named("u") | delayed | {"subscription": each, "value": 4.0} for each in ("s1", "s2")]
    found = [a_finding("critical", check, subject=subject) for check, subject in FULL]
    meta = [META | {"taken_at": taken_at}]
    rows = TABLES | {"metrics": samples, "findings": found, "snapshot": meta} | tables
    return open_snapshot(written(folder / "snapshots" / "cluster=east" / name, **rows))


FULL = [("backlog-near-quota", named("t")["topic"]), ("delayed-past-ttl", SHOP)]


def test_growth_is_read_from_earlier_snapshots(tmp_path: Path) -> None:
    then, first = datetime(2026, 3, 1, 11, tzinfo=UTC), datetime(2026, 3, 1, 10, tzinfo=UTC)
    a_folder(tmp_path, first, topics=[a_topic("t", 80)])
    a_folder(tmp_path, then, topics=[a_topic("t", 40)])
    snapshot = a_folder(tmp_path, datetime(2026, 3, 1, 12, tzinfo=UTC), topics=[a_topic("t", 3640, rate=9.0)])

    (fact,) = namespace_facts(snapshot, snapshot.findings())
    assert fact.full == (FullTopic(topic=named("t")["topic"], backlog_bytes=3640, bytes_per_second=1.0, seconds=3600),)
    assert (fact.delayed_messages, fact.delayed_topics) == (8, {named("u")["topic"]: 8})

    alone = a_folder(tmp_path / "other", then, topics=[a_topic("t", 40, rate=9.0)])
    (fact,) = namespace_facts(alone, alone.findings())
    assert fact.full == (FullTopic(topic=named("t")["topic"], backlog_bytes=40, bytes_per_second=9.0, seconds=0),)


@cases(
    "told, said",
    ("nothing", [], ""),
    (
        "none",
        [("backlogQuotaCheckIntervalInSeconds", "60"), ("entryFilterNames", "[]")],
        ". Brokers compare every 60 s",
    ),
    (
        "filters",
        [("entryFilterNames", "[b]"), ("entryFilterNames", "[a]")],
        ". Entry filters are loaded ([a], [b]): what they filter counts as backlog",
    ),
)
def test_how_exact_backlogs_are(tmp_path: Path, told: list[tuple[str, str]], said: str) -> None:
    """The caveats on backlog figures begin with general ones and add the broker settings that affect them."""
    rows = [{"broker": broker(at), "key": key, "value": value} for at, (key, value) in enumerate(told)]
    words = ". ".join(backlog_caveats(open_snapshot(written(tmp_path / "snapshot", configuration=rows))))

    assert words.startswith("Figures run from the oldest message that is not acknowledged")
    assert words.partition("up to a minute old")[2] == said


def test_the_value_of_most_brokers(tmp_path: Path) -> None:
    """The value of most brokers is taken for each key, and of equally frequent ones the lowest text; none if empty."""
    told = [("a", "2"), ("a", "2"), ("a", "1"), ("b", "9"), ("b", "10"), ("c", None), ("d", ""), ("e", "1")]
    rows = [{"broker": broker(at), "key": key, "value": value} for at, (key, value) in enumerate(told)]
    snapshot = open_snapshot(written(tmp_path / "snapshot", configuration=rows))
    assert snapshot.usual_settings("abcd") == {"a": "2", "b": "10"}


@pytest.mark.parametrize(("copies", "known"), [(("2", "2", "2"), True), (("2", "2", "3"), False)])
def test_a_default_persistence_is_known_where_all_brokers_have_it(
    tmp_path: Path, copies: tuple[str, ...], known: bool
) -> None:
    """What most brokers have would be fewer copies for topics of the broker that keeps more."""
    rows = [
        {"broker": broker(at), "key": f"managedLedgerDefault{name}", "value": value}
        for at, many in enumerate(copies)
        for name, value in (
            ("EnsembleSize", "3"),
            ("WriteQuorum", many),
            ("AckQuorum", "2"),
            ("MarkDeleteRateLimit", "1.0"),
        )
    ]
    snapshot = open_snapshot(written(tmp_path / "snapshot", configuration=rows))
    assert (SettingName.PERSISTENCE in defaults_of(snapshot)) is known


T, U = "persistent://shop/orders/t", "persistent://shop/orders/u"
OLD, MOVED = f"{T} subscription old", 1_764_000_000_000
BACKLOGS = {
    "shop/orders": [
        backlog_of(T, 300, {"old": 56_000_000, "app": 10}, {}),
        backlog_of(U, 200, {"app": 20}, {"west": 90}),
        *(backlog_of(f"{T}{number}", 100 - number, {"app": 5}, {}) for number in range(9)),
    ]
}


def quota(action: QuotaPolicy = QuotaPolicy.HOLD) -> BacklogQuota:
    return BacklogQuota(limit_bytes=1000, limit_seconds=-1, policy=action)


def test_who_holds_most_and_who_reads_nothing_is_read_from_a_snapshot(tmp_path: Path) -> None:
    """The largest three backlogs, their subscriptions without consumers, and warnings of what nobody reads there."""
    rows = [
        {"topic": T, "subscription": "old", "consumers": 0, "backlog_entries": 56_000_000},
        {"topic": T, "subscription": "app", "consumers": 3, "backlog_entries": 10},
        {"topic": U, "subscription": "app", "consumers": 0, "backlog_entries": 20},
    ]
    told = {"last_consumed_milliseconds": MOVED, "last_acked_milliseconds": MOVED - 1}
    found = [
        a_finding("warning", "subscription-abandoned", subject=OLD),
        a_finding("info", "subscription-abandoned", subject=f"{U} subscription app"),
        a_finding("warning", "subscription-abandoned", subject="persistent://shop/other/t subscription old"),
    ]
    tables = {"subscriptions": rows, "drilled": [{"topic": T, "subscription": "old", **told}], "findings": found}
    snapshot = open_snapshot(written(tmp_path / "snapshot", **tables))

    filling = fillings(snapshot, BACKLOGS, snapshot.findings())["shop/orders"]

    assert [each.topic for each in filling.backlogs] == [T, U, f"{T}0"]
    assert filling.unread == {OLD: MOVED, f"{U} subscription app": 0}
    assert filling.abandoned == (OLD,)


@pytest.mark.parametrize("action", QuotaPolicy)
def test_a_quota_says_that_nobody_reads_what_fills_it(action: QuotaPolicy, golden: Golden) -> None:
    """It names the subscription, since when nothing of it moved, and what the quota would do for it."""
    filling = Filling(backlogs=tuple(BACKLOGS["shop/orders"][:2]), unread={OLD: MOVED}, abandoned=(OLD,))

    words = filling.in_words(quota(action))

    assert f"old of {T} with 56,000,000 entries (most entries; who is furthest behind is not told)" in words
    assert "which has no consumer, and got and acknowledged nothing since" in words
    assert f"the replicator to west of {U} with 90 entries" in words
    golden(words)


def test_only_what_is_known_is_said() -> None:
    """Nothing without a backlog; no warning about what is read, or about a setting that no backlog fills."""
    read = Filling(backlogs=(BACKLOGS["shop/orders"][2],))
    assert Filling().in_words(quota()) == ""
    assert read.in_words(quota()) == f"; the largest backlogs wait for subscription app of {T}0 with 5 entries"
    assert "nobody" not in Filling(abandoned=(OLD,)).in_words(TimeToLive(seconds=9))


def test_who_is_furthest_behind_fills_a_quota_with_however_few_entries(tmp_path: Path) -> None:
    """A cursor with ack holes has few entries, and holds all since its oldest one: brokers tell who that is."""
    backlogs = {"shop/orders": [backlog_of(T, 300, {"app": 1000, "holes": 3}, {})]}
    told = [{"topic": T, "subscription": each, "slowest_subscription": "holes"} for each in ("app", "holes")]
    snapshot = open_snapshot(written(tmp_path / "snapshot", drilled=told))

    words = fillings(snapshot, backlogs, ())["shop/orders"].in_words(quota())

    assert words == f"; the largest backlogs wait for subscription holes of {T} with 3 entries"


def test_compaction_and_subscriptions_of_unknown_consumers_are_not_said_to_have_none(tmp_path: Path) -> None:
    """Nobody ever connects to the cursor of compaction, and a number that is not told is not 0."""
    backlogs = {"a": [backlog_of(T, 300, {"__compaction": 9}, {})], "b": [backlog_of(U, 300, {"app": 9}, {})]}
    rows: list[dict[str, Any]] = [
        {"topic": T, "subscription": "__compaction", "consumers": 0, "backlog_entries": 9},
        {"topic": U, "subscription": "app", "consumers": None, "backlog_entries": 9},
    ]
    snapshot = open_snapshot(written(tmp_path / "snapshot", subscriptions=rows))
    for each in fillings(snapshot, backlogs, ()).values():
        assert "has no consumer" not in each.in_words(quota())
