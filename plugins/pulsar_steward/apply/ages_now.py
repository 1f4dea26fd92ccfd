"""How old the backlogs are on the live cluster: asked of each topic's owner, within a budget, and nothing is loaded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pulsar_steward.admin.statistics import backlogged
from pulsar_steward.guard.ages import BacklogAges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.apply.look import Look
    from pulsar_steward.model.step import ChangeSetting
    from pulsar_steward.policy.schema import Policy


def ages_now(look: Look, change: ChangeSetting, owners: Sequence[str], policy: Policy) -> BacklogAges:
    """The ages of the backlogs of all topics that an age quota is for, by their owners' clocks.

    Args:
        look: Reads the cluster.
        change: The age quota.
        owners: Brokers that own a bundle of the namespace.
        policy: How many topics may be asked.

    Raises:
        AdminError: If an owner cannot be read, or a topic went elsewhere meanwhile.
    """
    budget = policy.backlog_quota_remedy.most_topics_asked
    ages: dict[str, int] = {}
    waiting, untold = 0, 0
    for owner in owners:
        topics = sorted(backlogged(look.statistics(owner), change.namespace, owner, topic=change.topic))
        waiting += len(topics)
        asked = topics[: max(budget - len(ages) - untold, 0)]
        told = look.oldest_published(owner, asked) if asked else {}
        found = _aged(told, look.clock_milliseconds(owner) if told else None)
        untold += len(told) - len(found)
        waiting -= len(asked) - len(told)
        ages |= found
    oldest = max(ages, key=lambda topic: (ages[topic], topic), default=None)
    return BacklogAges(
        oldest_seconds=ages[oldest] if oldest else 0,
        topic=oldest,
        waiting=waiting,
        unknown=waiting - len(ages),
        why_unknown=_why(untold, budget),
    )


def _aged(told: dict[str, int | None], ahead_milliseconds: int | None) -> dict[str, int]:
    """Seconds by topic, as the broker's own clock has them; those that it does not tell are not in it."""
    if ahead_milliseconds is None:
        return {}
    now = int(time.time() * 1000) + ahead_milliseconds
    return {
        topic: max(now - published, 0) // 1000 if published else 0
        for topic, published in told.items()
        if published is not None
    }


def _why(untold: int, budget: int) -> str:
    if untold:
        return f"{untold:,} were asked, and their brokers do not tell"
    return f"no more than {budget:,} are asked (policy key backlog_quota_remedy.most_topics_asked)"
