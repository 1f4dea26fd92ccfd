"""The worst rows of a table that may have millions, without any but these ever becoming Python's."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

PULSARS_OWN = r"^[a-z-]+://(pulsar/|([^/]+/){2,3}__)"
"""Topics that Pulsar keeps for itself: its own tenant's, heartbeats, and `__` ones of any namespace."""


def of_users(table: pa.Table) -> pa.Table:
    """The rows whose `topic` is none of Pulsar's own."""
    return table.filter(pc.invert(pc.match_substring_regex(table["topic"], PULSARS_OWN)))


def worst(table: pa.Table, column: str, most: int, *ties: str) -> pa.Table:
    """The rows with the largest figures, largest first; where a figure is null there is nothing to compare.

    Args:
        table: Any.
        column: Has the figures.
        most: Rows at most.
        ties: Columns that order rows of equal figures, so that the same rows come out each time.
    """
    table = table.filter(pc.is_valid(table[column]))
    if table.num_rows > most:
        largest = table[column].take(pc.top_k_unstable(table[column], most))
        table = table.filter(pc.greater_equal(table[column], pc.min(largest)))
    return table.sort_by([(column, "descending"), *((tie, "ascending") for tie in ties)]).slice(0, most)
