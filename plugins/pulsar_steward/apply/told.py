"""Time until brokers' statistics show all loaded topics; brokers renew them once a minute."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.admin.statistics import loaded_topics
from pulsar_steward.apply.live_topics import owning, too_new
from pulsar_steward.model.setting import BacklogQuota
from pulsar_steward.model.step import BundleChange, ChangeSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.apply.whole_look import WholeLook
    from pulsar_steward.ledger.past import PastReader
    from pulsar_steward.model.step import Change, Step

log = logging.getLogger(__name__)

SPARE_SECONDS = 1
"""Maximum time that a broker needs to make its statistics."""


WAITS = 2
"""Maximum number of waits before a bundle is changed; a busy broker renews its statistics late."""


def wait_until_told(
    whole: WholeLook, past: PastReader, step: Step, clock: Callable[[], datetime], rest: Callable[[float], None]
) -> bool:
    """Waits until brokers' statistics show all topics that a step is judged by, for at most `WAITS` waits.

    Returns:
        True if it waited: then facts that were read before are read anew.

    Raises:
        AdminError: If a broker cannot be read.
    """
    for waits in range(WAITS if isinstance(step.change, BundleChange) else 1):
        seconds = wait_seconds(whole, past, step.change, clock())
        if not seconds:
            return waits > 0
        log.info("%s: waiting %.0f s until brokers' statistics show its topics", step.step_id, seconds)
        rest(seconds)
        whole.called()
    return True


def told_in_seconds(reader: LiveReader, past: PastReader, owners: Iterable[str], now: datetime) -> float:
    """Seconds until these brokers' statistics are from after Steward's last call in the cluster; 0: they are."""
    renewed = max((reader.statistics_seconds(each) for each in owners), default=0) + SPARE_SECONDS
    since = now - timedelta(seconds=renewed)
    calls = past.changes_since(since)
    return max((calls[-1][0] - since).total_seconds(), 0.0) if calls else 0.0


def wait_seconds(whole: WholeLook, past: PastReader, change: Change, now: datetime) -> float:
    """Seconds to wait before a change can be judged.

    A setting waits if it has more topics than may be read one by one. A change of a bundle waits if one of its topics
    is not in its owner's statistics yet.

    Raises:
        AdminError: If a broker cannot be read.
    """
    if isinstance(change, BundleChange):
        owned_by = whole.owned_by
        owner = whole.reader.owner(change.namespace, change.bundle, listed=whole.listed(), owned_by=owned_by)
        if owner is None or not too_new(whole.reader, owner, change):
            return 0.0
        return whole.reader.statistics_seconds(owner) + SPARE_SECONDS
    if not isinstance(change, ChangeSetting):
        return 0.0
    if not (change.may_delete or isinstance(change.after_in_force, BacklogQuota)):
        return 0.0
    owners = owning(change.namespace, {broker: whole.owned_by(broker) for broker in whole.active()})
    seconds = told_in_seconds(whole.reader, past, owners, now)
    if not seconds:
        return 0.0
    documents = ((whole.reader.statistics(each), each) for each in owners)
    loaded = sum(len(loaded_topics(document, change.namespace, each)) for document, each in documents)
    return seconds if loaded > whole.policy.backlog_quota_remedy.most_topics_asked else 0.0
