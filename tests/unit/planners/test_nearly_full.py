"""A namespace's size quota that is nearly full: raised by forecast, within bounds, its retention first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.planners.settings.facts import BacklogSample, FullTopic, NamespaceFact, TopicSettings
from pulsar_steward.planners.settings.nearly_full import NEARLY_FULL as PLANNER
from tests.builders import NOW, a_finding, a_policy, planning_facts_with
from tests.cases import cases
from tests.unit.planners.proposals import KNOWN, only_step, refusal, settings_in, undone

if TYPE_CHECKING:
    from pulsar_steward.planners.base import Proposal
    from tests.golden import Golden

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
HOUR, DAY = 3600, 24 * 60
ORDERS, CARTS = "shop/orders", "shop/carts"
HOLD = BacklogQuota(limit_bytes=10 * GIB, policy=QuotaPolicy.HOLD)
KEPT = Retention(minutes=DAY, megabytes=12 * 1024)
SIZE, RETENTION, AGE = SettingName.SIZE_QUOTA, SettingName.RETENTION, SettingName.AGE_QUOTA


def topic_of(namespace: str, number: int = 0) -> str:
    return f"persistent://{namespace}/t-{number}"


def found(
    namespace: str = ORDERS, number: int = 0, check: str = "backlog-near-quota", *, warns: bool = False, **figures: int
) -> Finding:
    """A topic that uses 90 % of a size quota of 10 GiB, unless its figures say otherwise."""
    usual = {"backlog_bytes": 9 * GIB, "bytes_percent": 90, "limit_bytes": 10 * GIB}
    severity = Severity.WARNING if warns else Severity.CRITICAL
    return a_finding(severity, check_id=check, subject=topic_of(namespace, number), figures=usual | figures)


def a_namespace(name: str = ORDERS, *, peak: int = 9 * GIB, topics: int = 3, **fields: Any) -> NamespaceFact:
    """A namespace under a quota of 10 GiB with a topic that has 9 GiB, and grew by 100 KiB/s for two hours."""
    grows = FullTopic(topic=topic_of(name), backlog_bytes=9 * GIB, bytes_per_second=100.0 * KIB, seconds=2 * HOUR)
    usual: dict[str, Any] = {"own": {SIZE: HOLD}, "full": (grows,), "delayed_messages": 0}
    return NamespaceFact(
        namespace=name,
        looks=tuple(
            BacklogSample(taken_at=NOW, topics=topics, backlogs=(each,)) for each in (min(peak, 9 * GIB), peak)
        ),
        busiest_bytes_per_second=float(MIB),
        stored_bytes=20 * GIB,
        **{**usual, **fields},
    )


def changes(proposal: Proposal) -> list[tuple[str, SettingName, Setting | None]]:
    """Values that are set, with where, in order."""
    return [(change.holder, change.name, change.after) for change in settings_in(proposal)]


def sizes(proposal: Proposal) -> dict[str, float]:
    """The size quotas that are set, in megabytes, by namespace; all go on holding producers."""
    quotas = {change.holder: change.after for change in settings_in(proposal)}
    assert all(isinstance(each, BacklogQuota) and each.policy is QuotaPolicy.HOLD for each in quotas.values())
    return {holder: each.limit_bytes / MIB for holder, each in quotas.items() if isinstance(each, BacklogQuota)}


def proposed(*namespaces: NamespaceFact, findings: tuple[Finding, ...] = (found(),), **fields: Any) -> Proposal:
    """The planner's proposal; `fields` are those of `PlanningFacts`."""
    facts = planning_facts_with(3, **{"findings": findings, "namespaces": namespaces, **KNOWN, **fields})
    return PLANNER.proposal(facts)


def remedy(**keys: int) -> dict[str, Any]:
    return {"policy": a_policy(backlog_quota_remedy=keys)}


def grown(rate: float, seconds: int = 2 * HOUR) -> dict[str, Any]:
    """A topic of 9 GiB that grows by so many bytes a second."""
    topic = FullTopic(topic=topic_of(ORDERS), backlog_bytes=9 * GIB, bytes_per_second=rate, seconds=seconds)
    return {"full": (topic,)}


@cases(
    "fields, megabytes",
    ("growth: (9 GiB + 24 h of 100 KiB/s) / 0.9", {}, 19_615),
    ("it stands still: a peak and a half", grown(0.0), 13_824),
    ("it was larger", {"peak": 20 * GIB}, 30_720),
    ("the first snapshot: only what comes in is known", grown(200.0 * KIB, seconds=0), 28_990),
)
def test_it_is_raised_as_far_as_the_forecast_needs(fields: dict[str, Any], megabytes: int) -> None:
    """A size quota is raised as far as the forecast needs, keeps its policy, and its undo is the former value."""
    proposal = proposed(a_namespace(**fields))
    assert sizes(proposal) == {ORDERS: megabytes}
    assert undone(only_step(proposal)) == HOLD
    assert proposal.batches[0].kind == "backlog_quota"


def test_the_retention_is_raised_first_where_it_has_no_room() -> None:
    """Brokers would refuse the quota otherwise."""
    proposal = proposed(a_namespace(own={SIZE: HOLD, RETENTION: KEPT}))
    first, second = changes(proposal)
    assert first == (ORDERS, RETENTION, Retention(minutes=DAY, megabytes=21_795))
    assert second[:2] == (ORDERS, SIZE)
    assert proposal.batches[0].kind == "retention"
    large = Retention(minutes=DAY, megabytes=30_000)
    assert sizes(proposed(a_namespace(own={SIZE: HOLD, RETENTION: large}))) == {ORDERS: 19_615}


def test_the_brokers_default_is_raised_for_the_namespace_alone() -> None:
    proposal = proposed(a_namespace(own={}), defaults={SIZE: HOLD})
    assert sizes(proposal) == {ORDERS: 19_615}
    assert undone(only_step(proposal)) is None


@cases(
    "key, value, megabytes",
    ("a topic", "raise_most_megabytes", 15_000, 15_000),
    ("a namespace", "raise_namespace_megabytes", 4096, 14_336),
    ("a cluster", "raise_cluster_megabytes", 2048, 12_288),
    ("less headroom", "raise_headroom_hours", 1, 13_824),
)
def test_the_policy_bounds_it(key: str, value: int, megabytes: int) -> None:
    """The policy limits the raise by topic, by namespace and by cluster, and the step names the limit that applied."""
    proposal = proposed(a_namespace(), **remedy(**{key: value}))
    assert sizes(proposal) == {ORDERS: megabytes}
    assert "headroom" in key or f"but backlog_quota_remedy.{key} allows" in only_step(proposal).why


def test_what_a_namespace_may_store_more_is_shared_by_its_full_topics() -> None:
    """The policy's limit for a namespace is divided by its full topics, as each of them may fill the raised quota."""
    second = FullTopic(topic=topic_of(ORDERS, 1), backlog_bytes=8 * GIB, bytes_per_second=1.0, seconds=60)
    fact = a_namespace(full=(*a_namespace().full, second))
    proposal = proposed(fact, findings=(found(), found(number=1)), **remedy(raise_namespace_megabytes=8192))
    assert sizes(proposal) == {ORDERS: 14_336}


def test_the_most_urgent_namespace_takes_first_from_what_the_cluster_may_store() -> None:
    findings = (found(CARTS, warns=True), found(ORDERS))
    proposal = proposed(a_namespace(CARTS), a_namespace(), findings=findings, **remedy(raise_cluster_megabytes=13_312))
    assert list(sizes(proposal).items()) == [(ORDERS, 19_615), (CARTS, 10_240 + 3937)]


def test_a_topic_that_is_nearer_to_its_age_quota_is_not_answered() -> None:
    """The planner of size quotas gives neither a batch nor a note for a topic that is nearer to its age quota."""
    proposal = proposed(a_namespace(), findings=(found(seconds_percent=95),))
    assert (proposal.batches, proposal.notes) == ((), ())


@cases(
    "fact, fields, words",
    ("enough", {"peak": GIB, "full": (FullTopic(topic=topic_of(ORDERS), backlog_bytes=GIB),)}, {}, "is large enough"),
    (
        "topic",
        {},
        remedy(raise_most_megabytes=5 * 1024),
        "be 19.16 GiB, and the policy allows at most 5 GiB (backlog_quota_remedy.raise_most_megabytes), no more than",
    ),
    ("little", {}, remedy(raise_most_megabytes=11 * 1024), "which today's backlog would nearly fill at once"),
    ("cluster", {}, remedy(raise_cluster_megabytes=0), "no more than it is now"),
    ("own", {}, {"findings": (found(limit_bytes=5),)}, "the topic's own"),
    ("guard", {}, {"quotas_are_checked": None}, "quotas_checked"),
    ("other changes", {}, {"claimed_settings": frozenset({ORDERS})}, "changes other settings of it first"),
    ("partial", {}, {"unread": ("broker-1:8080",)}, "partial"),
    ("unknown", {"name": CARTS}, {}, "settings are not in the snapshot"),
)
def test_why_it_stays(fact: dict[str, Any], fields: dict[str, Any], words: str) -> None:
    """A quota stays if a raise is not needed, not possible or not permitted: a bound below it forbids the raise."""
    assert words in refusal(proposed(a_namespace(**fact), **fields))


@cases(
    "kept, no_room",
    ("it gets a quota of its own", Retention(minutes=DAY, megabytes=200_000), False),
    ("it cannot", Retention(minutes=DAY, megabytes=9000), True),
)
def test_a_topic_with_a_retention_of_its_own_is_no_reason(kept: Retention, *, no_room: bool) -> None:
    """A namespace's quota is not raised for a topic that has a retention of its own."""
    topic = TopicSettings(
        subject=topic_of(ORDERS),
        topic=topic_of(ORDERS),
        namespace=ORDERS,
        own={RETENTION: kept},
        inherited={SIZE: HOLD, RETENTION: KEPT},
        peak=9 * GIB,
    )
    proposal = proposed(a_namespace(), topics=(topic,))

    assert not proposal.batches
    assert ("leaves no room" in " ".join(proposal.notes)) is no_room


def test_what_is_said_of_it(golden: Golden) -> None:
    """The texts of the steps hold the forecast, the new value, other quotas in force, and how exact the figures are."""
    age = BacklogQuota(limit_seconds=DAY * 60, policy=QuotaPolicy.EVICT)
    own: dict[SettingName, Setting] = {SIZE: HOLD, AGE: age, RETENTION: KEPT, SettingName.TTL: TimeToLive(seconds=9)}
    caveats = ("Brokers compare every 60 s", "Entry filters are loaded (x)")
    proposal = proposed(a_namespace(own=own, topic_quotas=(GIB, 0)), backlog_caveats=caveats)

    golden(proposal.batches[0].title)
    for step in proposal.batches[0].steps:
        golden(step.why)
        golden(step.effect)
    first = proposed(a_namespace(**grown(200.0 * KIB, seconds=0)))
    golden(first.batches[0].steps[0].why)
    notes = proposed(a_namespace(), findings=(found(limit_bytes=5), found(number=1, seconds_percent=99))).notes
    golden(" ".join(notes))


def test_the_order_of_findings_changes_no_batch() -> None:
    findings = (found(CARTS), found(ORDERS), found(ORDERS, check="backlog-growing", bytes_percent=0))
    one, other = (
        [batch.steps for batch in proposed(a_namespace(CARTS), a_namespace(), findings=each).batches]
        for each in (findings, findings[::-1])
    )
    assert one == other
    assert len(one) == 2


def test_topics_that_are_not_listed_share_the_bytes_of_the_policy() -> None:
    """Unlisted findings may be of the namespace: its quota is raised by no more than leaves room for them too."""
    policy = a_policy(backlog_quota_remedy={"raise_namespace_megabytes": 8 * 1024})

    alone, among, elsewhere = (
        changes(proposed(a_namespace(), policy=policy, unlisted={"backlog-growing": unlisted}))
        for unlisted in ({}, {"": 1}, {CARTS: 1})
    )

    assert elsewhere == alone
    assert [(holder, name) for holder, name, _ in alone][-1] == (ORDERS, SIZE)
    assert among != alone
    assert all(not isinstance(value, BacklogQuota) or value.limit_bytes <= 14 * GIB for *_, value in among)


def test_nothing_is_foretold_where_producers_are_shut_out() -> None:
    """At a quota that keeps producers out nothing comes in, and that says nothing of what would."""
    full = FullTopic(topic=topic_of(ORDERS), backlog_bytes=11 * GIB, bytes_per_second=0.0, seconds=2 * HOUR)
    (batch,) = proposed(a_namespace(full=(full,))).batches
    assert "its quota keeps producers out, so that no growth can be foretold" in batch.steps[0].why
