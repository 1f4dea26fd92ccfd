"""Checks of the number of partitions, of the time of a failover, and of the capacity that is left after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.delayed import cluster_placement, failover_time, partition_ceiling
from pulsar_steward.checks.delayed.failover_time import FailoverTimePolicy, LostLoad, RemainingBrokers, estimated
from pulsar_steward.checks.delayed.waiting import BUCKET_TRACKER
from pulsar_steward.model.finding import Severity
from tests.checks.conftest import told
from tests.checks.delayed.conftest import cluster, delayed

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.checks.delayed.conftest import Cluster
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


def test_what_it_says_of_ceilings(golden: Golden) -> None:
    """`loadBalancerBrokerMaxTopics` counts if it is lower than the policy's; ZooKeeper's own count comes first."""
    setting = {"broker": "h0:8080", "key": "loadBalancerBrokerMaxTopics", "value": "1000"}
    counted = {"source": "z:8000", "source_kind": "zookeeper", "series": "znode_count", "value": 7e6}
    cases = {
        "a broker that is set lower": cluster(instead={"brokers": brokers(800, 800), "configuration": [setting]}),
        "nodes that ZooKeeper counts": cluster(metrics=[counted]),
    }
    golden(told({rule: each.judged(partition_ceiling.CHECK) for rule, each in cases.items()}))


def test_brokers_that_carry_nothing_are_no_health(golden: Golden) -> None:
    """Nor are brokers that were not read; one broker with a topic is enough for a verdict."""

    def of(*topics: int) -> Cluster:
        rows = [{"broker": f"{name}:8080", "read": True, "cpu_percent": 1.0} for name in "abc"]
        return cluster(instead={"brokers": [row | {"topics": n} for row, n in zip(rows, topics, strict=True)]})

    unread = cluster(instead={"brokers": brokers(None, None)})
    labs = {"no broker was read": unread, "no topic": of(0, 0, 0), "one topic": of(1, 0, 0), "a healthy one": cluster()}
    checks = (partition_ceiling.CHECK, failover_time.CHECK, cluster_placement.CHECK)
    golden(told({f"{rule}: {check.check_id}": lab.judged(check) for rule, lab in labs.items() for check in checks}))


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


def test_what_it_says_of_a_failover(golden: Golden) -> None:
    """Every figure and rate of the estimate; an unknown delayed backlog is none only where brokers use buckets."""
    cases = {
        "nine million are delayed": cluster(metrics=[delayed("persistent://t/n/any", 9_000_000)]),
        "the delayed backlog was not read": cluster(instead={"metrics": []}),
        "nor was it, and it is in buckets": cluster(settings=IN_BUCKETS, instead={"metrics": []}),
    }
    golden(told({rule: each.judged(failover_time.CHECK) for rule, each in cases.items()}))


@pytest.mark.parametrize(("timeout", "said"), [("60", True), ("100", False), (None, True)])
def test_loads_that_time_out_are_said(timeout: str | None, said: bool) -> None:
    """The evidence names `topicLoadTimeoutSeconds`, a minute by default, if topics wait longer for their load."""
    settings = {"topicLoadTimeoutSeconds": timeout, "metadataStoreSessionTimeoutMillis": "60000"}
    held = [{"broker": each, "read": True, "bundles": 10, "topics": 100} for each in ("b:8080", "c:8080")]
    fullest = {"broker": "a:8080", "read": True, "bundles": 10, "topics": 18_000}
    (finding,) = cluster(settings=settings, instead={"brokers": [*held, fullest]}).judged(failover_time.CHECK).findings
    assert ("topicLoadTimeoutSeconds" in finding.evidence) is said


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


def test_what_it_says_of_a_loss(golden: Golden) -> None:
    """An isolation group without a broker is critical, one with a single broker one warning for its namespaces."""
    groups = {"free": None, "lonely": ["a:8080"], "lonely-too": ["a:8080"], "lost": [], "wide": ["c:8080", "b:8080"]}
    owners = {"0x00000000_0x40000000": "c:8080", "0x40000000_0x80000000": "a:8080", "0x80000000_0xffffffff": None}
    sizes = {"t/large": (2, 1_000), "t/small": (2, 999), "t/divided": (3, 5_000), "pulsar/a:8080": (1, 5_000)}
    cases = {
        "one tells no CPU": cluster(
            instead={"brokers": [*brokers(1, 1), {"broker": "mute:8080", "read": True, "topics": 1}]}
        ),
        "isolation groups": cluster(
            namespaces=[
                {"namespace": f"t/{name}", "bundles": 4, "allowed_brokers": each} for name, each in groups.items()
            ]
        ),
        "a bundle is outside its group, and one has no owner": cluster(
            namespaces=[{"namespace": "t/n", "bundles": 3, "allowed_brokers": ["a:8080", "b:8080"]}],
            bundles=[{"namespace": "t/n", "bundle": bundle, "owner": owner} for bundle, owner in owners.items()],
        ),
        "a large namespace has fewer bundles than there are brokers": cluster(
            namespaces=[{"namespace": name, "bundles": bundles} for name, (bundles, _) in sizes.items()],
            bundles=[{"namespace": name, "bundle": "0x0_0x1", "topics": topics} for name, (_, topics) in sizes.items()],
        ),
    }
    golden(told({rule: each.judged(cluster_placement.CHECK) for rule, each in cases.items()}))


def on(host: str, *topics: int | None, first_port: int = 8080) -> list[dict[str, Any]]:
    """Brokers of a host; None: it could not be read."""
    return [
        {"broker": f"{host}:{first_port + number}", "read": count is not None, "topics": count, "bundles": 10}
        | {"cpu_percent": 10.0}
        for number, count in enumerate(topics)
    ]


def telling(brokers: list[dict[str, Any]]) -> Rows:
    """These brokers, each of which tells that nothing is delayed."""
    sample = {"source_kind": "broker", "series": "pulsar_subscription_delayed", "value": 0.0}
    return {"brokers": brokers, "metrics": [{"source": row["broker"]} | sample for row in brokers], "topics": []}


FAILOVERS: dict[str, tuple[list[dict[str, Any]], dict[str, Severity]]] = {
    # Of the two that are left, each loads 100 topics a second; 30.4 s are fixed for a broker; clients wait a minute.
    "each broker alone is short of the limit, their host is not": (
        on("x", 12_000, 12_000) + on("y", 100) + on("z", 100),
        {"x": Severity.WARNING},
    ),
    "on hosts of their own": (on("w", 12_000) + on("x", 12_000) + on("y", 100) + on("z", 100), {}),
    "their host is short of it too": (on("x", 5_500, 5_500) + on("y", 100) + on("z", 100), {}),
    "a broker is found anyway": (on("x", 30_000, 100) + on("y", 100) + on("z", 100), {"x:8080": Severity.WARNING}),
    "all on one host": (on("x", 12_000, 12_000, 100, 100), {}),
}


@pytest.mark.parametrize(("brokers", "expected"), FAILOVERS.values(), ids=FAILOVERS)
def test_a_host_with_several_brokers_may_be_lost(brokers: list[dict[str, Any]], expected: dict[str, Severity]) -> None:
    """The loss of one of several hosts is found if its failover takes too long and no single broker is found."""
    judgement = cluster(instead=telling(brokers)).judged(failover_time.CHECK)
    assert {finding.subject: finding.severity for finding in judgement.findings} == expected
    assert judgement.cannot_tell is None


LOSSES: dict[str, tuple[list[dict[str, Any]], Severity | None]] = {
    "what is left of four has room": (on("x", 20_000, 20_000) + on("y", 20_000, 20_000), None),
    "two of four have not": (on("x", 25_000, 25_000) + on("y", 25_000, 25_000), Severity.WARNING),
    "three of four have": (on("w", 25_000) + on("x", 25_000) + on("y", 25_000) + on("z", 25_000), None),
    "not even after the loss of one": (on("x", 38_000, 38_000) + on("y", 38_000, 38_000), Severity.CRITICAL),
}


@pytest.mark.parametrize(("brokers", "severity"), LOSSES.values(), ids=LOSSES)
def test_the_others_have_to_carry_the_loss_of_a_host(brokers: list[dict[str, Any]], severity: Severity | None) -> None:
    """Too little room after the loss of a host is a warning, and after the loss of one broker it is critical."""
    findings = cluster(instead={"brokers": brokers}).judged(cluster_placement.CHECK).findings
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])


def isolated(*brokers: str) -> list[dict[str, Any]]:
    """A namespace that may be on these only."""
    return [{"namespace": "t/paying", "bundles": 4, "allowed_brokers": list(brokers)}]


GROUPS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], Severity | None, str]] = {
    # brokers, namespaces, what is found, what is said
    "a group on one host": (on("x", 1, 1) + on("y", 1), isolated("x:8080", "x:8081"), Severity.WARNING, "one host"),
    "a group on two": (on("x", 1, 1) + on("y", 1), isolated("x:8080", "y:8080"), None, ""),
    "the cluster has no other host": (on("x", 1, 1, 1), isolated("x:8080", "x:8081"), None, ""),
    "one of two did not answer": (
        on("x", 1, None) + on("y", 1),
        isolated("x:8080", "x:8081"),
        Severity.WARNING,
        "only x:8080 answered, and not x:8081",
    ),
    "none did": (on("x", 1, 1) + on("y", None), isolated("y:8080"), Severity.WARNING, "of these none answered"),
    "there is none": (on("x", 1, 1) + on("y", None), isolated(), Severity.CRITICAL, "no broker that is there"),
}


@pytest.mark.parametrize(("brokers", "namespaces", "severity", "words"), GROUPS.values(), ids=GROUPS)
def test_isolation_groups_and_their_hosts(
    brokers: list[dict[str, Any]], namespaces: list[dict[str, Any]], severity: Severity | None, words: str
) -> None:
    """An isolation group on one of several hosts is a warning, and an unread broker does not count as absent."""
    findings = cluster(instead={"brokers": brokers, "namespaces": namespaces}).judged(cluster_placement.CHECK).findings
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])
    assert all(words in finding.evidence for finding in findings)


def test_what_it_says(golden: Golden) -> None:
    """All brokers on one host are no finding, and said; the only broker that answered is not the only one."""
    one, two = cluster(instead=telling(on("x", 100, 100))), cluster(instead=telling(on("x", 100) + on("y", 100)))
    unread = cluster(instead={"brokers": on("x", 1) + on("y", None)})
    cases = {
        f"{rule}: {check.check_id}": lab.judged(check)
        for rule, lab in {"all on one host": one, "on two hosts": two}.items()
        for check in (failover_time.CHECK, cluster_placement.CHECK)
    }
    golden(told({**cases, "only one was read": unread.judged(cluster_placement.CHECK)}))
