"""Check-ups of several clusters as one document: the worst first, and what they have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal, Self

import msgspec
from msgspec import Meta

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.health import ClusterHealth
from pulsar_steward.model.trouble import Harm
from pulsar_steward.planners.clusters.replication import Link, links_between
from pulsar_steward.report.checkup.compose import steward_version
from pulsar_steward.report.checkup.document import FLEET, VERSION, Checkup, CheckupOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.planners.clusters.replication import ReplicationEnd
    from pulsar_steward.report.checkup.document import TroubleReport

LEAST_CLUSTERS = 2
"""Number of clusters from which something is told as common to them."""

REPLICATION = "replication-stopped"
"""Check whose findings at both ends of a link are one trouble."""

MAX_VALUES = 3
"""Number of versions and of regions that are told: those of most clusters."""


class FleetCluster(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster of a fleet."""

    cluster: Annotated[str, Meta(description="its name in the file, or in Airflow's connection")]
    region: Annotated[str | None, Meta(description="as the file or the connection says; null: it says none")]
    health: Annotated[ClusterHealth, Meta(description="by the same rule as on Steward's pages")]
    outcome: Annotated[CheckupOutcome, Meta(description="that of its check-up; could not look: there is none")]
    could_not_look: Annotated[str, Meta(description="why there is no check-up, with the remedy; empty: there is one")]
    checkup: Checkup | None
    also: Annotated[tuple[str, ...], Meta(description="further names of the same cluster, which counts once")]
    alike: Annotated[
        tuple[str, ...], Meta(description="further clusters that call themselves the same; each counts by itself")
    ]
    at_links: Annotated[
        tuple[str, ...], Meta(description="ids of its troubles that are told once, at a link with another cluster")
    ]

    @classmethod
    def of(cls, cluster: str, region: str | None, result: Checkup | str) -> Self:
        """A cluster with its check-up, or with the reason why there is none."""
        made, reason, outcome, health = None, "", CheckupOutcome.COULD_NOT_LOOK, ClusterHealth.UNKNOWN
        if isinstance(result, str):
            reason = result
        else:
            made, outcome, counts = result, result.outcome, result.counts
            not_known = result.no_longer_judged or result.about.stale_seconds is not None
            known = result.about.complete and bool(counts.checks_clear) and not not_known
            health = ClusterHealth.of(critical=counts.critical, warning=counts.warning, known=known)
        return cls(
            cluster=cluster,
            region=region,
            health=health,
            outcome=outcome,
            could_not_look=reason,
            checkup=made,
            also=(),
            alike=(),
            at_links=(),
        )

    @property
    def troubles(self) -> tuple[TroubleReport, ...]:
        """Troubles that are more than information, the worst first, without those that are told at a link."""
        told = self.checkup.troubles if self.checkup else ()
        return tuple(each for each in told if each.trouble_id not in self.at_links)

    @property
    def found(self) -> tuple[object, ...] | None:
        """Results of its look without times, sizes and its own name, to compare; None: it did not see all."""
        made = self.checkup
        if made is None or not made.about.complete:
            return None
        troubles = frozenset(
            (each.trouble_id, each.severity, each.affected, each.found, frozenset(each.subjects) - {self.cluster})
            for each in made.every_trouble
        )
        no_longer = frozenset((each.check_id, each.severity) for each in made.no_longer_judged)
        return self.outcome, self.health, made.counts, troubles, no_longer

    @property
    def urgency(self) -> tuple[int, bool, int, int, int, str]:
        """Place among clusters: health, no check-up before a partial one, the worst harm, numbers of findings, name."""
        if self.checkup is None:
            return self.health.rank, False, 0, 0, 0, self.cluster
        harm, counts = Harm.worst_rank(each.harm for each in self.checkup.troubles), self.checkup.counts
        return self.health.rank, True, harm, -counts.critical, -counts.warning, self.cluster

    @property
    def traits(self) -> dict[str, tuple[str, ...]]:
        """Facts that clusters may have in common, by their kind, in words."""
        about = self.checkup.about if self.checkup else None
        return {
            "region": (f"region {self.region}",) if self.region else (),
            "store": (f"one configuration store ({about.configuration_store_id})",)
            if about and about.configuration_store_id
            else (),
            "brokers": (f"brokers run {about.pulsar_version or about.runs}",) if about else (),
            "clients": tuple(f"clients say {each}" for each in about.client_versions) if about else (),
        }


class InCommon(msgspec.Struct, frozen=True, kw_only=True):
    """A trouble, a version or a region of several clusters."""

    words: str
    check_id: Annotated[str | None, Meta(description="the check that found the cause; null: it is no trouble")] = None
    severity: Annotated[Severity | None, Meta(description="of the worst of these troubles; null likewise")] = None
    clusters: Annotated[tuple[str, ...], Meta(description="the worst first")]
    shared: Annotated[
        tuple[str, ...],
        Meta(description="of a trouble: versions and regions that few others have"),
    ]


class FleetCheckup(msgspec.Struct, frozen=True, kw_only=True):
    """Check-ups of several clusters."""

    format: Literal["pulsar-steward/fleet-checkup"]
    version: Annotated[Literal[2], Meta(description="rises when a field goes or changes its meaning")]
    steward_version: str
    outcome: Annotated[CheckupOutcome, Meta(description="the worst of all clusters")]
    clusters: Annotated[tuple[FleetCluster, ...], Meta(description="the worst first")]
    in_common: Annotated[tuple[InCommon, ...], Meta(description="troubles, versions and regions, information")]
    links: Annotated[tuple[Link, ...], Meta(description="replication between two of them, as both ends tell it")]


def fleet_checkup(clusters: Iterable[FleetCluster], ends: Sequence[ReplicationEnd] = ()) -> FleetCheckup:
    """The document.

    Args:
        clusters: The clusters, one or more.
        ends: Those that were looked at, as ends of replication.
    """
    ordered = tuple(sorted(clusters, key=lambda each: each.urgency))
    links = links_between(ends, [each.cluster for each in ordered if each.checkup is None])
    cut = list(_cut_links(ordered, links, {each.pulsar_name: each.name for each in ends}))
    ordered = _joined(ordered, cut)
    troubles = [*(each for each, _ in cut), *_troubles(ordered)]
    return FleetCheckup(
        format=FLEET,
        version=VERSION,
        steward_version=steward_version(),
        outcome=max((each.outcome for each in ordered), key=lambda each: each.exit_code),
        clusters=ordered,
        in_common=(
            *(each for each in troubles if each.severity is not Severity.INFO),
            *_traits(ordered),
            *(each for each in troubles if each.severity is Severity.INFO),
        ),
        links=links,
    )


Joined = Mapping[str, frozenset[str]]
"""By cluster, the ids of the troubles that a link explains."""


def _cut_links(
    clusters: Sequence[FleetCluster], links: Sequence[Link], names: Mapping[str, str]
) -> Iterator[tuple[InCommon, Joined]]:
    """Troubles of links between two clusters, whichever end has found them, with the troubles that they explain."""
    by_pair: defaultdict[frozenset[str], list[Link]] = defaultdict(list)
    for link in links:
        by_pair[frozenset((link.sender, link.receiver))].append(link)
    held = [(each.cluster, trouble) for each in clusters if each.checkup for trouble in each.checkup.every_trouble]
    for pair, both in by_pair.items():
        found: defaultdict[str, dict[str, Severity]] = defaultdict(dict)
        for cluster, trouble in held:
            # A trouble of several links is no single link's: it stays with its cluster.
            ends = {subject.rpartition(" to ")[2] for subject in trouble.subjects}
            if trouble.check_ids[0] == REPLICATION and {cluster, *(names.get(it, it) for it in ends)} == pair:
                found[cluster][trouble.trouble_id] = trouble.severity
        stopped = [each for each in both if each.is_cut or each.sender in found]
        if not stopped:
            continue
        severities = [each for by_id in found.values() for each in by_id.values()]
        severities += [Severity.WARNING] if any(each.is_cut for each in both) else []
        is_cut = any(each.is_cut for each in stopped)
        who = tuple(each.cluster for each in clusters if each.cluster in pair)
        words = "is cut" if is_cut else "stands still or falls behind"
        common = InCommon(
            words=f"replication between {' and '.join(sorted(pair))} {words}: {'; '.join(it.words for it in stopped)}",
            check_id=REPLICATION,
            severity=max(severities, key=lambda each: each.rank),
            clusters=who,
            shared=(),
        )
        yield common, {cluster: frozenset(ids) for cluster, ids in found.items()}


def _joined(clusters: Sequence[FleetCluster], cut: Iterable[tuple[InCommon, Joined]]) -> tuple[FleetCluster, ...]:
    """The clusters, each with the troubles that are told at a link."""
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for _, joined in cut:
        for cluster, of_link in joined.items():
            ids[cluster] |= of_link
    return tuple(msgspec.structs.replace(each, at_links=tuple(sorted(ids[each.cluster]))) for each in clusters)


def _troubles(clusters: Sequence[FleetCluster]) -> list[InCommon]:
    """Causes that several clusters have, the worst harm first, then those of most clusters."""
    found: defaultdict[str, dict[str, TroubleReport]] = defaultdict(dict)
    for each in clusters:
        for trouble in reversed(each.checkup.every_trouble if each.checkup else ()):  # the worst of a cause is kept
            if trouble.trouble_id not in each.at_links:
                found[trouble.check_ids[0]][each.cluster] = trouble
    holders = {words: who for of_kind in _holders(clusters).values() for words, who in of_kind.items()}
    looked = sum(each.checkup is not None for each in clusters)
    made = []
    for check_id, met in found.items():
        if len(met) < LEAST_CLUSTERS:
            continue
        worst = min(met.values(), key=lambda each: (each.harm.rank, -each.severity.rank))
        # Few of many that run a version are no pattern: more than half of these have to be met.
        shared = [
            words for words, who in holders.items() if met.keys() <= who.keys() and len(who) < min(looked, 2 * len(met))
        ]
        severity = max((each.severity for each in met.values()), key=lambda each: each.rank)
        common = InCommon(
            words=worst.headline, check_id=check_id, severity=severity, clusters=tuple(met), shared=tuple(shared)
        )
        made.append(((worst.harm.rank, -severity.rank, -len(met), check_id), common))
    return [common for _, common in sorted(made, key=lambda each: each[0])]


def _traits(clusters: Sequence[FleetCluster]) -> list[InCommon]:
    """Versions and regions that several clusters have, of each kind those of most clusters."""
    return [
        InCommon(words=words, clusters=tuple(who), shared=())
        for of_kind in _holders(clusters).values()
        for words, who in sorted(of_kind.items(), key=lambda each: (-len(each[1]), each[0]))[:MAX_VALUES]
        if len(who) >= LEAST_CLUSTERS
    ]


def _holders(clusters: Sequence[FleetCluster]) -> Mapping[str, Mapping[str, Mapping[str, None]]]:
    """Clusters of each trait, by its kind and its words, the worst cluster first."""
    found: defaultdict[str, defaultdict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for each in clusters:
        for kind, values in each.traits.items():
            for words in values:
                found[kind][words][each.cluster] = None
    return found
