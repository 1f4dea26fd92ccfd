"""Medians of brokers' latencies: by the bounds of the bucket that holds the middle event of the last minute."""

from __future__ import annotations

from pulsar_steward.checks.earlier import of_previous, of_sources
from pulsar_steward.checks.resources.views import OVERFLOW, PUBLISHES, WRITES

_SERIES = ", ".join(f"'{name}{end}'" for name in (PUBLISHES, WRITES) for end in ("", OVERFLOW))


def medians_of(samples: str) -> str:
    """SQL for the median of each broker's publishes and writes: it is from `at_least` to `at_most` milliseconds.

    Unlike a mean it does not move for a few events that hang. `at_most` is infinite where the middle event took over
    a second.

    Args:
        samples: Table to read.
    """
    return f"""
    with samples as (
        select source, replace(series, '{OVERFLOW}', '') as event, value,
            if(ends_with(series, '{OVERFLOW}'), 1000, try_cast(split_part(labels_json->>'quantile', '_', 1) as double))
                as low,
            if(ends_with(series, '{OVERFLOW}'), 'infinity'::double,
                try_cast(split_part(labels_json->>'quantile', '_', 2) as double)) as high
        from {samples} where series in ({_SERIES}) and isfinite(value) and value > 0),
    buckets as (
        select source, event, low, high, sum(value order by value) as rate
        from samples where isfinite(low) and high is not null group by source, event, low, high),
    ordered as (
        select *, sum(rate) over (partition by source, event order by low, high) as rate_up_to,
            sum(rate) over (
                partition by source, event order by low, high rows between unbounded preceding and unbounded following
            ) as rate_in_all
        from buckets)
    select source, event, any_value(rate_in_all) as rate, min(low) as at_least, min(high) as at_most
    from ordered where rate_up_to * 2 >= rate_in_all group by source, event
    """


MEDIANS = medians_of("metrics")

TOLD = f"select source from ledger_latencies where event = '{PUBLISHES}'"
"""Brokers that tell the latency of publishing, those on which nothing is published among them."""

_SLOW = f"event = '{PUBLISHES}' and at_least >= $warning_milliseconds"

MEDIANS_BEFORE = f"select source from ({medians_of(of_sources(f'medians where {_SLOW}'))}) where {_SLOW}"
"""Brokers with such a median in an earlier snapshot, of those that have one now."""

AGAIN = f"select source from {of_previous('medians_before')}"
"""Brokers that had one in the snapshot before."""
