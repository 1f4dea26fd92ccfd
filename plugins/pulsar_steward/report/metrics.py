"""Metrics of clusters under Steward's care, in Prometheus' text format or as OpenMetrics.

Labels have values of closed sets only (clusters, checks, severities, kinds of batches, decisions, outcomes), never a
namespace, topic, broker or person. So the number of series is bounded. A counter of events that never happened is 0,
not absent: in Prometheus the first failed step is then an increase from 0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.openmetrics import exposition as openmetrics_exposition

from pulsar_steward.apply.health import Level
from pulsar_steward.checks.registry import checks_of
from pulsar_steward.ledger.messages import OVER
from pulsar_steward.ledger.rows import NOES, Decision, Outcome
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.plan import KINDS
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import DAY, HOUR, MINUTE
from pulsar_steward.report.checkup.document import pressing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.ledger.counts import ClusterCounts, LedgerCounts
    from pulsar_steward.report.checkup.document import TroubleReport
    from pulsar_steward.report.overview import SnapshotSummary

OTHER = "other"
"""Label for a check or kind unknown to this version, if another version made the snapshot or plan."""

KIND_LABELS = (*KINDS, OTHER)

ANSWER_BUCKETS = (MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, DAY)
BATCH_BUCKETS = (10, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR)

PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Metric(NamedTuple):
    """A metric: its Prometheus type, its meaning, and its labels."""

    kind: type
    words: str
    labels: tuple[str, ...] = ("cluster",)


_GAUGE, _COUNTER, _HISTOGRAM = GaugeMetricFamily, CounterMetricFamily, HistogramMetricFamily
_OF_CHECK = ("cluster", "check")
_OF_SEVERITY = ("cluster", "check", "severity")

METRICS = {
    "steward_snapshot_readable": Metric(_GAUGE, "1: there is a diagnosed snapshot that can be read; 0: there is none."),
    "steward_snapshot_timestamp_seconds": Metric(_GAUGE, "When the newest diagnosed snapshot was taken."),
    "steward_snapshot_unread": Metric(_GAUGE, "Brokers and namespaces that it lacks; above 0 it is partial."),
    "steward_brokers": Metric(_GAUGE, "Brokers that the cluster listed in it."),
    "steward_topics": Metric(
        _GAUGE, "Topics that were loaded on the brokers that answered; of Kafka, partitions with a leader."
    ),
    "steward_troubles": Metric(
        _GAUGE,
        "Troubles of the newest snapshot, without information, by their worst harm.",
        ("cluster", "harm"),
    ),
    "steward_findings": Metric(
        _GAUGE,
        "Findings of the newest snapshot, listed or not; absent, not 0, of a check that could not judge it.",
        _OF_SEVERITY,
    ),
    "steward_finding_oldest_timestamp_seconds": Metric(
        _GAUGE, "Time of the first snapshot in a row that shows the oldest finding.", _OF_SEVERITY
    ),
    "steward_findings_not_listed": Metric(_GAUGE, "The part of `steward_findings` that is only counted.", _OF_CHECK),
    "steward_check_unknown": Metric(_GAUGE, "1: the check could not judge the newest snapshot.", _OF_CHECK),
    "steward_plans": Metric(_COUNTER, "Plans in the ledger."),
    "steward_questions_waiting": Metric(_GAUGE, "Batches that wait for an answer.", ("cluster", "kind")),
    "steward_question_oldest_timestamp_seconds": Metric(
        _GAUGE, "When the oldest of them was asked; absent where none waits.", ("cluster", "kind")
    ),
    "steward_question_ends_timestamp_seconds": Metric(
        _GAUGE, "When the first of them ends unanswered; absent where none waits.", ("cluster", "kind")
    ),
    "steward_questions_not_asked": Metric(
        _GAUGE, "Batches that nobody was asked about yet: no run of pulsar_remediate has asked.", ("cluster", "kind")
    ),
    "steward_question_not_asked_oldest_timestamp_seconds": Metric(
        _GAUGE, "When the oldest of them was published; absent where there is none.", ("cluster", "kind")
    ),
    "steward_questions_silent": Metric(
        _GAUGE, "Answers by which something is not asked for the time being.", ("cluster", "kind", "decision")
    ),
    "steward_answers": Metric(_COUNTER, "Questions that ended, by decision.", ("cluster", "kind", "decision")),
    "steward_answer_seconds": Metric(_HISTOGRAM, "Seconds from a question to a person's answer."),
    "steward_approvals_unused": Metric(
        _GAUGE,
        "Approved batches of which nothing is carried out yet: about to begin, or waiting for a maintenance window.",
        ("cluster", "kind"),
    ),
    "steward_batch_running": Metric(_GAUGE, "1: a batch is being carried out."),
    "steward_batch_seconds": Metric(_HISTOGRAM, "Seconds from a batch's first call to its last outcome."),
    "steward_steps": Metric(_COUNTER, "Steps that came to an end, by outcome.", ("cluster", "kind", "outcome")),
    "steward_calls_without_outcome": Metric(_GAUGE, "Calls that may have left, and whose outcome is not recorded."),
    "steward_call_without_outcome_oldest_timestamp_seconds": Metric(
        _GAUGE, "When the oldest of them was about to be made; absent where there is none."
    ),
    "steward_health_after_steps": Metric(
        _COUNTER, "Steps by the health that was seen after their call.", ("cluster", "level")
    ),
    "steward_halted": Metric(_GAUGE, "1: somebody halted all changes of the cluster."),
    "steward_halted_timestamp_seconds": Metric(_GAUGE, "Since when; absent where it is not halted."),
    "steward_messages": Metric(_COUNTER, "Messages to people that ended, by result.", ("cluster", "result")),
    "steward_messages_pending": Metric(_GAUGE, "Messages that are to be sent yet, as their recipients fail."),
    "steward_message_oldest_timestamp_seconds": Metric(
        _GAUGE, "When the oldest of them was queued; absent where there is none."
    ),
    "steward_ledger_rows": Metric(_COUNTER, "Rows of the ledger.", ()),
    "steward_ledger_newest_row_timestamp_seconds": Metric(_GAUGE, "When Steward last wrote into the ledger.", ()),
    "steward_metrics_timestamp_seconds": Metric(_GAUGE, "When these metrics were made.", ()),
}
"""All metrics, without the suffix `_total` of exported counters."""


def exposition(
    counts: LedgerCounts,
    snapshots: Mapping[str, SnapshotSummary | None],
    troubles: Mapping[str, Sequence[TroubleReport]],
    now: datetime,
    *,
    openmetrics: bool = False,
) -> bytes:
    """The metrics as text.

    Args:
        counts: Of the ledger.
        snapshots: Summary of each cluster's newest diagnosed snapshot; None: there is no readable one.
        troubles: Troubles of these snapshots, by cluster.
        now: Current time.
        openmetrics: True: in that format.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(counts, snapshots, troubles, now))
    text: bytes = (openmetrics_exposition.generate_latest if openmetrics else generate_latest)(registry)
    return text


class _Collected:
    """Collector of these metrics, in the form that `prometheus_client` needs."""

    def __init__(
        self,
        counts: LedgerCounts,
        snapshots: Mapping[str, SnapshotSummary | None],
        troubles: Mapping[str, Sequence[TroubleReport]],
        now: datetime,
    ) -> None:
        self._families = {
            name: metric.kind(name, metric.words, labels=metric.labels) for name, metric in METRICS.items()
        }
        self._add("steward_metrics_timestamp_seconds", now.timestamp())
        self._add("steward_ledger_rows", counts.rows)
        self._time("steward_ledger_newest_row_timestamp_seconds", counts.newest_row)
        for cluster in sorted(snapshots):
            self._snapshot(cluster, snapshots[cluster])
            if cluster in troubles:
                harms = Counter(each.harm for each in pressing(troubles[cluster]))
                for harm in Harm:
                    self._add("steward_troubles", harms[harm], cluster, harm.label)
            if cluster in counts.clusters:
                self._ledger(cluster, counts.clusters[cluster])

    def collect(self) -> Iterator[Any]:
        """All families, with their samples."""
        yield from self._families.values()

    def _add(self, name: str, value: float, *labels: str) -> None:
        self._families[name].add_metric(list(labels), value)

    def _time(self, name: str, moment: datetime | None, *labels: str) -> None:
        if moment is not None:
            self._add(name, moment.timestamp(), *labels)

    def _snapshot(self, cluster: str, summary: SnapshotSummary | None) -> None:
        self._add("steward_snapshot_readable", summary is not None, cluster)
        if summary is None:
            return
        self._time("steward_snapshot_timestamp_seconds", summary.meta.taken_at, cluster)
        self._add("steward_snapshot_unread", len(summary.meta.unread), cluster)
        self._add("steward_brokers", summary.brokers, cluster)
        self._add("steward_topics", summary.topics, cluster)
        self._findings(cluster, summary)

    def _findings(self, cluster: str, summary: SnapshotSummary) -> None:
        checks = checks_of(summary.meta.system)
        labels = (*checks, OTHER)
        found: Counter[tuple[str, str]] = Counter()
        oldest: dict[tuple[str, str], datetime] = {}
        for (check_id, severity), each in summary.found.items():
            key = (_known(check_id, labels), severity.value)
            found[key] += each.count
            if each.since is not None:
                oldest[key] = min(oldest.get(key, each.since), each.since)
        verdicts = {_known(each.check_id, labels): each for each in summary.verdicts}
        judged = {_known(each.check_id, labels) for each in summary.verdicts if each.outlook is not Outlook.UNKNOWN}
        for check in labels:
            for severity in Severity:
                key = (check, severity.value)
                if check in judged or key in found:
                    self._add("steward_findings", found[key], cluster, *key)
                self._time("steward_finding_oldest_timestamp_seconds", oldest.get(key), cluster, *key)
        for check in checks_of(
            summary.meta.system
        ):  # a check without a verdict did not run: the snapshot is of another version
            verdict = verdicts.get(check)
            unknown = verdict is None or verdict.outlook is Outlook.UNKNOWN
            self._add("steward_check_unknown", unknown, cluster, check)
            self._add("steward_findings_not_listed", verdict.more if verdict else 0, cluster, check)

    def _ledger(self, cluster: str, counts: ClusterCounts) -> None:
        self._add("steward_plans", counts.plans, cluster)
        self._questions(cluster, counts)
        self._sums("steward_questions_silent", cluster, counts.silent, NOES)
        self._sums("steward_answers", cluster, counts.answers, Decision)
        self._sums("steward_steps", cluster, counts.outcomes, Outcome)
        for label in KIND_LABELS:
            unused = sum(number for kind, number in counts.approved.items() if _known(kind, KIND_LABELS) == label)
            self._add("steward_approvals_unused", unused, cluster, label)
        self._histogram("steward_answer_seconds", cluster, counts.answer_seconds, ANSWER_BUCKETS)
        self._histogram("steward_batch_seconds", cluster, counts.batch_seconds, BATCH_BUCKETS)
        self._add("steward_batch_running", counts.running is not None, cluster)
        self._add("steward_calls_without_outcome", counts.without_outcome, cluster)
        self._time("steward_call_without_outcome_oldest_timestamp_seconds", counts.oldest_without_outcome, cluster)
        for level in Level:
            self._add("steward_health_after_steps", counts.health.get(level.value, 0), cluster, level.value)
        self._add("steward_halted", counts.halt is not None, cluster)
        self._time("steward_halted_timestamp_seconds", counts.halt.at if counts.halt else None, cluster)

        for state in OVER:
            self._add("steward_messages", counts.messages.ended.get(state.value, 0), cluster, state.value)
        self._add("steward_messages_pending", counts.messages.pending, cluster)
        self._time("steward_message_oldest_timestamp_seconds", counts.messages.oldest_pending, cluster)

    def _questions(self, cluster: str, counts: ClusterCounts) -> None:
        for kind in KIND_LABELS:
            unasked = [each for each in counts.unasked if _known(each.kind, KIND_LABELS) == kind]
            self._add("steward_questions_not_asked", len(unasked), cluster, kind)
            since = min((each.since for each in unasked), default=None)
            self._time("steward_question_not_asked_oldest_timestamp_seconds", since, cluster, kind)
            waiting = [each for each in counts.waiting if _known(each.kind, KIND_LABELS) == kind]
            self._add("steward_questions_waiting", len(waiting), cluster, kind)
            oldest = min((each.asked_at for each in waiting), default=None)
            first = min((each.ends_at for each in waiting), default=None)
            self._time("steward_question_oldest_timestamp_seconds", oldest, cluster, kind)
            self._time("steward_question_ends_timestamp_seconds", first, cluster, kind)

    def _sums(
        self, name: str, cluster: str, sums: Mapping[tuple[str, str], int], values: Iterable[Decision | Outcome]
    ) -> None:
        found: Counter[tuple[str, str]] = Counter()
        for (kind, value), number in sums.items():
            found[_known(kind, KIND_LABELS), value] += number
        labels = [each.value for each in values]
        for kind in KIND_LABELS:
            for value in labels:
                self._add(name, found[kind, value], cluster, kind, value)

    def _histogram(self, name: str, cluster: str, seconds: Sequence[float], bounds: Sequence[int]) -> None:
        counts = Counter(bisect_left(bounds, each) for each in seconds)
        cumulated = accumulate(counts[place] for place in range(len(bounds) + 1))
        buckets = list(zip([*(str(float(bound)) for bound in bounds), "+Inf"], cumulated, strict=True))
        self._families[name].add_metric([cluster], buckets, sum_value=sum(seconds))


def _known(value: str, labels: Sequence[str]) -> str:
    return value if value in labels else OTHER
