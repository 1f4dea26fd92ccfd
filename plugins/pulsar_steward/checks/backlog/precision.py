"""Broker settings that make backlog figures approximate; a check mentions them once.

Whatever the settings, brokers measure a backlog from the mark-delete position of the slowest cursor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.quota_check_disabled import INTERVAL
from pulsar_steward.checks.check import Question
from pulsar_steward.model.units import named, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckAnswer
    from pulsar_steward.model.finding import Finding

FILTERS, PRECISE = "entryFilterNames", "exposePreciseBacklogInPrometheus"
NO_FILTERS = ("", "[]")
DEFAULT_SECONDS = 60

PRECISION = Question(f"""
select
    (select coalesce(list(distinct trim(value) order by trim(value)), []) from setting('{FILTERS}')
        where trim(value) not in {NO_FILTERS}) as filters,
    (select max(try_cast(trim(value) as double))::bigint from setting('{INTERVAL}')) as seconds,
    coalesce((select bool_or(lower(trim(value)) = 'false') from setting('{PRECISE}')), false) as imprecise
""")
"""Query for `told_once`."""


def told_once(findings: Sequence[Finding], answer: CheckAnswer) -> tuple[Finding, ...]:
    """Appends the caveats to the evidence of the first finding, which is also the check's verdict."""
    caveats = _caveats(answer)
    if not findings or not caveats:
        return tuple(findings)
    first, *others = findings
    return msgspec.structs.replace(first, evidence=" ".join([first.evidence, *caveats])), *others


def _caveats(answer: CheckAnswer) -> list[str]:
    row = answer.one
    said = []
    if row["filters"]:
        said.append(f"What entry filters keep from consumers counts as backlog ({FILTERS}: {named(row['filters'])}).")
    if (row["seconds"] or 0) > DEFAULT_SECONDS:
        every = seconds_in_words(row["seconds"])
        said.append(f"Brokers compare backlogs with their quotas only every {every} ({INTERVAL}).")
    if row["imprecise"]:
        said.append(f"Prometheus may tell other counts of entries than these ({PRECISE} is off).")
    return said
