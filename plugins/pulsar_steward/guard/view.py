"""What a guard looks at, be it taken from a snapshot or from the live cluster."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from pulsar_steward.guard.ages import BacklogAges
from pulsar_steward.guard.hazards import Hazards
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import Setting
from pulsar_steward.policy.schema import Policy


class BundleView(msgspec.Struct, frozen=True, kw_only=True):
    """One bundle as it stands.

    Attributes:
        exists: Whether the namespace still has a bundle of exactly these boundaries.
        owner: ``host:webport``, or None where nobody owns it.
        clients: Producers and consumers connected through it.
        moved_at: When Steward last moved it; None: not as far back as the cooldown looks.
        circling: Bundles of its namespace (``range``) that Steward moved away and back within the policy's time.
        hazards: What a change of it would set off.
    """

    exists: bool
    owner: str | None
    clients: int
    moved_at: datetime | None = None
    circling: tuple[str, ...] = ()
    hazards: Hazards = Hazards()


class SettingView(msgspec.Struct, frozen=True, kw_only=True):
    """One setting as it stands.

    Attributes:
        now: Its value where the change would set it; None: not set there.
        largest_backlog_bytes: Of a single topic of the namespace, or of the topic whose setting it is, by brokers'
            statistics (up to a minute old); None: not known.
        quotas_are_checked: Whether brokers check backlog quotas at all (`backlogQuotaCheckEnabled`); None: not known.
        clocks_differ_milliseconds: How far brokers' clocks are apart, to a second; None: not known.
        delayed_messages: Of all its subscriptions, as brokers' metrics tell; None: they tell nothing of topics.
        ages: How old the backlogs are that an age quota is for; None: not known.
        retained_seconds: How long consumed messages are kept; None: without limit in time, or not at all.
        loss: What a size quota that evicts would take away at once; None: not known.
    """

    now: Setting | None
    largest_backlog_bytes: int | None = None
    quotas_are_checked: bool | None = None
    clocks_differ_milliseconds: int | None = None
    delayed_messages: int | None = None
    ages: BacklogAges | None = None
    retained_seconds: int | None = None
    loss: Loss | None = None


class ClusterView(msgspec.Struct, frozen=True, kw_only=True):
    """What the guards of one step need to know of the cluster.

    Attributes:
        now: The time of the look, UTC.
        seen_at: When the snapshot was taken that the plan rests on, UTC.
        pulsar_cluster: The Pulsar cluster that answers.
        planned_for: The one that the plan is for; None: the plan does not say.
        brokers: Active brokers that answered.
        silent: Brokers that the cluster lists, and that did not answer.
        read_only_bookies: Bookies that take no writes, of those that the policy names.
        unproved: Another batch that changed the cluster since `seen_at` and was not proved, in words; None: none.
        changes_in_the_last_hour: Calls that Steward made in this cluster.
        place_in_run: Which change of its run this one is, from 1.
        planned: Whether this is the look at planning, from a snapshot, and not the one right before the call.
        allowed: Brokers that isolation policies leave to the step's namespace; None: every broker.
        bundle: The bundle that the step changes; None: it changes a setting.
        setting: The setting that the step changes; None: it changes a bundle.
        policy: Thresholds and limits.
    """

    now: datetime
    seen_at: datetime
    pulsar_cluster: ClusterIdentity
    planned_for: ClusterIdentity | None
    brokers: frozenset[str]
    silent: tuple[str, ...] = ()
    read_only_bookies: tuple[str, ...] = ()
    unproved: str | None = None
    changes_in_the_last_hour: int = 0
    place_in_run: int = 1
    planned: bool = False
    allowed: frozenset[str] | None
    bundle: BundleView | None = None
    setting: SettingView | None = None
    policy: Policy


class Objection(StrEnum):
    """What a veto means for the step: the cluster moved on, or the step is not permitted."""

    DRIFTED = "drifted"
    REFUSED = "refused"
