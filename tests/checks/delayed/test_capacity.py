"""Checks of the number of partitions, of the time of a failover, and of the capacity that is left after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.delayed import cluster_placement, failover_time, partition_ceiling
from pulsar_steward.checks.delayed.failover_time import FailoverTimePolicy, LostLoad, RemainingBrokers, estimated
from pulsar_steward.checks.delayed.waiting import BUCKET_TRACKER
from pulsar_steward.model.finding import Severity
from tests.checks.delayed.conftest import cluster, delayed

if TYPE_CHECKING:
    from tests.golden import Golden

IN_BUCKETS: dict[str, str | None] = {"delayedDeliveryTrackerFactoryClassName": BUCKET_TRACKER}


def brokers(*topics: int | None, cpu: float | None = 10.0, host: str = "h{}") -> list[dict[str, Any]]:
    """Brokers of so many topics, on hosts of their own; None: it could not be read."""
    return [
        {
            "broker": f"{host.format(number)}:{8080 + number}",
            "read": count is not None,
            "topics": count,
            "bundles": 10,
            "cpu_percent": cpu,
        }
        for number, count in enumerate(topics)
    ]


CEILING_CASES: dict[str, tuple[list[int | None], int, dict[str, str | None], dict[str, Severity]]] = {
    # topics by broker, subscriptions, settings
    "a million on a hundred brokers": ([10_000] * 100, 1_000_000, {}, {}),
    "brokers at their ceilings": (
        [50_000, 49_999, 40_000, 39_999],
        0,
        {},
        {"h0:8080": Severity.CRITICAL, "h1:8081": Severity.WARNING, "h2:8082": Severity.WARNING},
    ),
    "a cluster near its ceiling": ([30_000] * 50, 0, {}, {"lab": Severity.WARNING}),
    "a cluster beyond it": ([30_000] * 100, 0, {}, {"lab": Severity.CRITICAL}),
    "subscriptions make nodes": ([10_000] * 100, 2_000_000, {}, {"lab": Severity.WARNING}),
    "an unread broker counts for nothing": ([100, None], 0, {}, {}),
}

MANY = [10_000] * 100
NODES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], Severity | None]] = {
    # topics with 2,000,000 subscriptions each, what ZooKeeper and brokers tell; a million topics make two million nodes
    "subscriptions make nodes": ([{"topic": "persistent://t/n/x"}], [], Severity.WARNING),
    "those of topics that are not persistent do not": ([{"topic": "non-persistent://t/n/x"}], [], None),
    "a count of half as many is believed": ([{"topic": "persistent://t/n/x"}], [{"value": 3e6}], None),
    "a count of far fewer is another's": ([{"topic": "persistent://t/n/x"}], [{"value": 2.9e6}], Severity.WARNING),
    "buckets are ledgers": (
        [{"topic": "non-persistent://t/n/x"}],
        [
            {"source": "h0:8080", "source_kind": "broker", "series": "pulsar_delayed_message_index_bucket_total"}
            | {"topic": "persistent://t/n/y", "subscription": "s", "value": 4.1e6}
        ],
        Severity.WARNING,
    ),
}


@pytest.mark.parametrize(("topics", "metrics", "severity"), NODES.values(), ids=NODES)
def test_what_is_in_the_metadata_store_is_judged(
    topics: list[dict[str, Any]], metrics: list[dict[str, Any]], severity: Severity | None
) -> None:
    """The number of metadata nodes is taken from ZooKeeper if its count is plausible, and is estimated otherwise."""
    zookeeper = {"source": "z:8000", "source_kind": "zookeeper", "series": "znode_count"}
    large = [{"broker": "h0:8080", "subscriptions": 2_000_000} | row for row in topics]
    lab = cluster(instead={"brokers": brokers(*MANY), "topics": large, "metrics": [zookeeper | row for row in metrics]})
    judgement = lab.judged(partition_ceiling.CHECK)
    found = {finding.subject: finding.severity for finding in judgement.findings}
    assert found == ({} if severity is None else {"lab": severity})
    assert judgement.cannot_tell is None


@pytest.mark.parametrize(("topics", "subscriptions", "settings", "expected"), CEILING_CASES.values(), ids=CEILING_CASES)
def test_numbers_of_topics_are_judged(
    topics: list[int | None], subscriptions: int, settings: dict[str, str | None], expected: dict[str, Severity]
) -> None:
    """Topics are judged for each broker, and for the cluster together with the nodes of its metadata store."""
    one = [{"topic": "persistent://t/n/x", "broker": "h0:8080", "subscriptions": subscriptions}]
    judgement = cluster(settings=settings, instead={"brokers": brokers(*topics), "topics": one}).judged(
        partition_ceiling.CHECK
    )
    assert {finding.subject: finding.severity for finding in judgement.findings} == expected
    assert judgement.cannot_tell is None


def test_a_broker_that_is_set_lower_has_a_lower_ceiling(golden: Golden) -> None:
    """The ceiling of a broker is its `loadBalancerBrokerMaxTopics` if this is lower than the policy's."""
    setting = {"broker": "h0:8080", "key": "loadBalancerBrokerMaxTopics", "value": "1000"}
    judgement = cluster(instead={"brokers": brokers(800, 800), "configuration": [setting]}).judged(
        partition_ceiling.CHECK
    )
    (finding,) = judgement.findings
    assert (finding.subject, finding.severity) == ("h0:8080", Severity.WARNING)
    golden(finding.evidence)


def test_nodes_that_zookeeper_counts_are_believed(golden: Golden) -> None:
    """ZooKeeper's own count of nodes is used instead of the estimate."""
    counted = {"source": "z:8000", "source_kind": "zookeeper", "series": "znode_count", "value": 7e6}
    (finding,) = cluster(metrics=[counted]).judged(partition_ceiling.CHECK).findings
    assert finding.severity is Severity.WARNING
    golden(finding.evidence)


@pytest.mark.parametrize("check", [partition_ceiling.CHECK, failover_time.CHECK, cluster_placement.CHECK])
def test_without_a_broker_nothing_is_said(check: Any) -> None:
    """The checks of capacity find nothing and cannot tell if no broker was read."""
    judgement = cluster(instead={"brokers": brokers(None, None)}).judged(check)
    assert not judgement.findings
    assert judgement.cannot_tell


@pytest.mark.parametrize("check", [partition_ceiling.CHECK, failover_time.CHECK, cluster_placement.CHECK])
def test_brokers_that_carry_nothing_are_no_health(check: Any) -> None:
    """The check cannot tell if no broker has a topic loaded; one broker with a topic is enough for a verdict."""
    nothing, little = (
        cluster(
            instead={
                "brokers": [
                    {"broker": f"{each}:8080", "read": True, "cpu_percent": 1.0} | {"topics": topics}
                    for each, topics in zip("abc", counts, strict=True)
                ]
            }
        ).judged(check)
        for counts in ((0, 0, 0), (1, 0, 0))
    )
    assert not nothing.findings
    assert "No topic is loaded" in (nothing.cannot_tell or "")
    assert (little.findings, little.cannot_tell) == ((), None)


@pytest.mark.parametrize("check", [partition_ceiling.CHECK, failover_time.CHECK, cluster_placement.CHECK])
def test_a_healthy_cluster_is_quiet(check: Any) -> None:
    """Three brokers with little to do give no finding."""
    judgement = cluster().judged(check)
    assert (judgement.findings, judgement.cannot_tell) == ((), None)


ESTIMATES: dict[str, tuple[LostLoad, int, int]] = {
    # what is lost, other brokers, seconds
    "an empty broker costs its session, and as long of clients that wait": (LostLoad("a", 0, 0, 0, 0), 2, 60),
    "bundles are assigned one by one": (LostLoad("a", 250, 0, 0, 0), 2, 80),
    "topics are shared by the others": (LostLoad("a", 0, 10_000, 0, 0), 4, 110),
    "a single broker takes all again": (LostLoad("a", 0, 10_000, 0, 0), 0, 190),
    "delayed messages are shared by the others": (LostLoad("a", 0, 0, 10_000_000, 1_000_000), 4, 110),
    "those of one subscription are not": (LostLoad("a", 0, 0, 10_000_000, 10_000_000), 4, 260),
    "parts of seconds are rounded up": (LostLoad("a", 1, 0, 0, 0), 2, 61),
    "many brokers share one metadata store": (LostLoad("a", 0, 30_000, 0, 0), 100, 120),
}


@pytest.mark.parametrize(("load", "others", "seconds"), ESTIMATES.values(), ids=ESTIMATES)
def test_an_estimate_is_a_sum(load: LostLoad, others: int, seconds: int) -> None:
    """The estimated failover time is the sum of session, bundles, topics, clients' waiting and delayed backlog."""
    assert estimated(load, RemainingBrokers(others), 30, FailoverTimePolicy()).seconds == seconds


def test_nobody_waits_for_the_session_of_a_broker_that_ends_orderly() -> None:
    """For a broker that ends orderly the estimate has no session, and clients wait only while topics are gone."""
    orderly = estimated(LostLoad("a", 25, 1_000, 0, 0), RemainingBrokers(2), 0, FailoverTimePolicy())
    assert (orderly.session, orderly.backing_off, orderly.seconds) == (0, 6, 12)


FAILOVER_CASES: dict[str, tuple[int, int, dict[str, str | None], Severity | None]] = {
    # topics of the fullest of three brokers, delayed messages of one subscription on it, settings; 30.4 s are fixed;
    # clients wait as long as all but delayed messages takes, up to a minute
    "short of two and a half minutes": (11_700, 0, {}, None),
    "two and a half minutes": (11_920, 0, {}, Severity.WARNING),
    "a delayed backlog is read again": (0, 5_000_000, {}, Severity.WARNING),
    "buckets are not": (100, 5_000_000, IN_BUCKETS, None),
    "brokers load few at a time": (11_700, 0, {"maxConcurrentTopicLoadRequest": "40"}, Severity.WARNING),
    "they load enough at a time": (11_700, 0, {"maxConcurrentTopicLoadRequest": "50"}, None),
    "ten minutes": (0, 28_500_000, {}, Severity.CRITICAL),
    "a longer session": (0, 0, {"metadataStoreSessionTimeoutMillis": "120000"}, Severity.WARNING),
}


@pytest.mark.parametrize(("topics", "messages", "settings", "severity"), FAILOVER_CASES.values(), ids=FAILOVER_CASES)
def test_the_loss_of_the_fullest_broker_is_judged(
    topics: int, messages: int, settings: dict[str, str | None], severity: Severity | None
) -> None:
    """The loss of the fullest broker is judged by the estimated failover time with all its parts."""
    held = [{"broker": each, "read": True, "bundles": 10, "topics": 0} for each in ("b:8080", "c:8080")]
    fullest = {"broker": "a:8080", "read": True, "bundles": 10, "topics": topics}
    lab = cluster(
        settings=settings, instead={"brokers": [*held, fullest]}, metrics=[delayed("persistent://t/n/any", messages)]
    )
    judgement = lab.judged(failover_time.CHECK)
    assert [(each.subject, each.severity) for each in judgement.findings[:1]] == (
        [] if severity is None else [("a:8080", severity)]
    )
    assert judgement.cannot_tell is None


def test_the_formula_is_in_the_evidence(golden: Golden) -> None:
    """The evidence has every figure and every rate of the estimate."""
    (finding,) = cluster(metrics=[delayed("persistent://t/n/any", 9_000_000)]).judged(failover_time.CHECK).findings
    assert finding.subject == "a:8080"
    golden(finding.evidence)


@pytest.mark.parametrize(("timeout", "said"), [("60", True), ("100", False), (None, True)])
def test_loads_that_time_out_are_said(timeout: str | None, said: bool) -> None:
    """The evidence names `topicLoadTimeoutSeconds`, a minute by default, if topics wait longer for their load."""
    settings = {"topicLoadTimeoutSeconds": timeout, "metadataStoreSessionTimeoutMillis": "60000"}
    held = [{"broker": each, "read": True, "bundles": 10, "topics": 100} for each in ("b:8080", "c:8080")]
    fullest = {"broker": "a:8080", "read": True, "bundles": 10, "topics": 18_000}
    (finding,) = cluster(settings=settings, instead={"brokers": [*held, fullest]}).judged(failover_time.CHECK).findings
    assert ("topicLoadTimeoutSeconds" in finding.evidence) is said


def test_an_unknown_delayed_backlog_is_no_short_failover() -> None:
    """The check cannot tell if the delayed backlog is unknown, unless brokers use the bucket tracker."""
    blind = cluster(instead={"metrics": []}).judged(failover_time.CHECK)
    in_buckets = cluster(settings=IN_BUCKETS, instead={"metrics": []}).judged(failover_time.CHECK)
    assert "Prometheus series were not read" in (blind.cannot_tell or "")
    assert in_buckets.cannot_tell is None


LOSS_CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Severity]]] = {
    "two of three carry it": (brokers(30_000, 30_000, 30_000), {}),
    "two of three do not": (brokers(40_000, 30_000, 30_000), {"lab": Severity.CRITICAL}),
    "their CPUs carry it": (brokers(1, 1, 1, cpu=56.0), {}),
    "their CPUs are full then": (brokers(1, 1, 1, cpu=57.0), {"lab": Severity.WARNING}),
    "their CPUs do not carry it": (brokers(1, 1, 1, cpu=80.0), {"lab": Severity.CRITICAL}),
    "brokers on one host share its CPU": (brokers(1, 1, 1, cpu=99.0, host="h"), {}),
    "a single broker is single": (brokers(1), {"lab": Severity.INFO}),
}


@pytest.mark.parametrize(("listed", "expected"), LOSS_CASES.values(), ids=LOSS_CASES)
def test_the_loss_of_a_broker_is_judged(listed: list[dict[str, Any]], expected: dict[str, Severity]) -> None:
    """A finding follows if the remaining brokers could not carry all topics and the CPU load after the loss of one."""
    findings = cluster(instead={"brokers": listed}).judged(cluster_placement.CHECK).findings
    assert {finding.subject: finding.severity for finding in findings} == expected


def test_a_broker_that_does_not_tell_its_cpu_is_said(golden: Golden) -> None:
    """The check cannot tell if a broker does not report its CPU, and names that broker."""
    listed = [*brokers(1, 1), {"broker": "mute:8080", "read": True, "topics": 1}]
    golden(cluster(instead={"brokers": listed}).judged(cluster_placement.CHECK).cannot_tell)


def test_isolation_groups_are_judged_by_themselves(golden: Golden) -> None:
    """An isolation group without a broker is critical; one with a single broker is one warning for its namespaces."""
    namespaces = [
        {"namespace": "t/free", "bundles": 4, "allowed_brokers": None},
        {"namespace": "t/lonely", "bundles": 4, "allowed_brokers": ["a:8080"]},
        {"namespace": "t/lonely-too", "bundles": 4, "allowed_brokers": ["a:8080"]},
        {"namespace": "t/lost", "bundles": 4, "allowed_brokers": []},
        {"namespace": "t/wide", "bundles": 4, "allowed_brokers": ["c:8080", "b:8080"]},
    ]
    findings = cluster(namespaces=namespaces).judged(cluster_placement.CHECK).findings
    assert [(finding.subject, finding.severity) for finding in findings] == [
        ("t/lost", Severity.CRITICAL),
        ("t/lonely", Severity.WARNING),
    ]
    golden(findings[1].evidence)


def test_bundles_outside_their_group_are_found(golden: Golden) -> None:
    """A bundle owned by a broker outside its isolation group is found, and an unowned bundle is not."""
    owners = {"0x00000000_0x40000000": "c:8080", "0x40000000_0x80000000": "a:8080", "0x80000000_0xffffffff": None}
    lab = cluster(
        namespaces=[{"namespace": "t/n", "bundles": 3, "allowed_brokers": ["a:8080", "b:8080"]}],
        bundles=[{"namespace": "t/n", "bundle": bundle, "owner": owner} for bundle, owner in owners.items()],
    )
    (finding,) = lab.judged(cluster_placement.CHECK).findings
    assert (finding.subject, finding.severity) == ("t/n", Severity.WARNING)
    golden(finding.evidence)


def test_namespaces_with_fewer_bundles_than_brokers_are_named(golden: Golden) -> None:
    """A namespace with many topics and fewer bundles than brokers is found, and one with few topics is not."""
    sizes = {"t/large": (2, 1_000), "t/small": (2, 999), "t/divided": (3, 5_000), "pulsar/a:8080": (1, 5_000)}
    lab = cluster(
        namespaces=[{"namespace": name, "bundles": bundles} for name, (bundles, _) in sizes.items()],
        bundles=[{"namespace": name, "bundle": "0x0_0x1", "topics": topics} for name, (_, topics) in sizes.items()],
    )
    (finding,) = lab.judged(cluster_placement.CHECK).findings
    assert (finding.subject, finding.severity) == ("t/large", Severity.INFO)
    golden(finding.evidence)
