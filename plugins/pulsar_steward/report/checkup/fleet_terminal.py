"""A fleet's check-up as lines for a terminal: its state within 24 lines of 80 columns, then cluster by cluster."""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING

from rich.text import Text

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.health import ClusterHealth
from pulsar_steward.model.units import counted, named
from pulsar_steward.outside_text import shown
from pulsar_steward.report.checkup.terminal import MOST_TROUBLES, in_a_line
from pulsar_steward.report.checkup.text import STYLES, bullets, fitting, heading, numbered, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.planners.clusters.replication import Link
    from pulsar_steward.report.checkup.fleet import FleetCheckup, FleetCluster, InCommon

SCREEN = 24
"""Lines that tell the fleet's state."""

MOST_COMMON = 8
"""Lines of these for what several clusters have in common."""

LONGEST_NAME = 24
"""Columns at most that names of clusters are padded to; a longer name stays whole."""

MAX_UNREAD = 3
"""Number of unread brokers and namespaces of a cluster that are named; the table says how many brokers were read."""

MAX_LINKS = 10
"""Number of links that are told; --verbose and JSON have all."""

LEAST_WORDS = 20
"""Columns at least for what is wrong with a cluster."""

HEALTH_STYLES = {
    ClusterHealth.CRITICAL: "critical",
    ClusterHealth.UNKNOWN: "unknown",
    ClusterHealth.WARNING: "warning",
    ClusterHealth.HEALTHY: "clear",
}
HEALTH_COLUMNS = max(map(len, ClusterHealth)) + 2


def fleet_lines(fleet: FleetCheckup, source: str, width: int, *, verbose: bool = False) -> Iterator[Text]:
    """The report, line by line; verbose: with every cluster, every trouble and everything in common.

    Args:
        fleet: The check-ups.
        source: File or place that names the clusters.
        width: Columns.
        verbose: True: with every cluster, every trouble and all that is in common.
    """
    width, clusters = fitting(width), fleet.clusters
    style = HEALTH_STYLES[clusters[0].health]
    head = [
        *wrapped(f"Check-up of {counted(len(clusters), 'cluster')} of {source}", width, style="heading"),
        *wrapped(f"RESULT: {_tally(clusters)}", width, style=style),
        *(line for each in clusters for words in _twins(each) for line in wrapped(words, width, style="warning")),
        *heading("The worst first"),
    ]
    common = list(_in_common(fleet, width, verbose=verbose))
    yield from head
    yield from _table(clusters, width, len(clusters) if verbose else SCREEN - len(head) - len(common))
    yield from common
    yield from _links(fleet.links, width, verbose=verbose)
    yield from heading("Cluster by cluster")
    for each in clusters:
        if verbose or each.health is not ClusterHealth.HEALTHY:
            yield from _cluster(each, width, verbose=verbose)
    if not verbose and (healthy := [each.cluster for each in clusters if each.health is ClusterHealth.HEALTHY]):
        yield Text()
        yield from wrapped(f"Healthy: {', '.join(healthy)}", width, style="clear")
    yield Text()
    yield from wrapped("`steward checkup` of one cluster tells its findings, and what to do about each.", width)


def _twins(each: FleetCluster) -> Iterator[str]:
    if each.also:
        names = f"{each.cluster} and {named(each.also)}"
        yield f"{names} are the same cluster, which counts once: leave only one of the names in the fleet."
    if each.alike:
        names = f"{each.cluster} and {named(each.alike)}"
        yield f"{names} call themselves the same cluster: if they are, leave only one in the fleet."


def _tally(clusters: Sequence[FleetCluster]) -> str:
    numbers = Counter(each.health for each in clusters)
    words = {ClusterHealth.WARNING: "with warnings"}
    return ", ".join(f"{numbers[each]:,} {words.get(each, each.value)}" for each in ClusterHealth if numbers[each])


def _table(clusters: Sequence[FleetCluster], width: int, room: int) -> Iterator[Text]:
    """A line for each cluster, as many as there is room for; the others are counted in the last one."""
    listed = clusters if len(clusters) <= room else clusters[: room - 1]
    broad = min(max(len(shown(each.cluster)) for each in clusters), LONGEST_NAME) + 2
    for each in listed:
        before = Text.assemble((each.health.upper().ljust(HEALTH_COLUMNS), STYLES[HEALTH_STYLES[each.health]]))
        before.append(shown(each.cluster).ljust(broad))
        yield before.append(_cut(shown(_in_short(each)), max(width - len(before), LEAST_WORDS)))
    if more := clusters[len(listed) :]:
        yield Text(f"and {len(more):,} more below: {_tally(more)}")


def _cut(words: str, room: int) -> str:
    return words if len(words) <= room else f"{words[: room - 3].rstrip()}..."


_REQUEST = re.compile(r"^[A-Z]+ /\S+ at \S+: ")
"""The call that an error begins with: a line has only room for what came of it."""


def _in_short(each: FleetCluster) -> str:
    """The worst trouble of a cluster, or why it is not known whether it has one."""
    if each.checkup is None:
        # An error ends with its remedy, which a line has no room for behind the reason; both stand below.
        came_of, *why = _REQUEST.sub("", each.could_not_look).split("; ")
        return f"could not look: {'; '.join((came_of, *why[-1:]))}"
    about, troubles = each.checkup.about, each.troubles
    partial = "" if about.complete else f"partial ({about.brokers_read:,} of {counted(about.brokers, 'broker')} read): "
    if not troubles and each.at_links:
        return f"{partial}replication stands still: see its link, below"
    if troubles:
        more = f" and {counted(len(troubles) - 1, 'more trouble')}" if len(troubles) > 1 else ""
        return f"{partial}{troubles[0].headline}{more}: {troubles[0].where}"
    if no_longer := each.checkup.no_longer_judged:
        return f"{partial}{no_longer[0].words}"
    clear = counted(each.checkup.counts.checks_clear, "check")
    return f"{partial}nothing found, {clear} clear, {each.checkup.counts.checks_unknown:,} unknown"


def _in_common(fleet: FleetCheckup, width: int, *, verbose: bool) -> Iterator[Text]:
    if not fleet.in_common:
        return
    every = [list(wrapped(_of(each, fleet.clusters), width, first="  - ", indent=4)) for each in fleet.in_common]
    fit = sum(lines <= MOST_COMMON for lines in accumulate(map(len, every)))
    listed = every if verbose else every[: max(fit, 1)]
    more = len(every) - len(listed)
    yield from heading(f"In common ({more:,} more by --verbose)" if more else "In common")
    for lines in listed:
        yield from lines


def _of(common: InCommon, clusters: Sequence[FleetCluster]) -> str:
    """One thing in common: of how many clusters, what and which; of a version or a region, how these are."""
    number = f"{len(common.clusters):,} of {counted(len(clusters), 'cluster')}"
    if common.check_id is None:
        return f"{number}: {common.words}: {_tally([each for each in clusters if each.cluster in common.clusters])}"
    information = ", as information" if common.severity is Severity.INFO else ""
    who = f" ({named(common.clusters)})" if len(common.clusters) < len(clusters) else ""
    shared = f"; all of them: {', '.join(common.shared)}" if common.shared else ""
    return f"{number}{information}: {common.words} [{common.check_id}]{who}{shared}"


def _links(links: Sequence[Link], width: int, *, verbose: bool) -> Iterator[Text]:
    """Each link in a few lines, those with most waiting entries first, and settings that only one end has."""
    if not links:
        return
    ordered = sorted(links, key=lambda each: (not each.is_cut, -sum(sent.entries for sent in each.sent)))
    listed = ordered if verbose else ordered[:MAX_LINKS]
    yield from heading("Replication, from both ends")
    for each in listed:
        namespaces = counted(len(each.namespaces), "namespace")
        yield from bullets([f"{each.sender} to {each.receiver}, {namespaces}: {each.words}"], width, indent=4)
        one_sided = [(it.one_sided, it.namespace) for it in each.namespaces if it.one_sided]
        for words in sorted({words for words, _ in one_sided}):
            names = named([name for said, name in one_sided if said == words])
            told = f"one-sided, as information: {each.receiver} {words}: {names}"
            yield from bullets([told], width, indent=6)
    if more := len(links) - len(listed):
        yield from wrapped(f"and {more:,} more, which --verbose and --json list", width, indent=4)


def _cluster(each: FleetCluster, width: int, *, verbose: bool) -> Iterator[Text]:
    """Troubles of one cluster, or why it could not be looked at."""
    about = each.checkup.about if each.checkup else None
    seen = f", {about.brokers_read:,} of {counted(about.brokers, 'broker')} read" if about else ""
    version = f", {about.runs}" if about else ""
    region = f", region {each.region}" if each.region else ""
    yield Text()
    words = f"{each.cluster}: {each.health}{version}{region}{seen}"
    yield from wrapped(words, width, style=HEALTH_STYLES[each.health])
    if each.could_not_look:
        yield from wrapped(each.could_not_look, width, indent=2)
    elif not each.troubles:
        yield from wrapped(_in_short(each), width, indent=2)
    for one in (about.unread if about else ())[: None if verbose else MAX_UNREAD]:
        yield from bullets([f"not read: {one.words}"], width, indent=4)
    told = each.troubles if verbose else each.troubles[:MOST_TROUBLES]
    yield from numbered(map(in_a_line, told), width, indent=2)
    if more := len(each.troubles) - len(told):
        yield from wrapped(f"and {more:,} more, which --verbose and --json list", width, indent=5)
