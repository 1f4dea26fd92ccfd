"""Facts of settings, read from a snapshot and those before it: only of namespaces and topics with findings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.admin.own_settings import NamespaceDocument, defaults_in, own_settings_in
from pulsar_steward.checks.backlog.growth import Rise
from pulsar_steward.checks.backlog.precision import FILTERS, NO_FILTERS
from pulsar_steward.checks.backlog.quota_check_disabled import INTERVAL
from pulsar_steward.checks.backlog.retention_too_short import CHECK as RETENTION_TOO_SHORT
from pulsar_steward.checks.backlog.ttl_before_quota import CHECK as TTL_BEFORE_QUOTA
from pulsar_steward.errors import SnapshotError
from pulsar_steward.model.series import DELAYED_SERIES
from pulsar_steward.model.tables import BROKERS, CONFIGURATION, DRILLED, METRICS, NAMESPACES, TOPICS
from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.planners.settings.backlogs import (
    backlogs_of,
    consumed_bytes,
    drilled_ages,
    namespace_ages,
    topic_quotas,
    waiting_subscriptions,
)
from pulsar_steward.planners.settings.delays import PLANNER as DELAYS
from pulsar_steward.planners.settings.facts import MAX_BACKLOGS, BacklogSample, FullTopic, NamespaceFact, TopicSettings
from pulsar_steward.planners.settings.nearly_full import PLANNER as NEARLY_FULL
from pulsar_steward.planners.settings.targets import ANSWERED, is_of_topic, may_need_more, namespace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import Check
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.setting import Setting, SettingName
    from pulsar_steward.snapshots.read import Snapshot


CHECKS_OF_SETTINGS = ANSWERED | NEARLY_FULL.answers | DELAYS.answers
"""Checks whose findings call for the settings of their namespace to be read."""

LOOK_BACK = 12
"""Number of earlier snapshots that backlogs are read from."""


class FindingFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of findings that remedies are calculated from; 0: the finding has no such figure.

    Attributes:
        backlog_bytes: Backlog of a topic, of `retention-too-short`.
        oldest_backlog_age_seconds: Age of that backlog, of `retention-too-short`.
        age_quota_delay_seconds: Time by which an age quota acts late, of `ttl-before-quota`.
    """

    backlog_bytes: int = 0
    oldest_backlog_age_seconds: int = 0
    age_quota_delay_seconds: int = 0


def namespace_facts(snapshot: Snapshot, findings: Iterable[Finding]) -> tuple[NamespaceFact, ...]:
    """Facts of the namespaces that findings about settings name, by name.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    findings = [finding for finding in findings if finding.check_id in CHECKS_OF_SETTINGS]
    names = sorted({namespace_of(finding) for finding in findings})
    if not names:
        return ()
    known = _documents(snapshot, names)
    looked = [(each.meta().taken_at, _topics(each, names)) for each in (snapshot, *snapshot.earlier(LOOK_BACK))]
    now = looked[0][1]
    delayed = snapshot.table(METRICS, ["topic", "value"], [("series", "=", DELAYED_SERIES)])
    subscriptions, drilled = waiting_subscriptions(snapshot, names), drilled_ages(snapshot, names)
    own_quotas = topic_quotas(snapshot, names)
    return tuple(
        NamespaceFact(
            namespace=name,
            own=known[name].settings,
            looks=tuple(_look(taken_at, _of(topics, name)) for taken_at, topics in looked),
            busiest_bytes_per_second=_most(_of(now, name)["throughput_in_bytes"]),
            stored_bytes=int(pc.sum(_of(now, name)["storage_bytes"]).as_py() or 0),
            consumed_bytes=consumed_bytes(_of(now, name)),
            backlogs=backlogs_of(_of(now, name), subscriptions, MAX_BACKLOGS),
            ages=namespace_ages(_of(now, name), drilled),
            outgrown=_outgrown(findings, name),
            age_quota_delay_seconds=_delay(findings, name),
            delayed_messages=_delayed(delayed, name),
            delayed_topics=_delayed_topics(delayed, name),
            topic_quotas=own_quotas.get(name, (0, 0)),
            full=_full(findings, name, looked),
            clusters=tuple(sorted(known[name].clusters)),
        )
        for name in names
        if name in known
    )


def _full(findings: Iterable[Finding], name: str, looked: Sequence[tuple[datetime, pa.Table]]) -> tuple[FullTopic, ...]:
    """The topics of a namespace that findings of full topics name, with their growth."""
    named = {each.subject for each in findings if each.check_id in NEARLY_FULL.answers and namespace_of(each) == name}
    if not named:
        return ()
    wanted = pa.array(sorted(named), pa.string())
    points: dict[str, dict[datetime, int]] = {}
    incoming: dict[str, float] = {}
    for taken_at, topics in reversed(looked):
        ours = topics.filter(pc.and_(pc.is_in(topics["topic"], wanted), pc.is_valid(topics["backlog_bytes"])))
        for row in ours.select(["topic", "backlog_bytes", "throughput_in_bytes"]).to_pylist():
            points.setdefault(row["topic"], {})[taken_at] = row["backlog_bytes"]
            incoming[row["topic"]] = row["throughput_in_bytes"] or 0.0
    now = looked[0][0]
    return tuple(
        _growing(topic, Rise.of(seen), incoming[topic] if len(seen) == 1 else 0.0)
        for topic, seen in sorted(points.items())
        if now in seen
    )


def _growing(topic: str, rise: Rise, incoming: float) -> FullTopic:
    """A topic with its mean growth since the lowest point: none where it is lowest now, and what comes in if first."""
    seconds = int((rise.now_at - rise.low_at).total_seconds())
    return FullTopic(
        topic=topic,
        backlog_bytes=rise.now_bytes,
        bytes_per_second=(rise.now_bytes - rise.low_bytes) / seconds if seconds else incoming,
        seconds=seconds,
    )


def _outgrown(findings: Iterable[Finding], name: str) -> tuple[int, int]:
    """Bytes and age in seconds of the worst backlogs that a namespace retains too little for."""
    found = _figures(findings, name, RETENTION_TOO_SHORT)
    largest = max((each.backlog_bytes for each in found), default=0)
    return largest, max((each.oldest_backlog_age_seconds for each in found), default=0)


def _delay(findings: Iterable[Finding], name: str) -> int:
    """Seconds by which a namespace's age quota may act late."""
    found = _figures(findings, name, TTL_BEFORE_QUOTA)
    return max((each.age_quota_delay_seconds for each in found), default=0)


def _figures(findings: Iterable[Finding], name: str, check: Check) -> list[FindingFigures]:
    """The figures of a check's findings in a namespace."""
    ours = [each for each in findings if each.check_id == check.check_id and namespace_of(each) == name]
    return [msgspec.convert(each.figures, FindingFigures) for each in ours]


def topic_facts(snapshot: Snapshot, findings: Iterable[Finding]) -> tuple[TopicSettings, ...]:
    """Facts of the topics with settings of their own that findings about settings name, by name.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    findings = tuple(findings)
    names = sorted({each.subject for each in findings if is_of_topic(each) or may_need_more(each)})
    if not names:
        return ()
    columns = ["topic", "namespace", "topic_quota_json", "topic_retention_json"]
    rows = snapshot.table(DRILLED, columns, [("topic", "in", names)]).to_pylist()
    apart = {each.subject for each in findings if is_of_topic(each)}
    drilled = {row["topic"]: row for row in rows if row["topic"] in apart or _retains_itself(row)}
    if not drilled:
        return ()
    namespaces = sorted({row["namespace"] for row in drilled.values()})
    of_namespaces, defaults = own_settings(snapshot, namespaces), defaults_of(snapshot)
    looks = [_backlogs(each, namespaces) for each in (snapshot, *snapshot.earlier(LOOK_BACK))]
    delayed = snapshot.table(METRICS, ["topic", "value"], [("series", "=", DELAYED_SERIES)])
    return tuple(
        TopicSettings(
            subject=name,
            topic=(base := partitioned_topic(name)),
            namespace=row["namespace"],
            own=own_settings_in(row["topic_quota_json"] or "{}", row["topic_retention_json"] or "{}"),
            inherited={**defaults, **of_namespaces.get(row["namespace"], {})},
            peak=int(max(_most_of(each, base, "backlog_bytes") for each in looks)),
            snapshots=len(looks),
            busiest_bytes_per_second=_most_of(looks[0], base, "throughput_in_bytes"),
            delayed_messages=_delayed(delayed, row["namespace"]),
        )
        for name, row in sorted(drilled.items())
    )


def _retains_itself(row: dict[str, str | None]) -> bool:
    return (row["topic_retention_json"] or "{}") != "{}"


def _backlogs(snapshot: Snapshot, namespaces: Sequence[str]) -> pa.Table:
    columns = ["topic", "backlog_bytes", "throughput_in_bytes"]
    return snapshot.table(TOPICS, columns, [("namespace", "in", namespaces)])


def _most_of(topics: pa.Table, name: str, column: str) -> float:
    """The largest value of a topic or its partitions; 0: not loaded."""
    ours = pc.or_(pc.equal(topics["topic"], name), pc.starts_with(topics["topic"], f"{name}-partition-"))
    return pc.max(topics.filter(ours)[column]).as_py() or 0


def defaults_of(snapshot: Snapshot) -> dict[SettingName, Setting]:
    """The values of most brokers where a namespace sets nothing; unknown ones, and those without a limit, are absent.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    counts: dict[str, Counter[str]] = {}
    for row in snapshot.table(CONFIGURATION, ["key", "value"]).to_pylist():
        if row["value"] is not None:
            counts.setdefault(row["key"], Counter())[row["value"]] += 1
    values = {key: min(found, key=lambda value: (-found[value], value)) for key, found in counts.items()}
    return defaults_in(values)


def quotas_are_checked(snapshot: Snapshot) -> bool | None:
    """True if every broker that was read checks backlog quotas; None: not known of one.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    told = snapshot.table(CONFIGURATION, ["value"], [("key", "=", "backlogQuotaCheckEnabled")])["value"].to_pylist()
    brokers = sum(row.read for row in snapshot.brokers())
    if not told or None in told or len(told) < brokers:
        return None
    return all(value == "true" for value in told)


def backlog_caveats(snapshot: Snapshot) -> tuple[str, ...]:
    """How exact the figures of backlogs are by the brokers' settings, in sentences without their full stops.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    told: dict[str, set[str]] = {}
    for row in snapshot.table(CONFIGURATION, ["key", "value"], [("key", "in", [INTERVAL, FILTERS])]).to_pylist():
        if row["value"] is not None:
            told.setdefault(row["key"], set()).add(row["value"])
    said = [
        (
            "Figures run from the oldest message that is not acknowledged, what is acknowledged behind it included, and"
            " are up to a minute old"
        )
    ]
    if intervals := told.get(INTERVAL):
        said.append(f"Brokers compare every {' or '.join(sorted(intervals, key=lambda each: (len(each), each)))} s")
    if filters := sorted(told.get(FILTERS, set()).difference(NO_FILTERS)):
        said.append(f"Entry filters are loaded ({', '.join(filters)}): what they filter counts as backlog")
    return tuple(said)


def clocks_differ_milliseconds(snapshot: Snapshot) -> int | None:
    """Difference between the broker's clock that is furthest ahead and the one furthest behind; None: not known of all.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    rows = snapshot.table(BROKERS, ["clock_skew_milliseconds"], [("read", "=", True)])["clock_skew_milliseconds"]
    if not len(rows) or rows.null_count:
        return None
    return int(pc.max(rows).as_py() - pc.min(rows).as_py())


def _delayed(samples: pa.Table, name: str) -> int | None:
    if not samples.num_rows:
        return None
    ours = samples.filter(pc.starts_with(samples["topic"], f"persistent://{name}/"))
    return int(pc.sum(ours["value"]).as_py() or 0)


def _delayed_topics(samples: pa.Table, name: str) -> dict[str, int]:
    """Delayed messages of all subscriptions together, by topic."""
    ours = samples.filter(
        pc.and_(pc.starts_with(samples["topic"], f"persistent://{name}/"), pc.greater(samples["value"], 0))
    )
    counts: Counter[str] = Counter()
    for row in ours.select(["topic", "value"]).to_pylist():
        counts[row["topic"]] += int(row["value"])
    return dict(sorted(counts.items()))


def own_settings(snapshot: Snapshot, names: Sequence[str]) -> dict[str, dict[SettingName, Setting]]:
    """Settings of namespaces themselves; without those whose policies could not be read.

    Raises:
        SnapshotError: If the table cannot be read, or holds policies of another shape.
    """
    return {name: document.settings for name, document in _documents(snapshot, names).items()}


def _documents(snapshot: Snapshot, names: Sequence[str]) -> dict[str, NamespaceDocument]:
    rows = snapshot.table(NAMESPACES, ["namespace", "policies_json"], [("namespace", "in", names)]).to_pylist()
    try:
        return {
            row["namespace"]: msgspec.json.decode(row["policies_json"], type=NamespaceDocument)
            for row in rows
            if row["policies_json"] is not None
        }
    except msgspec.DecodeError as error:
        raise SnapshotError(f"{snapshot.uri}: the policies of a namespace are of another shape: {error}") from error


def _topics(snapshot: Snapshot, names: Sequence[str]) -> pa.Table:
    """Topics of namespaces without Pulsar's own, such as ``__change_events``: their backlogs are nobody's."""
    columns = ["topic", "namespace", "producers", "backlog_bytes", "throughput_in_bytes", "storage_bytes"]
    topics = snapshot.table(TOPICS, columns, [("namespace", "in", names)])
    return topics.filter(pc.invert(pc.match_substring_regex(topics["topic"], "/__[^/]*$")))


def _of(topics: pa.Table, name: str) -> pa.Table:
    return topics.filter(pc.field("namespace") == name)


def _look(taken_at: datetime, topics: pa.Table) -> BacklogSample:
    known = topics.filter(pc.is_valid(topics["backlog_bytes"]))
    fullest = pc.select_k_unstable(known, min(MAX_BACKLOGS, len(known)), sort_keys=[("backlog_bytes", "descending")])
    largest = known.take(fullest)
    return BacklogSample(
        taken_at=taken_at,
        topics=topics.num_rows,
        backlogs=tuple(largest["backlog_bytes"].to_pylist()),
        producers=tuple(pc.fill_null(largest["producers"], 0).to_pylist()),
    )


def _most(column: pa.ChunkedArray) -> float:
    return float(pc.max(column).as_py() or 0.0)
