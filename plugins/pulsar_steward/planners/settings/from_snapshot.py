"""Facts of settings, read from a snapshot and earlier ones, only for namespaces and topics with findings.

Functions of a snapshot raise `SnapshotError` if a table cannot be read.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.growth import Rise
from pulsar_steward.checks.backlog.quota_settings import TTL_BEFORE_QUOTA, TtlFigures
from pulsar_steward.checks.backlog.quotas import FILTERS, INTERVAL, NO_FILTERS
from pulsar_steward.checks.backlog.retention import RETENTION_TOO_SHORT, RetentionFigures
from pulsar_steward.decoding import decode
from pulsar_steward.errors import SnapshotError
from pulsar_steward.facts.backlogs import BacklogAges
from pulsar_steward.model.broker_defaults import COMPACTION_BYTES, KEYS, broker_defaults
from pulsar_steward.model.measures import DELAYED_SERIES
from pulsar_steward.model.setting import SettingName
from pulsar_steward.model.topics import PARTITION_END, SEGMENT, partitioned_topic
from pulsar_steward.planners.settings.facts import (
    LIMITED,
    MAX_BACKLOGS,
    BacklogSample,
    FullTopic,
    NamespaceFact,
    TopicSettings,
    backlog_ages,
    largest_backlogs,
    topic_quotas,
)
from pulsar_steward.planners.settings.filling import Filling, fillings
from pulsar_steward.planners.settings.namespaces import DELAYS, PERSISTENCE
from pulsar_steward.planners.settings.nearly_full import NEARLY_FULL
from pulsar_steward.planners.settings.targets import ANSWERED, is_of_topic, may_need_more, namespace_of
from pulsar_steward.pulsar.own_settings import NamespaceDocument, defaults_in, own_settings_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pulsar_steward.checks.check import Check
    from pulsar_steward.facts.backlogs import Backlog
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.snapshots.read import Snapshot

CHECKS_OF_SETTINGS = ANSWERED | NEARLY_FULL.answers | DELAYS.answers | PERSISTENCE.answers
"""Checks whose findings need the settings of their namespace."""

LOOK_BACK = 12
"""Number of earlier snapshots whose backlogs are read."""

_LOOKS = f"""
    select namespace, {{'taken_at': taken_at, 'topics': count(topic),
            'backlogs': coalesce(max(backlog_bytes, {MAX_BACKLOGS}), []),
            'producers': coalesce(arg_max(coalesce(producers, 0), backlog_bytes, {MAX_BACKLOGS}), [])}} as sample,
        case when count_if(topic is not null and throughput_in_bytes is null) = 0
            then coalesce(max(throughput_in_bytes), 0) end as busiest_bytes_per_second,
        coalesce(sum(storage_bytes), 0)::bigint as stored_bytes,
        coalesce(sum(greatest(coalesce(storage_bytes, 0) - coalesce(backlog_bytes, 0), 0)), 0)::bigint as consumed_bytes
    from snapshot cross join (select unnest($names) as namespace) left join ({LIMITED}) using (look, namespace)
    group by namespace, look, taken_at order by look"""

_POINTS = f"""
    select namespace, topic, taken_at, backlog_bytes, throughput_in_bytes from ({LIMITED}) join snapshot using (look)
    where topic in (select unnest($topics)) and backlog_bytes is not null order by look desc"""

_OWN = """
    select distinct topic, namespace, coalesce(topic_quota_json, '{}') as quota,
        coalesce(topic_retention_json, '{}') as retention
    from drilled where topic in (select unnest($topics)) order by all"""


class _Own(msgspec.Struct, frozen=True):
    """Settings that a topic sets itself, as JSON."""

    topic: str
    namespace: str
    quota: str
    retention: str


_PEAKS = f"""
    select base as topic, coalesce(max(backlog_bytes), 0) as bytes,
        case when count_if(look = 0 and throughput_in_bytes is null) = 0
            then coalesce(max(throughput_in_bytes) filter (look = 0), 0) end as busiest_bytes_per_second
    from (select *, regexp_replace(topic, '{PARTITION_END}', '') as base from topics
        where namespace in (select unnest($names)))
    where base in (select unnest($topics)) group by base"""

_DELAYED = """
    select namespace, case when (select count(*) from metrics where series = $series) > 0
            then coalesce(sum(messages), 0)::bigint end as messages,
        coalesce(list({'topic': topic, 'messages': messages} order by topic) filter (messages > 0), []) as topics
    from (select unnest($names) as namespace) left join (select namespace_of(topic) as namespace, topic,
            sum(value)::bigint as messages from metrics
        where series = $series and starts_with(topic, 'persistent://') group by topic) using (namespace)
    group by namespace"""


_SCALABLE = f"""
    select namespace,
        list_sort(list(distinct 'topic' || regexp_extract(topic, '^segment(://.*)/[^/]+$', 1))) as topics
    from topics where namespace in (select unnest($names)) and starts_with(topic, '{SEGMENT}') group by namespace"""


class _Scalable(msgspec.Struct, frozen=True):
    """Scalable topics of a namespace by the segments that are loaded."""

    namespace: str
    topics: tuple[str, ...]


class _Look(msgspec.Struct, frozen=True):
    """Topics of a namespace in one snapshot; its sums are used for the newest snapshot only."""

    namespace: str
    sample: BacklogSample
    busiest_bytes_per_second: float | None
    stored_bytes: int
    consumed_bytes: int


def namespace_facts(snapshot: Snapshot, findings: Iterable[Finding]) -> tuple[NamespaceFact, ...]:
    """Facts of the namespaces with findings about settings, by name."""
    everything = tuple(findings)
    findings = [finding for finding in everything if finding.check_id in CHECKS_OF_SETTINGS]
    names = sorted({namespace_of(finding) for finding in findings})
    if not names:
        return ()
    known, before = own_policies(snapshot, names), snapshot.earlier(LOOK_BACK)
    looks: defaultdict[str, list[_Look]] = defaultdict(list)
    for look in snapshot.select(_LOOKS, _Look, before, names=names):
        looks[look.namespace].append(look)
    backlogs, ages = largest_backlogs(snapshot, names), backlog_ages(snapshot, names)
    own_quotas, delayed = topic_quotas(snapshot, names), _delayed(snapshot, names)
    full, compaction = _full(findings, snapshot, before), _compaction_bytes(snapshot)
    filling = fillings(snapshot, backlogs, everything)
    scalable = {row.namespace: row.topics for row in snapshot.select(_SCALABLE, _Scalable, names=names)}
    return tuple(
        NamespaceFact(
            namespace=name,
            own=known[name].settings,
            looks=tuple(look.sample for look in looks[name]),
            busiest_bytes_per_second=looks[name][0].busiest_bytes_per_second,
            stored_bytes=looks[name][0].stored_bytes,
            consumed_bytes=looks[name][0].consumed_bytes,
            backlogs=tuple(backlogs.get(name, ())),
            ages=ages.get(name, BacklogAges()),
            outgrown=_outgrown(findings, name),
            age_quota_delay_seconds=_delay(findings, name),
            delayed_messages=delayed[name].messages,
            delayed_topics={each.topic: each.messages for each in delayed[name].topics},
            topic_quotas=own_quotas.get(name, (0, 0)),
            full=tuple(full.get(name, ())),
            clusters=tuple(sorted(known[name].clusters)),
            scalable=scalable.get(name, ()),
            compaction_bytes=compaction(known[name]),
            filling=filling.get(name, Filling()),
        )
        for name in names
        if name in known
    )


class _Point(msgspec.Struct, frozen=True):
    """Backlog of a topic at a time, and its inflow."""

    namespace: str
    topic: str
    taken_at: datetime
    backlog_bytes: int
    throughput_in_bytes: float | None


def _full(findings: Iterable[Finding], snapshot: Snapshot, before: Sequence[Snapshot]) -> dict[str, list[FullTopic]]:
    """Topics with findings about full topics, with their growth, by namespace."""
    full: defaultdict[str, list[FullTopic]] = defaultdict(list)
    named = [each for each in findings if each.check_id in NEARLY_FULL.answers]
    if not named:
        return full
    points: defaultdict[tuple[str, str], list[_Point]] = defaultdict(list)
    names, topics = sorted({namespace_of(each) for each in named}), sorted({each.subject for each in named})
    for point in snapshot.select(_POINTS, _Point, before, names=names, topics=topics):
        points[point.namespace, point.topic].append(point)
    now = snapshot.meta().taken_at
    for (namespace, topic), seen in sorted(points.items()):
        if seen[-1].taken_at == now:
            rise = Rise.of({point.taken_at: point.backlog_bytes for point in seen})
            incoming = seen[0].throughput_in_bytes or 0.0
            full[namespace].append(_growing(topic, rise, incoming if len(seen) == 1 else 0.0))
    return full


def _growing(topic: str, rise: Rise, incoming: float) -> FullTopic:
    """A topic with its mean growth since the lowest point: 0 if it is lowest now; the inflow if it has no history."""
    seconds = int((rise.now_at - rise.low_at).total_seconds())
    return FullTopic(
        topic=topic,
        backlog_bytes=rise.now_bytes,
        bytes_per_second=(rise.now_bytes - rise.low_bytes) / seconds if seconds else incoming,
        seconds=seconds,
    )


def _outgrown(findings: Iterable[Finding], name: str) -> tuple[int, int]:
    """Bytes and age in seconds of the worst backlogs that exceed a namespace's retention."""
    found = [RetentionFigures.of(each) for each in _of_namespace(findings, name, RETENTION_TOO_SHORT)]
    largest = max((each.backlog_bytes or 0 for each in found), default=0)
    return largest, max((each.oldest_backlog_age_seconds or 0 for each in found), default=0)


def _delay(findings: Iterable[Finding], name: str) -> int:
    """Maximum delay of a namespace's age quota, in seconds."""
    found = [TtlFigures.of(each) for each in _of_namespace(findings, name, TTL_BEFORE_QUOTA)]
    return max((each.age_quota_delay_seconds or 0 for each in found), default=0)


def _of_namespace(findings: Iterable[Finding], name: str, check: Check) -> list[Finding]:
    """A check's findings in a namespace."""
    return [each for each in findings if each.check_id == check.check_id and namespace_of(each) == name]


def topic_facts(snapshot: Snapshot, findings: Iterable[Finding]) -> tuple[TopicSettings, ...]:
    """Facts of the topics with settings of their own and findings about settings, by name."""
    findings = tuple(findings)
    names = sorted({each.subject for each in findings if is_of_topic(each) or may_need_more(each)})
    if not names:
        return ()
    apart = {each.subject for each in findings if is_of_topic(each)}
    rows = snapshot.select(_OWN, _Own, topics=names)
    drilled = {row.topic: row for row in rows if row.topic in apart or row.retention != "{}"}
    if not drilled:
        return ()
    namespaces = sorted({row.namespace for row in drilled.values()})
    of_namespaces, defaults = own_policies(snapshot, namespaces), defaults_of(snapshot)
    before = snapshot.earlier(LOOK_BACK)
    topics = sorted({partitioned_topic(name) for name in drilled})
    seen = {each.topic: each for each in snapshot.select(_PEAKS, _Peak, before, names=namespaces, topics=topics)}
    delayed, compaction = _delayed(snapshot, namespaces), _compaction_bytes(snapshot)
    backlogs: defaultdict[str, list[Backlog]] = defaultdict(list)
    for largest in largest_backlogs(snapshot, namespaces).values():
        for each in largest:
            if partitioned_topic(each.topic) in topics:
                backlogs[partitioned_topic(each.topic)].append(each)
    filling = fillings(snapshot, backlogs, findings)
    return tuple(
        TopicSettings(
            subject=name,
            topic=(base := partitioned_topic(name)),
            namespace=row.namespace,
            own=own_settings_in(row.quota, row.retention),
            inherited={**defaults, **(of := of_namespaces.get(row.namespace, NamespaceDocument())).settings},
            peak=(peak := seen.get(base, _Peak(topic=base))).bytes,
            snapshots=1 + len(before),
            busiest_bytes_per_second=peak.busiest_bytes_per_second,
            delayed_messages=delayed[row.namespace].messages,
            backlogs=tuple(backlogs[base]),
            compaction_bytes=compaction(of),
            filling=filling.get(base, Filling()),
        )
        for name, row in sorted(drilled.items())
    )


class _Peak(msgspec.Struct, frozen=True):
    """Largest figures of a topic, or of one of its partitions."""

    topic: str
    bytes: int = 0
    busiest_bytes_per_second: float | None = 0.0


def defaults_of(snapshot: Snapshot) -> dict[SettingName, Setting]:
    """The most frequent values of brokers, used if a namespace sets nothing; unknown and unlimited ones are absent.

    The persistence is absent too where brokers differ: what most have would be fewer copies for topics of the others.
    """
    usual = defaults_in(snapshot.usual_settings(KEYS))
    told: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in snapshot.configuration(KEYS):
        told[row.broker][row.key] = row.value or ""
    persistences = {defaults_in(each).get(SettingName.PERSISTENCE) for each in told.values()}
    if len(persistences) > 1:
        usual.pop(SettingName.PERSISTENCE, None)
    return usual


def _compaction_bytes(snapshot: Snapshot) -> Callable[[NamespaceDocument], int]:
    """Compaction threshold in force in a namespace with these policies."""
    usual = broker_defaults(snapshot.usual_settings((COMPACTION_BYTES,))).compaction_bytes or 0
    return lambda policies: usual if policies.compaction_threshold is None else policies.compaction_threshold


def quotas_are_checked(snapshot: Snapshot) -> bool | None:
    """True if every broker that was read checks backlog quotas; None: unknown for one of them."""
    told = [row.value for row in snapshot.configuration(["backlogQuotaCheckEnabled"])]
    brokers = sum(row.read for row in snapshot.brokers())
    if not told or None in told or len(told) < brokers:
        return None
    return all(value == "true" for value in told)


def backlog_caveats(snapshot: Snapshot) -> tuple[str, ...]:
    """Reasons in the brokers' settings why figures of backlogs are not exact, in sentences without their full stops."""
    told: dict[str, set[str]] = {}
    for row in snapshot.configuration([INTERVAL, FILTERS]):
        if row.value is not None:
            told.setdefault(row.key, set()).add(row.value)
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
    """Difference between the clocks of the brokers furthest ahead and behind; None: unknown for one of them."""
    told = [row.clock_skew_milliseconds for row in snapshot.brokers() if row.read]
    known = [each for each in told if each is not None]
    return max(known) - min(known) if known and len(known) == len(told) else None


class _DelayedTopic(msgspec.Struct, frozen=True):
    topic: str
    messages: int


class _Delayed(msgspec.Struct, frozen=True):
    """Delayed messages of a namespace; None: brokers' metrics have no topic metrics."""

    namespace: str
    messages: int | None
    topics: tuple[_DelayedTopic, ...]


def _delayed(snapshot: Snapshot, names: Sequence[str]) -> dict[str, _Delayed]:
    return {row.namespace: row for row in snapshot.select(_DELAYED, _Delayed, names=names, series=DELAYED_SERIES)}


def own_policies(snapshot: Snapshot, names: Sequence[str]) -> dict[str, NamespaceDocument]:
    """Policies that namespaces set themselves, without namespaces whose policies could not be read.

    Raises:
        SnapshotError: If the table cannot be read, or has policies of another shape.
    """
    try:
        told = {row.namespace: row.policies_json for row in snapshot.namespaces(names)}
        return {name: decode(text, NamespaceDocument) for name, text in told.items() if text is not None}
    except msgspec.DecodeError as error:
        raise SnapshotError(f"{snapshot.uri}: the policies of a namespace are of another shape: {error}") from error
