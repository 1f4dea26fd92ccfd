"""Troubles since an earlier look: new ones, worse ones, and those that are gone."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.units import bytes_in_words
from pulsar_steward.report.checkup.compose import troubles_shown
from pulsar_steward.report.checkup.document import ChangedTrouble, SinceLook, pressing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pulsar_steward.report.checkup.document import TroubleReport
    from pulsar_steward.snapshots.read import Snapshot

SPANS = ("1h", "8h", "24h")
"""Spans that pages offer."""

MUCH_MORE = 1.1
"""A trouble whose subjects have more bytes than so many times those of before is worse."""

_UNITS = {"min": "minutes", "h": "hours", "d": "days"}


def span_of(text: str) -> timedelta:
    """A span of time such as ``30min``, ``8h`` or ``2d``.

    Raises:
        ConfigurationError: If it is none.
    """
    match = re.fullmatch(r"([1-9]\d{0,4})(min|h|d)", text)
    if match is None:
        raise ConfigurationError(f"{text!r} is no span of time: write a number and min, h or d, such as 8h")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def since_look(now: Sequence[TroubleReport], snapshot: Snapshot, span: timedelta) -> SinceLook | None:
    """Compares troubles with those of the snapshot that was the newest one a span before theirs.

    Args:
        now: Troubles of the snapshot.
        snapshot: The snapshot itself, among others of its cluster.
        span: How far to go back; where no snapshot is that old, the oldest one is compared.

    Returns:
        The difference; None: the cluster has no earlier diagnosed snapshot there.

    Raises:
        SnapshotError: If a snapshot cannot be read.
    """
    taken_at = snapshot.meta().taken_at
    earlier = snapshot.as_of(taken_at - span)
    if earlier is None:
        return None
    return compared(now, troubles_shown(earlier), earlier.meta().taken_at)


def compared(now: Sequence[TroubleReport], then: Sequence[TroubleReport], taken_at: datetime) -> SinceLook:
    """The difference between the troubles of two snapshots. A cause that does worse harm by now is worse, not new."""
    left = {each.trouble_id: each for each in pressing(then)}
    known = {each.trouble_id: left.pop(each.trouble_id) for each in pressing(now) if each.trouble_id in left}
    new, worse = [], []
    for each in pressing(now):
        former = known.get(each.trouble_id) or _of_same_cause(each, left)
        if former is None:
            new.append(_changed(each))
            continue
        left.pop(former.trouble_id, None)
        if change := _how_worse(former, each):
            worse.append(_changed(each, change))
    return SinceLook(
        taken_at=taken_at, new=tuple(new), worse=tuple(worse), gone=tuple(_changed(each) for each in left.values())
    )


def _of_same_cause(trouble: TroubleReport, others: dict[str, TroubleReport]) -> TroubleReport | None:
    cause = trouble.check_ids[0]
    return next((each for each in others.values() if each.check_ids[0] == cause), None)


def _changed(trouble: TroubleReport, change: str = "") -> ChangedTrouble:
    return ChangedTrouble(trouble_id=trouble.trouble_id, headline=trouble.headline, where=trouble.where, change=change)


def _how_worse(then: TroubleReport, now: TroubleReport) -> str:
    """From old to new, where harm, severity, number of subjects or their bytes grew; empty: nothing did."""
    if now.harm.rank < then.harm.rank:
        return f"{then.harm} → {now.harm}"
    if now.severity.rank > then.severity.rank:
        return f"{then.severity} → {now.severity}"
    if now.affected > then.affected:
        return f"{then.affected:,} → {now.affected:,}"
    before, size = then.bytes or 0, now.bytes or 0
    if now.affected < then.affected or not before or size <= before * MUCH_MORE:
        return ""
    return f"{bytes_in_words(before, rounded=True)} → {bytes_in_words(size, rounded=True)}"
