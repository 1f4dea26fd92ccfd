"""Metrics: what they say, that others can read them, and that there are never too many."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus

from pulsar_steward.apply.health import Level
from pulsar_steward.checks.registry import checks_of
from pulsar_steward.ledger.counts import ClusterCounts, LedgerCounts
from pulsar_steward.ledger.halts import Halt
from pulsar_steward.ledger.messages import OVER, MessageCounts
from pulsar_steward.ledger.questions import UnaskedQuestion, WaitingQuestion
from pulsar_steward.ledger.rows import NOES, Decision, Outcome
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.plan import KINDS
from pulsar_steward.model.system import System
from pulsar_steward.report.checkup.compose import check_reports, trouble_report, troubles_found
from pulsar_steward.report.metrics import METRICS, exposition
from pulsar_steward.report.overview import SnapshotSummary, summary_of
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import CLUSTER, NOW
from tests.builders import a_finding as stalled
from tests.unit.report_checkup.snapshots import a_finding, a_verdict, meta, written

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
CHECKS = checks_of(System.PULSAR)
MOST_SERIES = 900
"""Of one cluster, whatever happens."""

_NAME = re.compile(r"\bsteward_[a-z_]+")
_ENDINGS = ("_bucket", "_count", "_sum", "_created")

QUIET = ClusterCounts(
    cluster=CLUSTER,
    plans=0,
    waiting=(),
    running=None,
    halt=None,
    lease_ends_at=None,
    answers={},
    outcomes={},
    health={},
    without_outcome=0,
    oldest_without_outcome=None,
    answer_seconds=(),
    batch_seconds=(),
)


def of(counts: ClusterCounts = QUIET) -> LedgerCounts:
    """A ledger with one cluster."""
    return LedgerCounts(rows=12, newest_row=NOW, clusters={counts.cluster: counts})


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    """Values by name and labels but the cluster's."""
    return {
        (sample.name, *(value for label, value in sample.labels.items() if label != "cluster")): sample.value
        for family in read_prometheus(text.decode())
        for sample in family.samples
    }


def a_summary(folder: Path, **tables: Any) -> SnapshotSummary:
    """Summary of a snapshot with these tables."""
    return summary_of(open_snapshot(written(folder / "snapshot", **tables)))


def a_question(kind: str, asked_at: datetime = NOW) -> WaitingQuestion:
    """A question that waits."""
    return WaitingQuestion(
        cluster=CLUSTER,
        plan_id="p",
        batch_id="b1",
        kind=kind,
        title="t",
        steps=1,
        run="dag/run/0",
        voice=1,
        asked_at=asked_at,
        ends_at=asked_at + timedelta(days=1),
    )


def nobodys(kind: str, since: datetime = NOW) -> UnaskedQuestion:
    """A question of this kind that nobody was asked."""
    return UnaskedQuestion(cluster=CLUSTER, plan_id="p", batch_id="b1", kind=kind, title="t", steps=1, since=since)


@pytest.fixture
def full(tmp_path: Path) -> bytes:
    """Everything that can have a value has one, and names are as bad as they can be."""
    findings = [
        a_finding(severity.value, check_id, subject=f"persistent://a/b/{number}", first_seen=NOW)
        for check_id in (*CHECKS, "check-of-a-later-version", "another")
        for severity in Severity
        for number in range(3)
    ]
    verdicts = [a_verdict(check_id, "found", more=5) for check_id in CHECKS]
    values = msgspec.structs.replace(
        QUIET,
        plans=7,
        waiting=tuple(a_question(kind) for kind in (*KINDS, "later", 'na"sty\n')),
        unasked=tuple(nobodys(kind) for kind in (*KINDS, "later", 'na"sty\n')),
        halt=Halt(cluster=CLUSTER, at=NOW, halted=True, said_by="bob", reason="x"),
        answers={(kind, each.value): 1 for kind in (*KINDS, "later") for each in Decision},
        silent={(kind, each.value): 1 for kind in (*KINDS, "later") for each in NOES},
        approved=dict.fromkeys((*KINDS, "later"), 1),
        outcomes={(kind, each.value): 1 for kind in (*KINDS, "later") for each in Outcome},
        health={level.value: 1 for level in Level},
        without_outcome=1,
        oldest_without_outcome=NOW,
        answer_seconds=(1.0, 1e9),
        batch_seconds=(1.0, 1e9),
        messages=MessageCounts(ended={state.value: 1 for state in OVER}, pending=1, oldest_pending=NOW),
    )
    summary = a_summary(tmp_path, findings=findings, verdicts=verdicts)
    return exposition(of(values), {CLUSTER: summary}, {CLUSTER: TROUBLES}, NOW)


TROUBLES = [
    trouble_report(each, ())
    for each in troubles_found(check_reports([stalled(check_id="subscription-stalled"), stalled(Severity.INFO)], ()))
]


def exported(text: bytes) -> set[str]:
    """Names of all samples."""
    return {name for name, *_ in samples(text)}


def test_what_is_approved_and_not_begun_is_counted() -> None:
    """Approved batches that were not begun are counted by kind, with unknown kinds as `other` and 0 for the rest."""
    counts = msgspec.structs.replace(QUIET, approved={"retention": 2, "of a later version": 1})
    values = samples(exposition(of(counts), {CLUSTER: None}, {}, NOW))
    name = "steward_approvals_unused"
    assert {key: value for key, value in values.items() if key[0] == name and value} == {
        (name, "retention"): 2,
        (name, "other"): 1,
    }
    assert sum(key[0] == name for key in values) == len(KINDS) + 1


def test_what_is_silent_is_counted_by_who_said_no() -> None:
    """Silenced questions are counted by kind and decision, with 0 where there is none."""
    counts = msgspec.structs.replace(QUIET, silent={("retention", "snoozed"): 2, ("of a later version", "never"): 1})
    values = samples(exposition(of(counts), {CLUSTER: None}, {}, NOW))
    name = "steward_questions_silent"
    assert values[name, "snoozed", "retention"] == 2
    assert values[name, "never", "other"] == 1
    assert values[name, "rejected", "retention"] == 0
    assert sum(key[0] == name for key in values) == 3 * (len(KINDS) + 1)


def test_findings_are_counted_by_check_and_severity(tmp_path: Path) -> None:
    first = datetime(2026, 2, 1, tzinfo=UTC)
    findings = [a_finding(subject="a", first_seen=first), a_finding(subject="b"), a_finding("info", subject="c")]
    verdicts = [
        a_verdict("tc-skew", "found", more=4, critical={"": 1}, warning={"a/b": 2}),
        a_verdict("hot-bundle", "clear"),
        a_verdict("ack-holes", "unknown"),
    ]
    summary = a_summary(
        tmp_path, findings=findings, verdicts=verdicts, snapshot=meta(unread_brokers=["broker-02:8080"])
    )
    values = samples(exposition(of(), {CLUSTER: summary}, {CLUSTER: TROUBLES}, NOW))

    assert values["steward_findings", "tc-skew", "critical"] == 3
    assert values["steward_findings", "tc-skew", "info"] == 2
    assert values["steward_findings", "tc-skew", "warning"] == 2
    assert values["steward_findings", "hot-bundle", "critical"] == 0
    assert ("steward_findings", "ack-holes", "critical") not in values
    assert values["steward_check_unknown", "ack-holes"] == 1
    assert values["steward_check_unknown", "tc-skew"] == 0
    assert values["steward_findings_not_listed", "tc-skew"] == 4
    assert values["steward_finding_oldest_timestamp_seconds", "tc-skew", "critical"] == first.timestamp()
    assert ("steward_finding_oldest_timestamp_seconds", "tc-skew", "warning") not in values
    assert values[("steward_snapshot_unread",)] == 1
    assert values["steward_troubles", "cut-off"] == 0
    assert values["steward_troubles", "slow"] == 1


def test_what_did_not_happen_yet_is_zero() -> None:
    """Counters of events that did not happen yet are 0, and a cluster without a snapshot counts as not readable."""
    values = samples(exposition(of(), {CLUSTER: None}, {}, NOW))
    assert values["steward_steps_total", "tc_balance", "failed"] == 0
    assert values["steward_answers_total", "rejected", "rollback"] == 0
    assert values["steward_health_after_steps_total", "worse"] == 0
    assert values[("steward_snapshot_readable",)] == 0
    assert values[("steward_halted",)] == 0
    assert ("steward_snapshot_timestamp_seconds",) not in values


def test_questions_and_durations() -> None:
    """Waiting questions are counted with the time of the oldest one, and answer times are in cumulative buckets."""
    counts = msgspec.structs.replace(
        QUIET,
        waiting=(a_question("retention"), a_question("retention", NOW - timedelta(hours=1))),
        answer_seconds=(60.0, 61.0, 1e9),
    )
    unasked = (nobodys("retention"), nobodys("retention", NOW - timedelta(hours=2)))
    counts = msgspec.structs.replace(counts, unasked=unasked)
    values = samples(exposition(of(counts), {CLUSTER: None}, {}, NOW))
    assert values["steward_questions_waiting", "retention"] == 2
    assert values["steward_questions_not_asked", "retention"] == 2
    assert values["steward_question_not_asked_oldest_timestamp_seconds", "retention"] == NOW.timestamp() - 7200
    assert values["steward_question_oldest_timestamp_seconds", "retention"] == NOW.timestamp() - 3600
    assert values["steward_answer_seconds_bucket", "60.0"] == 1
    assert values["steward_answer_seconds_bucket", "300.0"] == 2
    assert values["steward_answer_seconds_bucket", "+Inf"] == 3
    assert values[("steward_answer_seconds_count",)] == 3


def test_both_formats_can_be_read(full: bytes) -> None:
    """The plain and the OpenMetrics text parse and name every metric; the latter ends with `# EOF`."""
    assert {family.name for family in read_prometheus(full.decode())} == {
        name.removesuffix("_total") for name in METRICS
    }
    text = exposition(of(), {CLUSTER: None}, {}, NOW, openmetrics=True).decode()
    assert text.endswith("# EOF\n")
    assert {family.name for family in read_openmetrics(text)} == set(METRICS)  # type: ignore[no-untyped-call]  # it has none


def test_series_are_bounded_and_their_labels_closed(full: bytes) -> None:
    """The number of series is bounded: checks and kinds that this version does not know are counted as `other`."""
    values = samples(full)
    labels = [sample.labels for family in read_prometheus(full.decode()) for sample in family.samples]
    assert len(values) < MOST_SERIES
    assert {each["check"] for each in labels if "check" in each} == {*CHECKS, "other"}
    assert {each["kind"] for each in labels if "kind" in each} == {*KINDS, "other"}
    assert values["steward_findings", "other", "critical"] == 6
    assert values["steward_questions_waiting", "other"] == 2
    assert b"persistent" not in full


def test_every_metric_has_a_value_somewhere(full: bytes) -> None:
    """Every declared metric has a sample in the exposition of a full cluster."""
    named = {name.removesuffix("_total").removesuffix("_count") for name in exported(full)}
    assert set(METRICS) - named == set()


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    document = yaml.safe_load((DEPLOY / "prometheus" / "steward-alerts.yaml").read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def test_rules_and_panels_ask_for_what_is_exported(full: bytes) -> None:
    panels = (DEPLOY / "grafana" / "steward.json").read_text(encoding="utf-8")
    asked = {name for text in (panels, *(rule["expr"] for rule in rules())) for name in _NAME.findall(text)}
    assert len(asked) > 15
    assert asked - exported(full) == set()


def test_every_rule_is_explained_and_tested() -> None:
    """Each alert rule has a severity, a summary and a description, and a promtool unit test names it."""
    tested = (DEPLOY / "prometheus" / "steward-alerts-test.yaml").read_text(encoding="utf-8")
    assert len(rules()) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert all(rule["annotations"].values())
        assert f"alertname: {rule['alert']}\n" in tested


def test_panels_have_places_of_their_own() -> None:
    """Panels do not overlap, have ids of their own, and use the data source that the dashboard's variable names."""
    dashboard = json.loads((DEPLOY / "grafana" / "steward.json").read_text(encoding="utf-8"))
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in dashboard["panels"]:
        assert panel["type"] == "row" or panel["datasource"]["uid"] == "${datasource}"


def test_the_page_lists_every_metric() -> None:
    """docs/metrics.md lists every metric with its type, its labels and its meaning."""
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for name, metric in METRICS.items():
        kind = metric.kind.__name__.removesuffix("MetricFamily").lower()
        exported_as = f"{name}_total" if kind == "counter" else name
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
        assert f"| `{exported_as}` | {kind} | {labels} | {metric.words} |" in page
