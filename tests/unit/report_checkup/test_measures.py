"""Content of the charts, read of a snapshot's tables."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pulsar_steward.report.checkup.measures import FULLEST, MAX_SUBJECTS, MAX_SUBSCRIPTIONS, MAX_TOPICS, LimitedBacklog
from tests.cases import cases, row_by_row
from tests.unit.report_checkup.snapshots import META, NASTY, meta

if TYPE_CHECKING:
    from tests.unit.report_checkup.conftest import Make


MIB = 1024**2
GIB = 1024**3
ORDERS = "persistent://acme/orders/"
QUOTA = {"backlog_quota_map": {"destination_storage": {"limitSize": 100, "limitTime": -1}}}
RETENTION = {"retention_policies": {"retentionTimeInMinutes": 60, "retentionSizeInMB": 2}}
DEFAULTS = {"backlogQuotaDefaultLimitGB": "-1", "backlogQuotaDefaultLimitBytes": "-1", "defaultRetentionSizeInMB": "0"}


def test_the_measures_are_those_of_the_tables(checkup_with: Make) -> None:
    """The measures hold topics and coordinators by broker, the most crowded namespaces, and backlogs by namespace."""
    measures = checkup_with().measures

    assert [(each.topics, each.coordinators) for each in measures.brokers] == [(0, 16), (10, 0), (20, 0)]
    assert measures.crowded[0].namespace == NASTY
    assert [each.topics for each in measures.crowded[0].bundles] == [900, 1]
    assert [(each.namespace, each.backlog_bytes) for each in measures.backlog] == [(NASTY, 3 * 1024**3)]


def test_a_large_namespace_is_cut_and_says_so(checkup_with: Make) -> None:
    """A large namespace lists its fullest bundles and counts the others, without bundles that could not be read."""
    bundles = [
        {"namespace": "a/b", "bundle": f"0x{number:08x}", "owner_known": True, "topics": number} for number in range(40)
    ]
    unread = {"namespace": "a/b", "bundle": "0x99", "owner_known": False, "topics": None}

    (crowded,) = checkup_with(bundles=[*bundles, unread]).measures.crowded

    assert [each.topics for each in crowded.bundles] == list(range(39, 23, -1))
    assert crowded.not_listed == 24


def test_a_broker_that_was_not_read_has_no_figures(checkup_with: Make) -> None:
    """The topic and coordinator counts of a broker that was not read are None."""
    row = {"broker": "broker-00:8080", "read": False, "leader": False, "read_milliseconds": 3}

    (load,) = checkup_with(brokers=[row], snapshot=meta(unread_brokers=["broker-00:8080"])).measures.brokers

    assert (load.topics, load.coordinators) == (None, None)


def a_topic(name: str, backlog: int, namespace: str = "acme/orders") -> dict[str, Any]:
    """A row of the topics."""
    topic = f"persistent://{namespace}/{name}"
    return {"topic": topic, "namespace": namespace, "broker": "broker-00:8080", "backlog_bytes": backlog}


def settings(**values: str) -> list[dict[str, Any]]:
    """Settings of a broker."""
    return [{"broker": "broker-00:8080", "key": key, "value": value} for key, value in values.items()]


def namespaces(policies: dict[str, Any] | None, name: str = "acme/orders") -> list[dict[str, Any]]:
    """A namespace with these policies; None: they were not read."""
    document = None if policies is None else json.dumps(policies)
    return [{"namespace": name, "bundles": 4, "boundaries": [], "policies_json": document}]


@cases(
    "policies, changed, quota, retention",
    ("the namespace's", {**QUOTA, **RETENTION}, {}, (100, "namespace"), (2 * MIB, "namespace")),
    ("defaults: none", {}, {}, (None, "default"), (0, "default")),
    (
        "defaults in gigabytes",
        {"backlog_quota_map": {}},
        {"backlogQuotaDefaultLimitGB": "2.5"},
        (5 * GIB // 2, "default"),
        (0, "default"),
    ),
    (
        "defaults in bytes",
        {},
        {"backlogQuotaDefaultLimitBytes": "700", "defaultRetentionSizeInMB": "-1"},
        (700, "default"),
        (None, "default"),
    ),
    (
        "as old brokers write it",
        {"backlog_quota_map": {"destination_storage": {"limit": 9}}},
        {},
        (9, "namespace"),
        (0, "default"),
    ),
    (
        "an age quota is none in bytes",
        {"backlog_quota_map": {"message_age": {"limitSize": -1, "limitTime": 60}}},
        {},
        (None, "default"),
        (0, "default"),
    ),
    (
        "none, and set so",
        {"backlog_quota_map": {"destination_storage": {"limitSize": -1}}},
        {},
        (None, "namespace"),
        (0, "default"),
    ),
    ("unread", None, {}, (None, None), (None, None)),
    ("defaults: no numbers", {}, dict.fromkeys(DEFAULTS, "much"), (None, None), (None, None)),
)
def test_the_limits_in_force_for_a_topic(
    checkup_with: Make,
    policies: dict[str, Any] | None,
    changed: dict[str, str],
    quota: tuple[int | None, str | None],
    retention: tuple[int | None, str | None],
) -> None:
    """A namespace's limits take precedence over the brokers' defaults, and unknown limits have no source."""
    (limited,) = checkup_with(
        topics=[a_topic("t", 50)], namespaces=namespaces(policies), configuration=settings(**DEFAULTS | changed)
    ).measures.limited

    assert (limited.topic, limited.backlog_bytes) == (f"{ORDERS}t", 50)
    assert (limited.quota_bytes, limited.quota_by) == quota
    assert (limited.retention_bytes, limited.retention_by) == retention


def drilled_limits(make: Make, **columns: Any) -> LimitedBacklog:
    """The limits of a topic whose own statistics were read, for two subscriptions alike."""
    row = {"topic": f"{ORDERS}t", "namespace": "acme/orders", "topic_quota_json": "{}", "topic_retention_json": "{}"}
    drilled = [{**row, **columns, "subscription": name} for name in ("a", "b")]
    topics, policies = [a_topic("t", 50)], namespaces(QUOTA | RETENTION)
    (limited,) = make(topics=topics, drilled=drilled, namespaces=policies).measures.limited
    return limited


def test_a_topics_own_limits_go_before_its_namespaces(checkup_with: Make) -> None:
    """A topic's own quota and retention take precedence over those of its namespace."""
    limited = drilled_limits(
        checkup_with,
        quota_limit_bytes=70,
        topic_quota_json='{"destination_storage":{"limitSize":70}}',
        topic_retention_json='{"retentionTimeInMinutes":1,"retentionSizeInMB":1}',
    )

    assert (limited.quota_bytes, limited.quota_by) == (70, "topic")
    assert (limited.retention_bytes, limited.retention_by) == (MIB, "topic")


def test_a_drilled_topic_without_limits_of_its_own(checkup_with: Make) -> None:
    """A topic without a quota of its own has what its broker reports, whatever the namespace's policies hold."""
    limited = drilled_limits(checkup_with, quota_limit_bytes=-1)

    assert (limited.quota_bytes, limited.quota_by) == (None, "namespace")
    assert (limited.retention_bytes, limited.retention_by) == (2 * MIB, "namespace")


def test_the_fullest_topics_come_before_the_largest(checkup_with: Make) -> None:
    """Topics near their quota come first, then the largest, without Pulsar's own and those without a backlog."""
    near = [a_topic(f"near-{number:02d}", 100 - number) for number in range(FULLEST + 5)]
    large = [a_topic(f"large-{number:02d}", 1_000_000 + number, "acme/free") for number in range(MAX_TOPICS)]
    others = [a_topic("none", 0), a_topic("__change_events", 10**9), a_topic("x", 10**9, "pulsar/system")]

    limited = checkup_with(
        topics=[*large, *others, *near],
        namespaces=[*namespaces(QUOTA), *namespaces({}, "acme/free")],
        configuration=settings(**DEFAULTS),
    ).measures.limited

    names = [each.topic.rpartition("/")[2] for each in limited]
    assert names[:FULLEST] == [f"near-{number:02d}" for number in range(FULLEST)]
    assert names[FULLEST:] == [f"large-{number:02d}" for number in range(MAX_TOPICS - 1, FULLEST - 1, -1)]


def test_a_quota_of_nothing_is_the_fullest(checkup_with: Make) -> None:
    """A topic with a backlog under a quota of 0 bytes is listed as the fullest one."""
    zero = {"backlog_quota_map": {"destination_storage": {"limitSize": 0}}}

    limited = checkup_with(
        topics=[a_topic("full", 99), a_topic("over", 1, "acme/zero")],
        namespaces=[*namespaces(QUOTA), *namespaces(zero, "acme/zero")],
    ).measures.limited

    assert [(each.topic.rpartition("/")[2], each.quota_bytes) for each in limited] == [("over", 0), ("full", 100)]


def test_the_worst_ack_holes_with_what_their_broker_persists(checkup_with: Make) -> None:
    topics = [a_topic(f"t{number:02d}", 0) | {"broker": f"broker-{number % 2:02d}:8080"} for number in range(30)]
    subscriptions = [
        {"topic": topic["topic"], "namespace": "acme/orders", "subscription": "s", "ack_holes": number}
        for number, topic in enumerate(topics)
    ]
    set_to = settings(managedLedgerMaxUnackedRangesToPersist="10000")

    holed = checkup_with(topics=topics, subscriptions=subscriptions, configuration=set_to).measures.ack_holes

    assert [each.ack_holes for each in holed] == list(range(29, 29 - MAX_SUBSCRIPTIONS, -1))
    assert [each.persisted_at_most for each in holed[:2]] == [None, 10_000]


def test_delayed_messages_of_the_topics_that_were_read(checkup_with: Make) -> None:
    rows = [(0, None), (5, None), (9, None), (2, 800), (3, 900), (0, 0), (None, None)]
    drilled = [
        {"topic": f"{ORDERS}t{number}", "subscription": "s", "delayed_messages": messages, "delayed_index_bytes": size}
        for number, (messages, size) in enumerate(rows)
    ]
    without = {"topic": f"{ORDERS}t9", "subscription": None, "delayed_messages": 7}

    delayed = checkup_with(drilled=[*drilled, without]).measures.delayed

    assert [(each.delayed_messages, each.index_bytes) for each in delayed] == [(3, 900), (2, 800), (9, None), (5, None)]


def figures(measure: str, subject: str, *values: float) -> list[dict[str, Any]]:
    """Rows of the trends, a minute apart."""
    times = [META["taken_at"] + timedelta(minutes=number) for number in range(len(values))]
    return [
        {"measure": measure, "subject": subject, "taken_at": moment, "value": value}
        for moment, value in zip(times, values, strict=True)
    ]


def test_trends_have_two_points_at_least(checkup_with: Make) -> None:
    """Trends are listed by measure with their meanings, and a trend with a single point is left out."""
    rows = [
        *figures("of_tomorrow", "east", 1, 2),
        *figures("broker_topics", "broker-00:8080", 5, 6, 7),
        *figures("backlog_bytes", "east", 10.5, 20),
        *figures("topics", "east", 3),
    ]

    trends = checkup_with(trends=rows).measures.trends

    assert [each.measure for each in trends] == ["backlog_bytes", "broker_topics", "of_tomorrow"]
    assert [point.value for point in trends[0].points] == [10.5, 20]
    assert trends[0].meaning.startswith("backlog of all topics")
    assert trends[2].meaning == "of_tomorrow"


def test_trends_of_many_brokers_are_those_that_changed_most(checkup_with: Make) -> None:
    rows = [
        row for number in range(40) for row in figures("broker_topics", f"broker-{number:02d}:8080", 100, 100 + number)
    ]

    trends = checkup_with(trends=rows).measures.trends

    assert [each.subject for each in trends] == [f"broker-{number:02d}:8080" for number in range(40 - MAX_SUBJECTS, 40)]


@row_by_row(
    "topic, users",
    ("persistent://acme/orders/placed", True),
    ("persistent://acme/orders/a__b", True),
    ("non-persistent://acme/orders/placed", True),
    ("persistent://pulsar/system/x", False),
    ("persistent://acme/orders/__change_events", False),
    ("persistent://acme/cluster/orders/__change_events", False),
)
def test_pulsars_own_topics_are_left_out(checkup_with: Make, topic: str, *, users: bool) -> None:
    """Topics of the tenant `pulsar` and topics whose names begin with two underscores are left out."""
    row = {"topic": topic, "namespace": "acme/orders", "backlog_bytes": 5}
    assert bool(checkup_with(topics=[row]).measures.limited) is users
