"""Topics that hold what is nobody's to delete: an archive that no broker has loaded, and one that never got away."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from lab.faults.clients.publishing import publish
from lab.faults.real.ground import connected
from lab.faults.real.operator import operator_of
from lab.waiting import wait_until
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName
from pulsar_steward.model.step import ChangeSetting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lab.cluster import Lab

ARCHIVED, REPLICATED = "public/chaos-archived", "public/chaos-replicated"
ARCHIVE, BEHIND = f"persistent://{ARCHIVED}/archive", f"persistent://{REPLICATED}/behind"
AWAY = "away"
"""A cluster that nobody reaches."""
MESSAGES, BYTES = 1_000, 4_000
LIMIT_BYTES = 100_000
"""Less than the backlog of the replicator."""
SMALL_LEDGERS = {"managedLedgerMaxEntriesPerLedger": "250", "managedLedgerMinLedgerRolloverTimeMinutes": "0"}
"""Settings of brokers under which the archive is in closed ledgers, which a lower retention deletes."""
FOR_EVER = Retention(minutes=-1, megabytes=-1)

LOSING: Mapping[str, ChangeSetting] = {
    "unloaded archive": ChangeSetting(
        namespace=ARCHIVED, name=SettingName.RETENTION, before=FOR_EVER, after=Retention(minutes=-1, megabytes=1)
    ),
    "replicator behind": ChangeSetting(
        namespace=REPLICATED,
        topic=BEHIND,
        name=SettingName.SIZE_QUOTA,
        before=None,
        after=BacklogQuota(limit_bytes=LIMIT_BYTES, policy=QuotaPolicy.EVICT),
        inherited=None,
    ),
}
"""Changes that would delete what these topics hold, by fault."""


class Holdings:
    """Both topics of a lab.

    Args:
        lab: The cluster.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def held(self) -> dict[str, int]:
        """Bytes of the archive, which is unloaded afterwards, and messages that the replicator has to send."""
        operator = operator_of(self._lab)
        operator.statistics(ARCHIVE)  # which loads it
        operator.trim(ARCHIVE)
        stored: int = operator.statistics(ARCHIVE)["storageSize"]
        operator.unload_topic(ARCHIVE)
        waiting: int = operator.statistics(BEHIND)["replication"].get(AWAY, {}).get("replicationBacklog", 0)
        return {ARCHIVE: stored, BEHIND: waiting}


@contextmanager
def holdings(lab: Lab) -> Iterator[Holdings]:
    """Both topics, filled, for a block; the cluster that one of them is replicated to is away.

    Args:
        lab: The cluster, with `SMALL_LEDGERS`.
    """
    operator, made = operator_of(lab), Holdings(lab)
    with operator.cluster_that_is_away(AWAY):
        for topic in (ARCHIVE, BEHIND):
            lab.make_topic(topic, 1)
        operator.set_retention(ARCHIVED, FOR_EVER.minutes, FOR_EVER.megabytes)
        operator.set_policy(REPLICATED, "replication", [lab.cluster, AWAY])
        with closing(connected(lab)) as client:
            for topic in (ARCHIVE, BEHIND):
                publish(client.create_producer(topic, batching_enabled=False), MESSAGES, BYTES)
        wait_until(lambda: made.held()[BEHIND] == MESSAGES, "the replicator has all messages to send", 60)
        yield made
        operator_of(lab).set_policy(REPLICATED, "replication", [lab.cluster])
