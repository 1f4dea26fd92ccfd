"""Selection of the worst rows of a table that may have millions, only a few of which become Python objects."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

PULSARS_OWN = r"^[a-z-]+://(pulsar/|([^/]+/){2,3}__)"
"""Pattern of Pulsar's own topics: those of its own tenant, heartbeats, and `__` ones of any namespace."""


def of_users(table: pa.Table) -> pa.Table:
    """Rows whose `topic` is none of Pulsar's own."""
    return table.filter(pc.invert(pc.match_substring_regex(table["topic"], PULSARS_OWN)))


def worst(table: pa.Table, column: str, most: int, *ties: str) -> pa.Table:
    """Rows with the largest figures, in descending order; rows without a figure are left out.

    Args:
        table: Any table.
        column: The column with the figures.
        most: Rows at most.
        ties: Columns that order rows of equal figures, so that the result is deterministic.
    """
    table = table.filter(pc.is_valid(table[column]))
    if table.num_rows > most:
        largest = table[column].take(pc.top_k_unstable(table[column], most))
        table = table.filter(pc.greater_equal(table[column], pc.min(largest)))
    return table.sort_by([(column, "descending"), *((tie, "ascending") for tie in ties)]).slice(0, most)
