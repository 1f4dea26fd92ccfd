"""Checks of Kafka clusters: what each finds, and what it leaves alone."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.kafka.failover_time import CHECK as FAILOVER
from pulsar_steward.checks.kafka.group_lag import CHECK as LAG
from pulsar_steward.checks.kafka.partition_ceiling import CHECK as CEILING
from pulsar_steward.checks.kafka.replicas_in_sync import FLAPPING, OUT_OF_SYNC
from pulsar_steward.checks.kafka.sizes import STORE_UNKNOWN
from pulsar_steward.checks.kafka.uneven import LEADERS, REPLICAS
from pulsar_steward.checks.registry import VIEWS, checks_of
from pulsar_steward.diagnose.runner import run_checks
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.system import System
from pulsar_steward.model.trouble import Harm, harm_of
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import on_this_thread
from tests.checks.conftest import NOW, _sources, judge_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Judgement
    from tests.checks.conftest import Rows

POLICY = Policy.model_validate(
    {
        "kafka_leaders_uneven": {"minimum_leaders": 6},
        "kafka_replicas_uneven": {"minimum_replicas": 6},
        "kafka_partition_ceiling": {"warning_replicas_per_broker": 20, "warning_partitions_per_cluster": 30},
    }
)


def a_cluster(
    partitions: Sequence[tuple[int | None, list[int], list[int]]],
    *,
    down: Sequence[int] = (),
    settings: dict[str, str] | None = None,
    minutes_ago: float = 0,
    **tables: list[dict[str, Any]],
) -> Rows:
    """Rows of brokers 1 to 3, with partitions of one topic: leader, replicas, those in sync."""
    at = NOW - timedelta(minutes=minutes_ago)
    about = {"cluster": "k", "taken_at": at, "unread_brokers": [], "unread_namespaces": [], "system": "kafka"}
    return {
        "snapshot": [about],
        "kafka_brokers": [{"id": n, "broker": f"broker {n}", "listed": n not in down} for n in (1, 2, 3)],
        "kafka_partitions": [
            {"topic": "orders", "partition": number, "leader": leader, "replicas": replicas, "in_sync": in_sync}
            for number, (leader, replicas, in_sync) in enumerate(partitions)
        ],
        "configuration": [
            {"broker": "broker 1", "key": key, "value": value} for key, value in (settings or {}).items()
        ],
        **tables,
    }


KRAFT = {"auto.leader.rebalance.enable": "true"}
"""Settings of brokers that do not know ZooKeeper."""

EVEN = [(n % 3 + 1, [n % 3 + 1, (n + 1) % 3 + 1, (n + 2) % 3 + 1], [1, 2, 3]) for n in range(12)]


@pytest.mark.parametrize("check", checks_of(System.KAFKA).values(), ids=lambda check: check.check_id)
def test_an_even_cluster_is_clear(check: Any) -> None:
    """With a look before; no group is behind."""
    before = a_cluster(EVEN, minutes_ago=10)
    group = {"group_id": "app", "state": "stable", "partitions": 1, "lag_messages": 0}
    judgement = judge_rows(check, a_cluster(EVEN, settings=KRAFT, kafka_groups=[group]), POLICY, [before])
    assert (judgement.findings, judgement.cannot_tell) == ((), None)


def test_checks_run_on_snapshots_of_their_system() -> None:
    """None of Pulsar's runs on a snapshot of Kafka, and none of Kafka's on one of Pulsar."""
    every = [*checks_of(System.KAFKA).values(), *list(checks_of(System.PULSAR).values())[:3]]
    rows = a_cluster(EVEN)

    def ran(rows: Rows) -> list[str]:
        return [
            each.check.check_id
            for each in run_checks(_sources(rows, by_broker=False), POLICY, every, VIEWS, on_this_thread)
        ]

    assert ran(rows) == list(checks_of(System.KAFKA))
    assert ran({"snapshot": [rows["snapshot"][0] | {"system": None}]}) == [each.check_id for each in every[-3:]]


def only(judgement: Judgement) -> tuple[Severity, str]:
    """Severity and subject of the only finding."""
    (finding,) = judgement.findings
    return finding.severity, finding.subject


def test_a_broker_that_is_down() -> None:
    """A warning while others are in sync; cut off once a partition has no leader, its last one in sync being down."""
    rest = [(leader, replicas, [1, 2]) for leader, replicas, _ in EVEN]
    down = judge_rows(OUT_OF_SYNC, a_cluster(rest, down=[3]))
    assert only(down) == (Severity.WARNING, "broker 3")
    assert "12 replicas on broker 3, which is down, 12 are out of sync" in down.findings[0].evidence
    cut = judge_rows(OUT_OF_SYNC, a_cluster([*rest, (None, [3], [3])], down=[3]))
    assert only(cut) == (Severity.CRITICAL, "broker 3")
    assert cut.findings[0].figures["leaderless"] == 1
    assert [harm_of(each.findings[0], {OUT_OF_SYNC.check_id: OUT_OF_SYNC}) for each in (down, cut)] == [
        Harm.AT_RESTART,
        Harm.CUT_OFF,
    ]


def test_fewer_in_sync_than_producers_need() -> None:
    rows = a_cluster([(1, [1, 2], [1])], settings={"min.insync.replicas": "2"})
    assert only(judge_rows(OUT_OF_SYNC, rows)) == (Severity.CRITICAL, "broker 2")
    assert only(judge_rows(OUT_OF_SYNC, rows | {"configuration": []}))[0] is Severity.WARNING
    own = [{"topic": "orders", "min_in_sync": 2}]
    topics = a_cluster([(1, [1, 2], [1])], settings={"min.insync.replicas": "1"}, kafka_topics=own)
    assert only(judge_rows(OUT_OF_SYNC, topics)) == (Severity.CRITICAL, "broker 2")
    lower = topics | a_cluster([(1, [1, 2], [1])], settings={"min.insync.replicas": "2"})
    assert only(judge_rows(OUT_OF_SYNC, lower | {"kafka_topics": [{"topic": "orders", "min_in_sync": 1}]})) == (
        Severity.WARNING,
        "broker 2",
    )
    (unknown,) = judge_rows(OUT_OF_SYNC, rows | {"configuration": []}).findings
    assert "whether 1 partition can be written with `acks=all` is not known" in unknown.evidence
    unled = a_cluster([(None, [2], [])], down=[2], settings={"min.insync.replicas": "2"})
    (found,) = judge_rows(OUT_OF_SYNC, unled).findings
    assert (found.figures["leaderless"], found.figures["short"]) == (1, 0)


def test_replicas_that_come_and_go() -> None:
    """Some left and others came back: not so while a broker catches up, or stays behind."""
    out = [[1, 2] if number < 4 else [1, 2, 3] for number in range(12)]
    others = [[1, 2] if 2 <= number < 6 else [1, 2, 3] for number in range(12)]
    fewer = [[1, 2] if number < 2 else [1, 2, 3] for number in range(12)]

    def judged(now: list[list[int]], before: list[list[int]]) -> Judgement:
        looks = [[(lead, replicas, each) for (lead, replicas, _), each in zip(EVEN, some, strict=True)]
                 for some in (now, before)]  # fmt: skip
        return judge_rows(FLAPPING, a_cluster(looks[0]), earlier=[a_cluster(looks[1], minutes_ago=5)])

    assert only(judged(others, out)) == (Severity.WARNING, "broker 3")
    assert judged(fewer, out).findings == judged(out, fewer).findings == judged(out, out).findings == ()
    assert judge_rows(FLAPPING, a_cluster(EVEN)).cannot_tell


def test_leaders_on_one_broker() -> None:
    """Told with those that should lead; a broker that leads little for that reason is told as well."""
    leads = [(1, replicas, in_sync) for _, replicas, in_sync in EVEN]
    (found,) = judge_rows(
        LEADERS, a_cluster(leads, settings={"auto.leader.rebalance.enable": "false"}), POLICY
    ).findings
    assert found.subject == "broker 1"
    assert found.evidence.endswith(
        "leads 12 partitions, the median of the others is 0; it is the first replica of 4;"
        " auto.leader.rebalance.enable is off."
    )
    (placed,) = judge_rows(LEADERS, a_cluster([(1, [1, 2, 3], [1, 2, 3])] * 6), POLICY).findings
    assert placed.evidence.endswith("; it is the first replica of 6, so an election changes nothing.")
    owed = [(2, [3, 2], [2, 3])] * 6 + [(1, [1, 2], [1, 2])] * 5
    subjects = {each.subject for each in judge_rows(LEADERS, a_cluster(owed), POLICY).findings}
    assert subjects == {"broker 3"}


def test_replicas_on_one_broker() -> None:
    """A full broker, and an empty one."""
    full = judge_rows(REPLICAS, a_cluster([*EVEN[:4], *[(1, [1], [1])] * 8]), POLICY)
    assert only(full) == (Severity.WARNING, "broker 1")
    empty = judge_rows(REPLICAS, a_cluster([(1, [1, 2], [1, 2])] * 8), POLICY)
    assert only(empty) == (Severity.WARNING, "broker 3")


def test_ceilings() -> None:
    """Of brokers and of the cluster; a cluster with ZooKeeper has a lower one, and which it has may be unknown."""
    assert {each.subject for each in judge_rows(CEILING, a_cluster(EVEN * 3, settings=KRAFT), POLICY).findings} == {
        "k",
        "broker 1",
        "broker 2",
        "broker 3",
    }
    low = Policy.model_validate({"kafka_partition_ceiling": {"warning_partitions_with_zookeeper": 10}})
    clear = judge_rows(CEILING, a_cluster(EVEN, settings={"zookeeper.connect": ""}), low)
    assert (clear.findings, clear.cannot_tell) == ((), None)
    assert judge_rows(CEILING, a_cluster(EVEN), low).cannot_tell == STORE_UNKNOWN
    assert judge_rows(CEILING, a_cluster(EVEN)).cannot_tell is None  # below the ceilings of both
    either = {
        "warning_partitions_with_zookeeper": 5,
        "critical_partitions_with_zookeeper": 10,
        "warning_partitions_per_cluster": 10,
    }
    judged = judge_rows(CEILING, a_cluster(EVEN), Policy.model_validate({"kafka_partition_ceiling": either}))
    assert only(judged) == (Severity.WARNING, "k")
    assert only(judge_rows(CEILING, a_cluster(EVEN, settings={"zookeeper.connect": "zk:2181"}), low)) == (
        Severity.WARNING,
        "k",
    )


def test_time_without_a_leader() -> None:
    """The session of brokers is theirs; without any setting, where the metadata are is not known."""
    policy = Policy.model_validate({"kafka_failover_time": {"warning_seconds": 20}})
    assert not judge_rows(FAILOVER, a_cluster(EVEN, settings=KRAFT), policy).findings
    unknown = judge_rows(FAILOVER, a_cluster(EVEN), policy)
    assert (unknown.findings, unknown.cannot_tell) == ((), STORE_UNKNOWN)
    slow = a_cluster(EVEN, settings={"broker.session.timeout.ms": "30000"})
    assert {each.severity for each in judge_rows(FAILOVER, slow, policy).findings} == {Severity.WARNING}


@pytest.mark.parametrize(
    ("seconds", "messages", "severity"),
    [
        (6 * 3600, 500, Severity.CRITICAL),
        (1800, 500, Severity.WARNING),
        (900, 500_000, None),
        (86_400, 99, None),
    ],
)
def test_a_group_that_lags(seconds: int, messages: int, severity: Severity | None) -> None:
    """Judged by time, if it is more than a few messages; told with the lag at the look before."""
    of_partition = {"group_id": "app 1", "topic": "orders", "committed": 10, "timed": True}
    lags = [
        of_partition | {"partition": 0, "end_offset": 10 + messages - 1, "behind_seconds": 0},
        of_partition | {"partition": 1, "end_offset": 11, "behind_seconds": seconds},
    ]
    group = {"group_id": "app 1", "state": "empty", "partitions": 2, "lag_messages": messages}
    before = a_cluster(EVEN, minutes_ago=10, kafka_groups=[group | {"lag_messages": messages - 20}])
    judgement = judge_rows(LAG, a_cluster(EVEN, kafka_groups=[group], kafka_lags=lags), earlier=[before])
    assert [each.severity for each in judgement.findings] == ([] if severity is None else [severity])
    if severity is not None:
        (finding,) = judgement.findings
        assert finding.subject == "group app 1"
        assert "orders-1" in finding.evidence
        assert "20 more than at 2026-03-01 11:50 UTC, and has no member." in finding.evidence
        same = [before | {"kafka_groups": [group]}]
        (finding,) = judge_rows(LAG, a_cluster(EVEN, kafka_groups=[group], kafka_lags=lags), earlier=same).findings
        assert ", as many as at 2026-03-01 11:50 UTC" in finding.evidence


@pytest.mark.parametrize("replicas", [[1], [1, 2]])
def test_partitions_that_nobody_else_can_lead(replicas: list[int]) -> None:
    """With one replica, or one in sync: gone until the broker is back, and in no time without a leader."""
    lone = [*EVEN, (1, replicas, [1]), (2, [2], [2])]
    judged = judge_rows(FAILOVER, a_cluster(lone, settings=KRAFT))
    assert [(each.severity, each.subject) for each in judged.findings] == [
        (Severity.WARNING, "broker 1"),
        (Severity.WARNING, "broker 2"),
    ]
    assert (
        "Without broker 1, 1 partition with no other replica in sync, such as orders-12, would be gone until it is back"
        "; 4 partitions would have no leader for up to 10 s"
    ) in judged.findings[0].evidence
    few = Policy.model_validate({"kafka_failover_time": {"warning_partitions_alone": 2}})
    assert not judge_rows(FAILOVER, a_cluster(lone, settings=KRAFT), few).findings
    unknown = judge_rows(FAILOVER, a_cluster(lone)).findings[0]
    assert "for how long 4 partitions would have no leader is not known" in unknown.evidence


@pytest.mark.parametrize("behind", [False, True])
def test_a_group_beyond_the_end(*, behind: bool) -> None:
    """Data is being lost; what it is behind on elsewhere is told beside it."""
    place = {"group_id": "app", "topic": "orders", "timed": False}
    lags = [place | {"partition": 0, "committed": 1_000, "end_offset": 400, "behind_seconds": None}]
    if behind:
        lags.append(place | {"partition": 1, "committed": 0, "end_offset": 500, "behind_seconds": 1800, "timed": True})
    group = {"group_id": "app", "state": "stable", "partitions": 2, "lag_messages": 500 if behind else 0}
    judged = judge_rows(LAG, a_cluster(EVEN, kafka_groups=[group], kafka_lags=lags))
    (finding,) = judged.findings
    assert (finding.severity, harm_of(finding, {LAG.check_id: LAG})) == (Severity.WARNING, Harm.LOSING)
    assert "offset 1,000 of orders-0, which ends at 400, and is beyond the end of 1 partition." in finding.evidence
    assert ("it is 500 messages behind on 1 partition" in finding.evidence) is behind
    assert (finding.figures["messages"], finding.figures["beyond"]) == (500 if behind else 0, 1)


def test_a_group_that_was_not_read() -> None:
    group = {"group_id": "app", "state": "stable", "partitions": None, "lag_messages": None}
    assert judge_rows(LAG, a_cluster(EVEN, kafka_groups=[group])).cannot_tell
