"""Verdicts on restarts, and the report on an upgrade, as the observation of the newest snapshot kept them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.pages.sources import NotKnown
from pulsar_steward.planners.foretold import kept_restarts, kept_upgrade
from pulsar_steward.planners.restarts.model import RestartReason, State
from pulsar_steward.planners.upgrade.model import UpgradeReport
from pulsar_steward.report.restart import ANSWERS, headline, judged_at
from pulsar_steward.report.upgrade import upgrade_result

if TYPE_CHECKING:
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.planners.restarts.model import RestartVerdict
    from pulsar_steward.snapshots.read import Snapshot


class BrokerRestart(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a broker may be restarted now.

    Attributes:
        broker: ``host:webport``.
        verdict: ``may``, ``better not`` or ``not known``.
        headline: The verdict in a sentence.
        against: Reasons against it, or that nothing is known.
        reasons: All reasons, those against it first.
    """

    broker: str
    verdict: str
    headline: str
    against: tuple[RestartReason, ...]
    reasons: tuple[RestartReason, ...]


def broker_restarts(sources: Sources, snapshot: Snapshot) -> tuple[BrokerRestart, ...]:
    """Verdicts on all brokers by id; none: the snapshot keeps none. An old snapshot tells nothing of now."""
    kept = sources.kept_large.get(("restarts", snapshot.uri), lambda: kept_restarts(snapshot))
    return tuple(_shown(judged_at(each, sources.now())) for each in kept)


def _shown(verdict: RestartVerdict) -> BrokerRestart:
    return BrokerRestart(
        broker=verdict.broker,
        verdict=ANSWERS[verdict.state],
        headline=headline(verdict),
        against=(*verdict.of(State.STOP), *verdict.of(State.UNKNOWN)),
        reasons=verdict.reasons,
    )


class ClusterUpgrade(msgspec.Struct, frozen=True, kw_only=True):
    """The report on an upgrade, with whether it may begin, in a word and in a sentence."""

    state: State
    result: str
    report: UpgradeReport


def cluster_upgrade(sources: Sources, snapshot: Snapshot) -> ClusterUpgrade:
    """The report on an upgrade of a snapshot's cluster.

    Raises:
        NotKnown: If the snapshot keeps none, or no broker is left to be upgraded.
    """
    try:
        found = sources.kept_large.get(("upgrade", snapshot.uri), lambda: kept_upgrade(snapshot))
    except ConfigurationError as error:
        raise NotKnown(f"there is no report on an upgrade: {error}") from error
    if found is None:
        raise NotKnown(f"{snapshot.uri} keeps no report on an upgrade: the next observation of a Pulsar cluster does")
    return ClusterUpgrade(state=found.state, result=upgrade_result(found), report=found)
