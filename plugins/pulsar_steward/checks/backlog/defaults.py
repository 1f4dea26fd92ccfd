"""Defaults of the brokers for quotas, retention and expiry, and whether the brokers agree on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query
from pulsar_steward.checks.views import SqlView
from pulsar_steward.model.broker_defaults import (
    QUOTA_BYTES,
    QUOTA_GIGABYTES,
    QUOTA_POLICY,
    QUOTA_SECONDS,
    RETENTION_MEGABYTES,
    RETENTION_MINUTES,
    TTL_SECONDS,
    BrokerDefaults,
)
from pulsar_steward.model.units import GIB

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Queried, QueryRows

DEFAULTS = Query("select * from broker_defaults cross join defaults_that_differ")
"""Query for `cluster`; its row is decoded by `Defaults.of`."""


class Defaults(BrokerDefaults, frozen=True, kw_only=True):
    """Defaults of most brokers where nothing is set; None: it was not read.

    Attributes:
        differing: Names of the defaults on which brokers do not agree, and which apply to some namespace.
    """

    differing: tuple[str, ...] = ()

    @classmethod
    def of(cls, selected: QueryRows) -> Defaults:
        """Decodes the row of `DEFAULTS`."""
        return cls(**{**selected.one, "differing": tuple(selected.one["differing"])})

    def unknown(self, *names: str) -> str | None:
        """Reason why namespaces that use these defaults cannot be judged; None: all of them are known."""
        missing = [name for name in self.__struct_fields__ if name in names and getattr(self, name) is None]
        if missing:
            return f"What brokers do where a namespace sets nothing was not read: {', '.join(missing)}."
        differing = [name for name in names if name in self.differing]
        if not differing:
            return None
        return (
            f"Brokers differ in what they do where a namespace sets nothing ({', '.join(differing)}): what most of them"
            " do was looked at, and a topic is under what its own broker does."
        )


def unknown_defaults(queried: Queried, *names: str) -> str | None:
    """Reason why namespaces that use these defaults cannot be judged, by the query `defaults`; None: all are known."""
    return Defaults.of(queried["defaults"]).unknown(*names)


def _value(key: str) -> str:
    return f"max(value) filter (where key = '{key}')"


def _number(key: str) -> str:
    return f"try_cast(trim({_value(key)}) as double)"


def _whole(key: str) -> str:
    return f"try_cast(trunc({_number(key)}) as bigint)"


_DEFAULTS = f"""
    -- The size in gigabytes, where it is above 0, goes before that in bytes.
    case when {_number(QUOTA_GIGABYTES)} > 0 then try_cast(trunc({_number(QUOTA_GIGABYTES)} * {GIB}) as bigint)
        else {_whole(QUOTA_BYTES)} end as limit_bytes,
    {_whole(QUOTA_SECONDS)} as limit_seconds,
    {_value(QUOTA_POLICY)} as policy,
    {_whole(RETENTION_MINUTES)} as retention_minutes,
    {_whole(RETENTION_MEGABYTES)} as retention_megabytes,
    {_whole(TTL_SECONDS)} as ttl_seconds
"""

BROKER_DEFAULTS = f"select {_DEFAULTS} from usual_settings"
"""One row with the columns of `Defaults`, of most brokers."""

DIFFERING = f"""
with told as (select broker, {_DEFAULTS} from configuration where value is not null group by broker),
differ as (
    -- All values that mean no limit are equal.
    select count(distinct if(limit_bytes < 0, -1, limit_bytes)) > 1 as limit_bytes,
        count(distinct if(limit_seconds < 0, 0, limit_seconds)) > 1 as limit_seconds,
        count(distinct policy) > 1 as policy,
        count(distinct retention_minutes) > 1 as retention_minutes,
        count(distinct retention_megabytes) > 1 as retention_megabytes, count(distinct ttl_seconds) > 1 as ttl_seconds
    from told),
rest as (
    select coalesce(bool_or(not bytes_own), false) as on_bytes, coalesce(bool_or(not seconds_own), false) as on_seconds,
        coalesce(bool_or(not retention_own), false) as on_retention, coalesce(bool_or(not ttl_own), false) as on_ttl
    from namespace_policies)
select list_filter([
    case when limit_bytes and on_bytes then 'limit_bytes' end,
    case when limit_seconds and on_seconds then 'limit_seconds' end,
    case when policy and (on_bytes or on_seconds) then 'policy' end,
    case when retention_minutes and on_retention then 'retention_minutes' end,
    case when retention_megabytes and on_retention then 'retention_megabytes' end,
    case when ttl_seconds and on_ttl then 'ttl_seconds' end], lambda name: name is not null) as differing
from differ cross join rest
"""
"""One row: `differing`, the columns in which brokers differ while the default applies to some namespace."""

PRECISE, ROLLOVER = "preciseTimeBasedBacklogQuotaCheck", "managedLedgerMaxLedgerRolloverTimeMinutes"

_A_CENTURY_MINUTES = 52_600_000

AGE_QUOTA_DELAYS = f"""
with told as (
    select broker, lower(trim({_value(PRECISE)})) as precise, {_whole(ROLLOVER)} as minutes
    from configuration where key in ('{PRECISE}', '{ROLLOVER}') group by broker)
select max(case when precise = 'true' then 0
    when precise is not null and minutes is not null then least(greatest(minutes, 0), {_A_CENTURY_MINUTES}) * 60
    end)::bigint as delay_seconds
from told
"""
"""One row: the longest delay of an age quota on any broker; null: not known.

With `preciseTimeBasedBacklogQuotaCheck` a broker reads the oldest message itself, without delay. Otherwise it counts
from the time at which the ledger of that message was closed. On a quiet topic it closes at the maximum rollover time.
"""

FIRST_VIEWS = (SqlView("broker_defaults", BROKER_DEFAULTS), SqlView("age_quota_delays", AGE_QUOTA_DELAYS))
"""Views that the views of namespace policies need."""

LAST_VIEWS = (SqlView("defaults_that_differ", DIFFERING),)
"""Views that need `namespace_policies`."""
