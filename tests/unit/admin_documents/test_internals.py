"""Cursors in a topic's ``internalStats``, as brokers of 4.0.7 answered."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.facts.backlogs import unshown_holders
from pulsar_steward.model.subscription import Holder
from pulsar_steward.pulsar.owner import InternalDetail

POSITIONS = {
    "nothing": "55:-1",
    "some": "55:99",
    "a-ledger": "55:499",
    "much": "60:299",
    "all": "60:399",
    "gone": "12:7",
    "unread": "",
}
TOPIC = msgspec.convert(
    {
        "currentLedgerEntries": 400,
        "currentLedgerSize": 4000,
        "ledgers": [{"ledgerId": 55, "entries": 500, "size": 1_000_000}, {"ledgerId": 60, "entries": 0, "size": 0}],
        "cursors": {
            name: {"markDeletePosition": position, "cursorLedger": 7, "cursorLedgerLastEntry": 0}
            for name, position in POSITIONS.items()
        },
    },
    InternalDetail,
)
"""A topic of 900 entries, of which 400 are in the ledger that is written to."""


@pytest.mark.parametrize(
    ("cursor", "behind", "size", "ledger"),
    [
        ("nothing", 900, 1_004_000, 55),
        ("some", 800, 806_000, 55),
        ("a-ledger", 400, 6_000, 60),
        ("much", 100, 1_010, 60),
        ("all", 0, 10, 60),
        ("gone", 900, 1_004_000, 12),
        ("unread", None, None, None),
    ],
)
def test_how_far_a_cursor_is_behind(cursor: str, behind: int | None, size: int | None, ledger: int | None) -> None:
    """A cursor's entries and bytes are those after its position, also in the ledger that is written to.

    Bytes are an entry more, as brokers take a position for so many entries.
    """
    assert (TOPIC.entries_behind(cursor), TOPIC.first_unread_ledger(cursor)) == (behind, ledger)
    assert TOPIC.bytes_behind(cursor) == size


def test_cursors_that_statistics_do_not_show_are_found() -> None:
    """Cursors that only ``internalStats`` have are holders, unless they have consumed everything."""
    found = unshown_holders(TOPIC, ["nothing", "some", "much", "gone", "unread"])
    assert found == (Holder(name="a-ledger", entries=400),)
    assert unshown_holders(TOPIC, POSITIONS.keys() - {"unread"}) == (Holder(name="unread", entries=None),)
