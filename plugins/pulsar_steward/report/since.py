"""Troubles since an earlier look: new ones, worse ones, those that are gone, and those that were not seen again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.finding import Outlook
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import bytes_in_words
from pulsar_steward.report.checkup.compose import troubles_shown
from pulsar_steward.report.checkup.document import ChangedTrouble, SinceLook, TroubleReport, pressing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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


GRAVE = (Harm.CUT_OFF, Harm.LOSING)
"""Harms of which every further subject counts, also where others went; neither is less than the other."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Troubles of one snapshot, and the conclusions from their absence.

    Attributes:
        counted: Checks that judged the snapshot, which is complete: their numbers are.
        judged: Those of them whose findings are all listed, so that a missing one means no problem.
        why_not: Reasons of the checks that could not judge, by check.
    """

    snapshot_id: str
    taken_at: datetime
    troubles: tuple[TroubleReport, ...]
    counted: frozenset[str]
    judged: frozenset[str]
    why_not: Mapping[str, str] = {}

    def has_counted(self, trouble: TroubleReport) -> bool:
        """True if all checks of a trouble judged the whole cluster."""
        return self.counted.issuperset(trouble.check_ids)

    def has_judged(self, trouble: TroubleReport) -> bool:
        """True if the trouble would be there, if its checks had found it."""
        return self.judged.issuperset(trouble.check_ids)

    def why_not_judged(self, trouble: TroubleReport) -> str:
        """Why nothing follows from the absence of a trouble."""
        if reason := next((self.why_not[each] for each in trouble.check_ids if each in self.why_not), None):
            return reason
        return "not all of its findings are listed" if self.counted else "the snapshot is partial"


def look_of(snapshot: Snapshot, troubles: Sequence[TroubleReport] | None = None) -> Look:
    """Troubles of a diagnosed snapshot, which are worked out unless they are given.

    Raises:
        SnapshotError: If it cannot be read or was not diagnosed.
    """
    meta = snapshot.meta()
    verdicts = snapshot.verdicts()
    why_not = {each.check_id: each.reason for each in verdicts if each.outlook is Outlook.UNKNOWN}
    counted = {each.check_id: each for each in verdicts if each.check_id not in why_not and not meta.unread}
    return Look(
        snapshot_id=meta.snapshot_id,
        taken_at=meta.taken_at,
        troubles=tuple(troubles_shown(snapshot) if troubles is None else troubles),
        counted=frozenset(counted),
        judged=frozenset(name for name, each in counted.items() if not each.more),
        why_not=why_not,
    )


def since_look(
    snapshot: Snapshot,
    span: timedelta,
    troubles: Sequence[TroubleReport] | None = None,
    *,
    now: datetime | None = None,
    kept: Callable[[str, Callable[[], SinceLook]], SinceLook] = lambda _, made: made(),
) -> SinceLook | None:
    """Compares troubles with those of the snapshot that was the newest one a span earlier.

    Args:
        snapshot: The snapshot itself, among others of its cluster.
        span: How far to go back; where no snapshot is that old, the oldest one is compared.
        troubles: Its troubles; None: they are worked out.
        now: Time to go back from; None: that of the snapshot.
        kept: Function from an earlier snapshot's URI and a comparison with it to the result, for a cache.

    Returns:
        The difference; None: the cluster has no earlier diagnosed snapshot there.

    Raises:
        SnapshotError: If a snapshot cannot be read.
    """
    taken_at = snapshot.meta().taken_at
    wanted = (now or taken_at) - span
    if taken_at <= wanted:
        return SinceLook(taken_at=taken_at, looked=False, new=(), worse=(), gone=(), unseen=())
    earlier = snapshot.as_of(wanted)
    if earlier is None:
        return None
    found = kept(earlier.uri, lambda: compared(look_of(snapshot, troubles), look_of(earlier)))
    notes = (
        "the oldest look that is kept" if found.taken_at > wanted else "",
        "no look lies in between" if found.taken_at < wanted - span else "",
        found.note,
    )
    return msgspec.structs.replace(found, note=", ".join(filter(None, notes)))


def compared(now: Look, then: Look) -> SinceLook:
    """The difference between the troubles of two looks.

    A cause that does worse harm by now is worse, not new. Where the later look judged a trouble's checks only in part,
    its absence proves nothing; where the earlier one did, a trouble that stood before is not new, and no growth counts.
    """
    present = pressing(now.troubles)
    left = {each.trouble_id: each for each in pressing(then.troubles)}
    known = {each.trouble_id: left[each.trouble_id] for each in present if _may_be(each, left.get(each.trouble_id))}
    left = {name: each for name, each in left.items() if name not in known}
    new, worse = [], []
    for each in present:
        former = known.get(each.trouble_id) or _of_same_cause(each, left.values())
        if former is None:
            stood = each.since is not None and each.since <= then.taken_at and not then.has_counted(each)
            new += [] if stood else [_changed(each)]
            continue
        left.pop(former.trouble_id, None)
        if change := _how_worse(former, each, counted=then.has_counted(each)):
            worse.append(_changed(each, change))
    over = [each for each in left.values() if not _goes_on(each, present)]
    return SinceLook(
        taken_at=then.taken_at,
        new=tuple(new),
        worse=tuple(worse),
        gone=tuple(_changed(each) for each in over if now.has_judged(each)),
        unseen=tuple(_changed(each, now.why_not_judged(each)) for each in over if not now.has_judged(each)),
        note="" if then.counted else "that look was partial",
    )


def _of_same_cause(trouble: TroubleReport, others: Iterable[TroubleReport]) -> TroubleReport | None:
    same = (each for each in others if each.check_ids[0] == trouble.check_ids[0])
    return next((each for each in same if _may_be(trouble, each)), None)


def _may_be(now: TroubleReport, then: TroubleReport | None) -> bool:
    """False if all subjects of two troubles are known, and none is in both: then one came, and the other is over."""
    if then is None:
        return False
    return not (_all_listed(now) and _all_listed(then)) or not set(now.subjects).isdisjoint(then.subjects)


def _all_listed(trouble: TroubleReport) -> bool:
    return trouble.affected == len(trouble.subjects)


def _goes_on(then: TroubleReport, present: Sequence[TroubleReport]) -> bool:
    """True if all subjects of a trouble are now those of others of its cause, which do another harm."""
    same = (each.subjects for each in present if each.check_ids[0] == then.check_ids[0])
    return set(then.subjects) <= {subject for subjects in same for subject in subjects}


def _changed(trouble: TroubleReport, change: str = "") -> ChangedTrouble:
    return ChangedTrouble(trouble_id=trouble.trouble_id, headline=trouble.headline, where=trouble.where, change=change)


def _how_worse(then: TroubleReport, now: TroubleReport, *, counted: bool) -> str:
    """How a trouble got worse, from old to new; empty: it did not.

    Args:
        then: The trouble as it was.
        now: The trouble as it is.
        counted: True if its numbers of before were complete, so that larger ones are growth.
    """
    if now.harm is not then.harm:
        grave = now.harm.rank < then.harm.rank or (now.harm in GRAVE and then.harm in GRAVE)
        return f"{then.harm} → {now.harm}" if grave else ""
    if now.severity.rank > then.severity.rank:
        return f"{then.severity} → {now.severity}"
    return _growth(then, now) if counted else ""


def _growth(then: TroubleReport, now: TroubleReport) -> str:
    before, size = then.bytes or 0, now.bytes or 0
    larger = ""
    if before and size > before * MUCH_MORE:
        larger = f"{bytes_in_words(before, rounded=True)} → {bytes_in_words(size, rounded=True)}"
    if now.affected > then.affected:
        return ", ".join(filter(None, (larger, f"{then.affected:,} → {now.affected:,}")))
    if now.found.critical > then.found.critical:
        return f"{then.found.critical:,} → {now.found.critical:,} critical"
    came = [each for each in now.subjects if each not in then.subjects]
    if came and now.harm in GRAVE and _all_listed(now) and _all_listed(then):
        return f"{len(came):,} came: {came[0]}"
    return larger
