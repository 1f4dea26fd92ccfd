"""The order in which settings change, so that every size quota is below the retention at every moment.

Otherwise the broker responds 412. It compares only values that are set at the same level (docs/pulsar-behaviour.md,
Quotas).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.setting import Retention, SettingName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.step import ChangeSetting

ENDLESS = float("inf")

_LAST = {SettingName.TTL: 3, SettingName.DELAYED_DELIVERY: 4}
"""Places of settings that brokers compare with nothing: a longer time to live before longer delays."""


def in_order(changes: Iterable[ChangeSetting]) -> tuple[ChangeSetting, ...]:
    """The changes of one namespace in an order that the broker accepts: a higher retention comes first.

    A retention that is lower in time or size comes last, after the quotas that have to be below it.
    """
    return tuple(sorted(changes, key=lambda change: (_place(change), change.name)))


def raises(change: ChangeSetting) -> bool:
    """True if a change of retention keeps at least as much as before, in time and in size."""
    before, after = _limits(change.before), _limits(change.after)
    return all(now >= then for now, then in zip(after, before, strict=True))


def _place(change: ChangeSetting) -> int:
    if change.name in _LAST:
        return _LAST[change.name]
    if change.name is not SettingName.RETENTION:
        return 1
    return 0 if raises(change) else 2


def _limits(value: object) -> tuple[float, float]:
    """Minutes and megabytes; an unset retention counts as no limit, as the broker then compares nothing."""
    if not isinstance(value, Retention):
        return ENDLESS, ENDLESS
    return (
        ENDLESS if value.minutes <= 0 else value.minutes,
        ENDLESS if value.megabytes <= 0 else value.megabytes,
    )
