"""Thresholds that tenants and namespaces set apart: each namespace is judged by its own."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.model.catalog import CHECKS as CATALOG
from pulsar_steward.model.catalog import CheckInfo, Scope
from pulsar_steward.model.finding import Finding, Outlook, Severity
from pulsar_steward.policy.division import divided
from pulsar_steward.policy.layers import NARROW
from pulsar_steward.policy.load import parse_policy
from pulsar_steward.policy.schema import Policy
from steward_spark.checks.check import MOST_FINDINGS, Check, Judgement
from steward_spark.checks.clients.consumer_fanout import CHECK as CONSUMER_FANOUT
from steward_spark.checks.delayed.delayed_index_multiplied import CHECK as DELAYED_INDEX_MULTIPLIED
from steward_spark.checks.registry import CHECKS
from steward_spark.diagnosing import judged
from steward_spark.frames import Frames
from steward_spark.overriding import PartOfFrames, judge, merged, part_of
from tests.builders import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    FramesOf = Callable[[dict[str, list[dict[str, Any]]]], Frames]

SNAPSHOT = {"cluster": "east", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}
BROKER = {"broker": "b:1", "read": True}
FANNED = {
    "consumer_fanout": {"warning_consumers": 100, "critical_consumers": 1000},
    "clusters": {"west": {"consumer_fanout": {"warning_consumers": 1}}},
    "tenants": {"acme": {"consumer_fanout": {"warning_consumers": 10}}},
    "namespaces": {
        "acme/loud": {"consumer_fanout": {"warning_consumers": 500}},
        "other/small": {"consumer_fanout": {"critical_consumers": 100}},
    },
}
OF_NAMESPACES = [each for each in CHECKS if each.info.scope is Scope.NAMESPACE]
NAMESPACES = ("acme/loud", "acme/x", "other/small", "other/x", "other/smaller")


def fanned(**more: Any) -> Policy:
    """The policy above, with these keys instead."""
    return parse_policy(FANNED | more, name="p")


def topic(namespace: str, consumers: int = 200) -> dict[str, Any]:
    """A topic with so many consumers."""
    name = f"persistent://{namespace}/t"
    return {"topic": name, "namespace": namespace, "broker": "b:1", "consumers": consumers, "subscriptions": 1}


def delayed(namespace: str, *messages: int) -> list[dict[str, Any]]:
    """What the broker tells of a topic's subscriptions with delayed messages."""
    series = {"source": "b:1", "source_kind": "broker", "series": "pulsar_subscription_delayed"}
    name = f"persistent://{namespace}/t"
    return [
        {**series, "topic": name, "subscription": f"s{place}", "value": float(count), "labels_json": "{}"}
        for place, count in enumerate(messages)
    ]


def found(severity: Severity, *subjects: str) -> tuple[Finding, ...]:
    """Findings of one severity."""
    return tuple(
        Finding(check_id="made-up", severity=severity, subject=subject, evidence=".", figures={})
        for subject in subjects
    )


@pytest.fixture
def cluster(frames_of: FramesOf) -> Frames:
    """A topic with 200 consumers in each namespace."""
    return frames_of({"snapshot": [SNAPSHOT], "brokers": [BROKER], "topics": [topic(each) for each in NAMESPACES]})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (fanned(tenants={}, namespaces={}), dict.fromkeys(NAMESPACES, Severity.WARNING)),
        (
            fanned(),
            {
                "other/small": Severity.CRITICAL,
                "acme/x": Severity.WARNING,
                "other/smaller": Severity.WARNING,
                "other/x": Severity.WARNING,
            },
        ),
        (
            fanned(clusters={"east": {"consumer_fanout": {"warning_consumers": 201}}}, namespaces={}),
            {"acme/x": Severity.WARNING, "acme/loud": Severity.WARNING},
        ),
    ],
)
def test_each_namespace_is_judged_by_its_own(cluster: Frames, policy: Policy, expected: dict[str, Severity]) -> None:
    """The tenant's thresholds where the namespace sets none, its cluster's elsewhere; the worst first."""
    judgement = judge(CONSUMER_FANOUT, cluster, policy)

    told = {each.subject.removeprefix("persistent://").removesuffix("/t"): each.severity for each in judgement.findings}
    assert told == expected
    assert [each.severity for each in judgement.findings] == sorted(told.values(), key=lambda each: -each.rank)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("scope", "policy"),
    [
        (Scope.NAMESPACE, Policy()),
        (Scope.NAMESPACE, fanned(clusters={})),
        (Scope.CLUSTER, fanned(clusters={})),
    ],
)
def test_where_nobody_sets_a_check_apart_it_judges_once(cluster: Frames, scope: Scope, policy: Policy) -> None:
    """The snapshot as it is, under the policy as it is: nothing gets slower."""
    calls: list[tuple[Frames, Policy]] = []

    def count(frames: Frames, given: Policy) -> Judgement:
        calls.append((frames, given))
        return Judgement(quiet="once")

    info = CheckInfo(check_id="producer-fanout", title="", advice=(), source="", scope=scope)

    assert judge(Check(info, count), cluster, policy) == Judgement(quiet="once")
    assert calls == [(cluster, policy)]


@pytest.mark.spark
def test_all_checks_are_carried_out_so(cluster: Frames) -> None:
    """A check under overrides has one verdict, as any other."""
    findings, (verdict,) = judged(cluster, fanned(), [CONSUMER_FANOUT])

    assert (verdict.check_id, verdict.outlook, len(findings)) == ("consumer-fanout", Outlook.FOUND, 4)


@pytest.mark.spark
def test_that_a_broker_tells_a_series_is_not_lost(frames_of: FramesOf) -> None:
    """Of zeros only the first of a series is kept, which may be another namespace's: silence still is a zero."""
    rows = {
        "snapshot": [SNAPSHOT],
        "brokers": [BROKER],
        "topics": [topic("acme/x"), topic("other/x")],
        "metrics": delayed("other/x", 60, 50),
    }
    apart = {"warning_extra_index_entries": 40, "critical_extra_index_entries": 45}

    for name, severity in (("acme/x", None), ("other/x", Severity.CRITICAL)):
        policy = parse_policy({"namespaces": {name: {"delayed_index_multiplied": apart}}}, name="p")
        judgement = judge(DELAYED_INDEX_MULTIPLIED, frames_of(rows), policy)
        assert [each.severity for each in judgement.findings] == ([severity] if severity else [])
        assert judgement.cannot_tell is None

    blind = judge(DELAYED_INDEX_MULTIPLIED, frames_of(rows | {"metrics": []}), policy)
    assert blind.cannot_tell is not None


@pytest.mark.spark
def test_a_part_has_its_namespaces_and_all_brokers(frames_of: FramesOf) -> None:
    """In earlier snapshots too."""
    rows = {
        "snapshot": [SNAPSHOT],
        "brokers": [BROKER],
        "topics": [topic(each) for each in NAMESPACES],
        "metrics": [*delayed("acme/loud", 1), {"source": "b:1", "series": "up", "value": 1.0}],
    }
    before = frames_of(rows | {"topics": [topic(each) for each in (*NAMESPACES, "acme/gone")]})
    whole = Frames(frames_of(rows).read, earlier=[before])
    division = divided(fanned().for_cluster("east"), CONSUMER_FANOUT.info.sections)
    parts = [PartOfFrames(whole, division, part) for part in range(len(division.policies))]

    def names(frames: Frames) -> set[str]:
        return {row["namespace"] for row in frames.topics.collect()}

    assert [names(each) for each in parts] == [{"other/x", "other/smaller"}, {"acme/x"}, {"acme/loud"}, {"other/small"}]
    assert names(parts[1].earlier[0]) == {"acme/x", "acme/gone"}
    assert parts[1].about is whole.about
    assert parts[1].brokers.count() == 1
    assert [[(row["topic"], row["value"]) for row in each.metrics.collect()] for each in (parts[0], parts[2])] == [
        [(None, 0.0), (None, 1.0)],
        [("persistent://acme/loud/t", 1.0), (None, 1.0)],
    ]


@pytest.mark.spark
def test_spark_divides_namespaces_as_the_policy_does(cluster: Frames) -> None:
    """One rule in two languages."""
    division = divided(fanned().for_cluster("east"), CONSUMER_FANOUT.info.sections)
    frame = cluster.topics

    rows = frame.select("namespace", part_of(frame["namespace"], division).alias("part")).collect()

    assert {row["namespace"]: row["part"] for row in rows} == {each: division.part_of(each) for each in NAMESPACES}


@pytest.mark.parametrize(
    ("judgements", "expected"),
    [
        (
            [
                Judgement(findings=(*found(Severity.CRITICAL, "a"), *found(Severity.WARNING, "b", "c")), more=2),
                Judgement(findings=(*found(Severity.CRITICAL, "d"), *found(Severity.INFO, "e")), more=3),
            ],
            (["a", "d", "b", "c", "e"], 5, None),
        ),
        ([Judgement(findings=found(Severity.INFO, "a")), Judgement(cannot_tell="No.")], (["a"], 0, None)),
        ([Judgement(quiet="Fine."), Judgement(cannot_tell="No.")], ([], 0, "In acme: No.")),
        ([Judgement(cannot_tell="No."), Judgement(cannot_tell="No.")], ([], 0, "No.")),
        ([Judgement(cannot_tell="No."), Judgement(cannot_tell="Nor here.")], ([], 0, "No. In acme: Nor here.")),
        ([Judgement(quiet="Fine."), Judgement(quiet="Fine too.")], ([], 0, None)),
    ],
)
def test_judgements_become_one(judgements: list[Judgement], expected: tuple[list[str], int, str | None]) -> None:
    """The worst first; what cannot be told of a part counts where nothing was found."""
    one = merged(judgements, [[], ["acme"]])

    assert ([each.subject for each in one.findings], one.more, one.cannot_tell) == expected


def test_silence_is_told_of_every_part() -> None:
    """With whom it is about, and nothing twice."""
    sentences = ["None over 100.", "None over 10.", "None over 100."]

    one = merged([Judgement(quiet=each) for each in sentences], [[], ["acme", "acme/x"], ["other/x"]])

    assert one.quiet == "None over 100. In acme, acme/x: None over 10."


def test_a_list_stays_as_short_as_any() -> None:
    """What does not fit is counted, and no part crowds out another."""
    many = found(Severity.WARNING, *(f"a{place}" for place in range(MOST_FINDINGS)))

    one = merged([Judgement(findings=many, more=7), Judgement(findings=found(Severity.WARNING, "b"))], [[], ["acme"]])

    assert (len(one.findings), one.more) == (MOST_FINDINGS, 8)
    assert [each.subject for each in one.findings[:3]] == ["a0", "b", "a1"]


@pytest.mark.parametrize("check", OF_NAMESPACES, ids=lambda each: each.info.check_id)
def test_a_check_says_which_sections_it_looks_at(check: Check) -> None:
    """What namespaces set apart of a section that a check reads would otherwise be passed over in silence."""
    source = inspect.getsource(inspect.getmodule(check.judge) or check.judge)

    read = set(re.findall(r"\bpolicy\.([a-z_]+)", source)) & NARROW

    assert read == set(check.info.sections)


def test_a_check_of_the_whole_cluster_reads_nothing_that_namespaces_set_apart() -> None:
    """It would judge by the cluster's value, whatever a namespace says."""
    for check in CHECKS:
        if CATALOG[check.info.check_id].scope is Scope.CLUSTER:
            source = inspect.getsource(inspect.getmodule(check.judge) or check.judge)
            assert set(re.findall(r"\bpolicy\.([a-z_]+)", source)) & NARROW == set(), check.info.check_id
