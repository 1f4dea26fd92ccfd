"""What a guard looks at, be it taken from a snapshot or from the live cluster."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from pulsar_steward.model.setting import Setting
from pulsar_steward.policy.schema import Policy


class BundleView(msgspec.Struct, frozen=True, kw_only=True):
    """One bundle as it stands.

    Attributes:
        exists: Whether the namespace still has a bundle of exactly these boundaries.
        owner: ``host:webport``, or None where nobody owns it.
        clients: Producers and consumers connected through it.
        moved_at: When Steward last moved it; None: not as far back as the cooldown looks.
    """

    exists: bool
    owner: str | None
    clients: int
    moved_at: datetime | None = None


class SettingView(msgspec.Struct, frozen=True, kw_only=True):
    """One setting as it stands.

    Attributes:
        now: Its value where the change would set it; None: not set there.
        largest_backlog_bytes: Of a single topic of the namespace, by brokers' statistics (up to a minute old); None:
            not known.
    """

    now: Setting | None
    largest_backlog_bytes: int | None = None


class ClusterView(msgspec.Struct, frozen=True, kw_only=True):
    """What the guards of one step need to know of the cluster.

    Attributes:
        now: The time of the look, UTC.
        brokers: Active brokers that answered.
        allowed: Brokers that isolation policies leave to the step's namespace; None: every broker.
        bundle: The bundle that the step changes; None: it changes a setting.
        setting: The setting that the step changes; None: it changes a bundle.
        policy: Thresholds and limits.
    """

    now: datetime
    brokers: frozenset[str]
    allowed: frozenset[str] | None
    bundle: BundleView | None = None
    setting: SettingView | None = None
    policy: Policy


class Objection(StrEnum):
    """What a veto means for the step: the cluster moved on, or the step is not permitted."""

    DRIFTED = "drifted"
    REFUSED = "refused"
