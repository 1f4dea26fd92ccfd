"""A setting as it stands on the live cluster, with what decides whether it may be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.admin.statistics import backlogged, largest_backlog
from pulsar_steward.apply.ages_now import ages_now
from pulsar_steward.guard.clocks import BY_AGE
from pulsar_steward.guard.delayed_kept import concerns_delayed
from pulsar_steward.guard.losses import Backlog, loss_of
from pulsar_steward.guard.view import SettingView
from pulsar_steward.model.series import DELAYED_SERIES
from pulsar_steward.model.setting import BacklogQuota, Retention, SettingName

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pulsar_steward.apply.look import Look
    from pulsar_steward.model.loss import Loss
    from pulsar_steward.model.step import ChangeSetting
    from pulsar_steward.policy.schema import Policy


def setting_now(look: Look, change: ChangeSetting, brokers: Collection[str], policy: Policy) -> SettingView:
    """The setting, and of all brokers what the guards of this change ask for.

    Args:
        look: Reads the cluster.
        change: What is to be changed.
        brokers: Those that answer.
        policy: How much may be asked.

    Raises:
        AdminError: If one of them cannot be read.
    """
    asked = sorted(brokers)
    by_size = change.name is SettingName.SIZE_QUOTA and change.after is not None
    limits_age = change.name is SettingName.AGE_QUOTA and change.after is not None
    needed = by_size or limits_age or concerns_delayed(change)
    owners = _owners(look, change.namespace, asked) if needed else []
    return SettingView(
        now=look.own_setting(change),
        largest_backlog_bytes=_largest(look, change, owners) if by_size else None,
        quotas_are_checked=_checked(look, asked) if isinstance(change.after, BacklogQuota) else None,
        clocks_differ_milliseconds=_apart(look, asked) if change.name in BY_AGE else None,
        delayed_messages=_delayed(look, change.namespace, owners) if concerns_delayed(change) else None,
        ages=ages_now(look, change, owners, policy) if limits_age else None,
        retained_seconds=_retained(look, change) if limits_age else None,
        loss=_loss(look, change, owners) if change.evicts_by_size else None,
    )


def _owners(look: Look, namespace: str, brokers: Sequence[str]) -> list[str]:
    """The brokers that own a bundle of the namespace."""
    return [broker for broker in brokers if any(name.startswith(f"{namespace}/0x") for name in look.owned_by(broker))]


def _largest(look: Look, change: ChangeSetting, owners: Sequence[str]) -> int:
    """Of what the quota is for: all topics of the namespace, or the one that it is set on."""
    backlogs = (largest_backlog(look.statistics(each), change.namespace, each, topic=change.topic) for each in owners)
    return max(backlogs, default=0)


def _loss(look: Look, change: ChangeSetting, owners: Sequence[str]) -> Loss | None:
    """What a size quota would evict at once, of all topics that it is for."""
    if not isinstance(change.after, BacklogQuota):
        return None
    backlogs = [
        Backlog(
            topic=name,
            bytes=topic.backlog_size,
            messages=tuple(each.msg_backlog for each in topic.subscriptions.values()),
        )
        for owner in owners
        for name, topic in backlogged(look.statistics(owner), change.namespace, owner, topic=change.topic).items()
    ]
    return loss_of(backlogs, change.after.limit_bytes)


def _retained(look: Look, change: ChangeSetting) -> int | None:
    """Seconds for which consumed messages are kept where the change is made; None: without limit, or not at all."""
    kept = look.settings_of(change.namespace).get(SettingName.RETENTION)
    if change.topic is not None:
        own = look.own_setting(msgspec.structs.replace(change, name=SettingName.RETENTION))
        kept = kept if own is None else own
    return kept.minutes * 60 if isinstance(kept, Retention) and kept.minutes > 0 else None


def _checked(look: Look, brokers: Sequence[str]) -> bool | None:
    told = [look.configuration(broker).get("backlogQuotaCheckEnabled") for broker in brokers]
    if not told or None in told:
        return None
    return all(value == "true" for value in told)


def _apart(look: Look, brokers: Sequence[str]) -> int | None:
    """Between the clock that is furthest ahead and the one furthest behind; less than a second cannot be told."""
    ahead = [look.clock_milliseconds(broker) for broker in brokers]
    known = [each for each in ahead if each is not None]
    return max(known) - min(known) if known and len(known) == len(ahead) else None


def _delayed(look: Look, namespace: str, owners: Sequence[str]) -> int | None:
    """None where an owner tells nothing of any topic."""
    total = 0
    for broker in owners:
        samples = look.samples(broker, {DELAYED_SERIES: 0})
        if not samples:
            return None
        total += sum(int(each.value) for each in samples if each.labels.get("namespace") == namespace)
    return total
