"""Facts of subscriptions that nobody uses, as a snapshot has them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pulsar_steward.model.subscription import SubscriptionState


class SubscriptionFact(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription that a finding says is abandoned.

    Attributes:
        subject: Subject of the finding.
        namespace: ``tenant/namespace``.
        topic: Full name of the topic, or of one partition.
        subscription: Its name.
        state: Its state at the snapshot.
        consumers_beside: Consumers of the subscription of the same name on the topic's other partitions.
        since: Time of the first of the snapshots in a row in which it had no consumer, UTC.
        entries_then: Its backlog at that time.
        seconds: How long that is before the snapshot.
    """

    subject: str
    namespace: str
    topic: str
    subscription: str
    state: SubscriptionState
    consumers_beside: int
    since: datetime
    entries_then: int
    seconds: int
