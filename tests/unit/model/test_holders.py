"""Whose a cursor is, by its name."""

from __future__ import annotations

import duckdb
import pytest

from pulsar_steward.model.subscription import (
    EXPIRING,
    OWN,
    PATTERNS,
    Holder,
    HolderKind,
    kind_of_cursor,
    replicator_to,
    slowest,
)

NAMES = {
    "app": HolderKind.SUBSCRIPTION,
    "reader-of-audit": HolderKind.SUBSCRIPTION,
    "dedup": HolderKind.SUBSCRIPTION,
    "my.pulsar.repl.west": HolderKind.SUBSCRIPTION,
    "reader-9fd2232e04": HolderKind.READER,
    "multiTopicsReader-0f1e2d3c4b": HolderKind.READER,
    "pulsar.repl.west": HolderKind.REPLICATOR,
    "pulsar.dedup": HolderKind.DEDUPLICATION,
    "__compaction": HolderKind.COMPACTION,
    "__compaction2": HolderKind.SYSTEM,
    "__pending_ack_state": HolderKind.SYSTEM,
    "pulsar.something": HolderKind.SYSTEM,
    "transaction.subscription": HolderKind.SYSTEM,
}


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_a_cursor_is_whose_its_name_says(name: str, kind: HolderKind) -> None:
    """A cursor's kind is the first whose pattern matches its name, in Python as in DuckDB; else it is a user's."""
    assert kind_of_cursor(name) is kind
    query = "select regexp_matches(?, ?)"
    matching = [each for each, pattern in PATTERNS.items() if duckdb.execute(query, [name, pattern]).fetchall()[0][0]]
    assert (matching or [HolderKind.SUBSCRIPTION])[0] is kind


def test_every_kind_says_how_it_comes_to_hold_less() -> None:
    """Each holder has words, a remedy and what is taken from it, and those of Pulsar's own say more than a name."""
    holders = [Holder(name=name, entries=1) for name in NAMES]
    assert all(each.words and each.remedy and each.taken_in_words("t").startswith("1 entry of t ") for each in holders)
    assert {each.kind for each in holders if each.is_own} == OWN
    assert replicator_to("west") == "pulsar.repl.west"
    assert {HolderKind.COMPACTION, HolderKind.DEDUPLICATION} == frozenset(HolderKind) - EXPIRING


def test_the_slowest_is_the_one_with_most_left() -> None:
    """The slowest holder has the most entries; one that is not known comes first, and a reader last."""
    app, west, unknown, reader = (
        Holder(name=name, entries=entries)
        for name, entries in (("app", 5), ("pulsar.repl.west", 7), ("pulsar.dedup", None), ("reader-0a1b2c3d", 9))
    )
    assert slowest([app, west, reader]) == west
    assert slowest([app, west, unknown]) == unknown
    assert slowest([reader]) == reader
    assert slowest([Holder(name="app", entries=0)]) is None
