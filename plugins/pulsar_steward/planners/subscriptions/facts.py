"""Facts of unused subscriptions in a snapshot."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pulsar_steward.model.subscription import Cursor, SubscriptionState


class SubscriptionFact(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with a finding of abandonment.

    Attributes:
        subject: Subject of the finding.
        namespace: ``tenant/namespace``.
        topic: Full name of the topic, or of one partition.
        subscription: Its name.
        cursor: Its identity.
        state: Its state at the snapshot.
        consumers_beside: Consumers of the same-named subscription on the topic's other partitions.
        since: Time of the first of the consecutive snapshots without a consumer, UTC.
        entries_then: Its backlog at that time, in entries.
        seconds: Time from then to the snapshot.
    """

    subject: str
    namespace: str
    topic: str
    subscription: str
    cursor: Cursor
    state: SubscriptionState
    consumers_beside: int
    since: datetime
    entries_then: int
    seconds: int
