"""The report says why nothing, or no more, is proposed: no page is without a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.checks.check import CheckWords
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.model.finding import Finding, Outlook, Severity, Verdict
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.compose import (
    NOTHING_LOOKED_AT,
    check_reports,
    checkup_of,
    planning_of,
    trouble_report,
    troubles_found,
)
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import NOW, a_batch, a_plan, a_policy
from tests.builders import a_finding as a_finding_of
from tests.cases import cases, row_by_row
from tests.unit.report_checkup.snapshots import a_finding, a_verdict, meta, skewed, written

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.trouble import Trouble
    from tests.golden import Golden
    from tests.unit.report_checkup.conftest import Make


EVEN = "broker-00:8080 holds 6 of 16, broker-02:8080 holds 5."
NEAR = "backlog-near-quota"
THRESHOLDS = "(warning_spread_coordinators 3, critical_share_percent 75)"
ALL_CLEAR = [a_verdict(check_id, "clear", EVEN) for check_id in BY_ID]


@cases(
    "changed, words",
    ("below", {"verdicts": ALL_CLEAR}, f"{THRESHOLDS}: {EVEN}"),
    ("what was clear", {"verdicts": ALL_CLEAR}, "Clear, with nothing to change: "),
    (
        "unknown",
        {"verdicts": [a_verdict("tc-skew", "unknown", "No broker was read.")]},
        "Not judged: tc-skew. No broker",
    ),
    (
        "which data was missing",
        {"verdicts": [*ALL_CLEAR[:-2], *(a_verdict(each, "unknown", "Not told.") for each in list(BY_ID)[-2:])]},
        f"Not judged: {', '.join(list(BY_ID)[-2:])}. Not told.",
    ),
    (
        "information",
        {"verdicts": [a_verdict("tc-skew", "found", EVEN)], "findings": [a_finding("info")]},
        "tc-skew is information only",
    ),
    (
        "no planner",
        {"verdicts": [a_verdict("clock-skew", "found")], "findings": [a_finding("warning", "of-tomorrow")]},
        "no remedy of its own",
    ),
    ("partial", {**skewed(), "snapshot": meta(unread_brokers=["broker-02:8080"])}, "the snapshot is partial"),
)
def test_why_nothing_is_proposed_is_never_left_open(
    checkup_with: Make, changed: dict[str, list[dict[str, object]]], words: str
) -> None:
    """The reasons explain an empty plan: by thresholds, by missing data, or by findings that have no remedy."""
    planning = checkup_with(**changed).planning

    assert planning.batches == ()
    assert words in " ".join(planning.reasons)


@cases(
    "sections, words",
    ("has not stood long", {"plan": {"standing_snapshots": 3}}, "1 of the 3 snapshots"),
    ("a guard's veto", {"apply": {"protected_namespaces": ["pulsar/system"]}}, "Guard protected"),
    (
        "nowhere to go",
        {"brokers": {"draining": [f"broker-{number:02d}:8080" for number in range(3)]}},
        "every broker is draining",
    ),
)
def test_what_the_policy_holds_back_is_named(tmp_path: Path, sections: dict[str, dict[str, Any]], words: str) -> None:
    """The reasons name the policy's rule or the guard that keeps a finding from being remedied."""
    policy = a_policy(**sections)
    snapshot = open_snapshot(written(tmp_path / "snapshot", **skewed()))

    planning = checkup_of(snapshot, make_plan(planning_facts_of(snapshot, policy, Moves())), policy).planning

    assert planning.batches == ()
    assert words in " ".join(planning.reasons)


def reasons(*verdicts: Verdict, findings: tuple[Finding, ...] = (), policy: Policy | None = None) -> str:
    """Why nothing, where no planner says anything of its own, for one check that it could remedy."""
    info = CheckWords(check_id="tc-skew", title="t", advice=("a",), source="s", remedied_by="tc_balance")
    checks = check_reports(findings, verdicts, {"tc-skew": info})
    plan = a_plan(snapshot_id="s", taken_at=NOW, policy_digest="d", batches=())
    return " ".join(planning_of(plan, checks, policy or Policy()).reasons)


def skew(snapshots: int = 1) -> Finding:
    """A finding that has stood for so many snapshots."""
    return Finding(
        check_id="tc-skew", severity=Severity.WARNING, subject="s", evidence="e", snapshots_in_a_row=snapshots
    )


def test_a_planner_that_says_nothing_is_spoken_for(golden: Golden) -> None:
    """The reasons explain a finding for which its planner gave neither a batch nor a note."""
    found = Verdict(check_id="tc-skew", outlook=Outlook.FOUND, reason="e")
    needed = a_policy(plan={"standing_snapshots": 4})

    golden(reasons(found, findings=(skew(),)))
    golden(reasons(found, findings=(skew(2),), policy=needed))


def full(topic: str, snapshots: int = 3, severity: Severity = Severity.CRITICAL) -> Finding:
    """A topic of `shop/orders` that is close to its quota."""
    subject = f"persistent://shop/orders/{topic}"
    return Finding(
        check_id=NEAR, severity=severity, subject=subject, evidence="e", figures={}, snapshots_in_a_row=snapshots
    )


ONLY_SOME = f"{NEAR}: a size quota of its own is proposed only"


@cases(
    "answered, left, words",
    ("none is answered", (), (full("a"),), ONLY_SOME),
    ("one of two is answered", (full("a"),), (full("b"),), ONLY_SOME),
    ("the only one is answered", (full("a"),), (), None),
    ("the other is information only", (full("a"),), (full("b", severity=Severity.INFO),), None),
    ("it is too young", (), (full("a", 1),), f"{NEAR} has stood for 1 of"),
)
@cases("notes", ("no note", ()), ("a note of another", ("shop/other: nothing is proposed.",)))
def test_which_full_topics_get_a_quota_of_their_own_is_said(
    answered: tuple[Finding, ...], left: tuple[Finding, ...], words: str | None, notes: tuple[str, ...]
) -> None:
    """A reason explains warnings of nearly full topics that no batch answers, and is left out if all are answered."""
    found = Verdict(check_id=NEAR, outlook=Outlook.FOUND, reason="e")
    checks = check_reports((*answered, *left), (found,), {NEAR: BY_ID[NEAR]})
    batches = (a_batch(findings=answered),) if answered else ()
    plan = msgspec.structs.replace(a_plan(notes=notes), batches=batches)

    said = planning_of(plan, checks, a_policy(plan={"standing_snapshots": 2})).reasons

    assert BY_ID[NEAR].remedied_by == "backlog_quota"
    about = [each for each in said if each.startswith(NEAR)]
    assert [each[: len(words or "")] for each in about] == ([] if words is None else [words])
    assert not any("no remedy of its own" in each for each in said)


def test_a_plan_says_why_it_is_no_more(checkup_with: Make, golden: Golden) -> None:
    """The reasons beside a batch name findings that only people can remedy, and no clear or unknown checks."""
    rows = skewed()
    rows["findings"].append(a_finding("warning", "clock-skew", subject="broker-01:8080"))
    rows["verdicts"] += [a_verdict("clock-skew", "found"), a_verdict("ack-holes", "unknown", "Not told.")]

    planning = checkup_with(**rows).planning

    assert len(planning.batches) == 1
    golden("\n".join(planning.reasons))


def test_not_even_a_check_is_a_reason() -> None:
    plan = a_plan(snapshot_id="s", taken_at=NOW, policy_digest="d", batches=())

    assert planning_of(plan, (), Policy()).reasons == (NOTHING_LOOKED_AT,)


def test_a_trouble_without_a_plan_says_why() -> None:
    """The planner's note is the reason, in short; it is none for a trouble about something else."""
    note = "acme/orders: its size quota is not raised, as a.b_c allows 3 GiB of the 9 GiB needed: 2 topics are near it."
    topic = "persistent://acme/orders/t"
    full = a_finding_of(Severity.CRITICAL, check_id=NEAR, subject=topic)
    fan = a_finding_of(Severity.CRITICAL, check_id="consumer-fanout", subject=f"{topic}-2")
    crowded, near = troubles_found(check_reports([full, fan], ()))

    def said(trouble: Trouble, *notes: str) -> str:
        return trouble_report(trouble, (), notes).proposal

    assert said(near, note) == "No plan: a.b_c allows 3 GiB of the 9 GiB needed."
    assert said(near, note.replace("orders", "bills")) == "No plan now."
    assert said(crowded, note) == "No plan now."
    assert (
        said(crowded, "Partitions of topics: no raise is proposed, as it is late (a.b).")
        == "No plan: it is late (a.b)."
    )
    for trouble, about in ((near, "Settings: nothing"), (crowded, "Partitions of topics: no raise")):
        partial = f"{about} is proposed, as the snapshot is partial without broker-2:8080."
        assert said(trouble, note.replace("orders", "x"), partial) == (
            "No plan: the snapshot is partial without broker-2:8080."
        )


def test_a_trouble_with_several_plans_counts_them() -> None:
    """The one that solves most is named, and the reason why there is none for the others is told."""
    subjects = [f"persistent://shop/{name}/t" for name in ("a", "b-1", "b-2", "c")]
    findings = [a_finding_of(Severity.CRITICAL, check_id=NEAR, subject=each) for each in subjects]
    (trouble,) = troubles_found(check_reports(findings, ()))
    small, large = (
        a_batch(batch_id=name, title=f"more for {name}", findings=tuple(some))
        for name, some in (("b1", findings[:1]), ("b2", findings[1:3]))
    )
    note = "shop/c: its size quota is not raised, as a.b_c allows too little."

    told = trouble_report(trouble, (small, large), [note])

    assert told.batch_id == "b2"
    assert told.proposal == ("2 plans for 3 of 4, such as: more for b2. None for the others: a.b_c allows too little.")
    counted = msgspec.structs.replace(trouble, affected=1200)
    assert "2 plans for 3 of the 4 listed" in trouble_report(counted, (small, large)).proposal


def test_a_trouble_of_a_partial_snapshot_is_counted_among_those_read() -> None:
    """Nobody knows how many topics of the unread brokers it meets."""
    two = [a_finding_of(Severity.CRITICAL, check_id=NEAR, subject=f"persistent://shop/{each}/t") for each in "ab"]
    for findings, where in ((two, "2 topics in 2 namespaces, as far as it was read"), (two[:1], two[0].subject)):
        (trouble,) = troubles_found(check_reports(findings, ()))
        assert trouble_report(trouble, (), partial=True).where == where


@row_by_row(
    "evidence, named",
    ("It is full. Slowest is subscription app with 12 entries; no consumer is connected to it.", "app"),
    ("It is full. Slowest is subscription app with 1 entry; its only consumer, x at y, holds 0.", "app"),
    ("It is full.", "SUB"),
    ("It is held by replication to west, with 12 entries left.", "SUB"),
    ("It is full. Slowest is subscription victim with 5 entries with 12 entries.", "SUB"),
    ("It is full. Slowest is subscription victim with 5 entries; x. y with 12 entries.", "SUB"),
    ("It is full. Slowest is subscription -f with 12 entries.", "SUB"),
    ("It is full. Slowest is subscription two words with 12 entries.", "SUB"),
)
def test_the_only_subscription_of_a_topic_is_filled_into_commands(evidence: str, named: str) -> None:
    """A subscription's name that holds another one's sentence names nobody: a command would delete the other one."""
    found = a_finding_of(Severity.CRITICAL, check_id=NEAR, subject="persistent://shop/a/t", evidence=evidence)
    (trouble,) = troubles_found(check_reports([found], ()))
    assert any(f"unsubscribe persistent://shop/a/t -s {named}`" in step for step in trouble_report(trouble, ()).to_do)


def test_what_meets_the_whole_cluster_says_so() -> None:
    """A line that names the cluster on the cluster's own page tells nothing."""
    (trouble,) = troubles_found(check_reports([a_finding_of(check_id="tc-skew", subject="east")], ()))
    assert trouble_report(trouble, (), cluster="east").where == "the whole cluster"


def test_a_note_on_a_namespace_is_reason_enough() -> None:
    """The general sentence on full topics would contradict it."""
    found = Verdict(check_id=NEAR, outlook=Outlook.FOUND, reason="e")
    checks = check_reports((full("a"),), (found,), {NEAR: BY_ID[NEAR]})
    plan = a_plan(notes=("shop/orders: its size quota is not raised, as there is no room.",))
    assert not any(ONLY_SOME in each for each in planning_of(plan, checks, Policy()).reasons)
