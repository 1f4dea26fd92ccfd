"""Bundles as ranges of positions: reading, writing, holding and halving."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.model.bundles import (
    FULL_RANGE,
    BundleRange,
    halves_by_topic_count,
    position_of,
    range_holding,
    ranges_of,
    tc_topic,
)

positions = st.integers(0, FULL_RANGE)
bundles = st.tuples(positions, positions).filter(lambda ends: ends[0] < ends[1]).map(lambda ends: BundleRange(*ends))


@given(bundles)
def test_a_range_reads_back_as_it_is_written(bundle: BundleRange) -> None:
    """A range is parsed back from its text, which has eight hexadecimal digits for each boundary."""
    assert BundleRange.parse(str(bundle)) == bundle
    assert len(str(bundle)) == len("0x00000000_0xffffffff")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x00000000",
        "0x00000000-0x80000000",
        "_",
        "0x00000000_",
        "_0x80000000",
        "0x0000000g_0x80000000",
        "0x80000000_0x80000000",
        "0x80000000_0x00000000",
        "0x00000000_0x100000000",
        "-0x00000001_0x80000000",
        "0x00000000_0x40000000_0x80000000",
        "t/n/0x00000000_0x80000000",
    ],
)
def test_what_is_no_range_is_refused(text: str) -> None:
    """Boundaries that are missing, no numbers, not rising or beyond 32 bits are errors."""
    with pytest.raises(ValueError, match=r"is not a bundle range|invalid literal"):
        BundleRange.parse(text)


@pytest.mark.parametrize(
    ("text", "position", "held"),
    [
        ("0x00000000_0x80000000", 0, True),
        ("0x00000000_0x80000000", 0x7FFFFFFF, True),
        ("0x00000000_0x80000000", 0x80000000, False),
        ("0x80000000_0xffffffff", 0x80000000, True),
        ("0x80000000_0xffffffff", 0x7FFFFFFF, False),
        ("0x80000000_0xffffffff", FULL_RANGE, True),
    ],
)
def test_a_range_excludes_its_end_but_for_the_last(text: str, position: int, held: bool) -> None:
    """A range excludes its end, except for the last range, which includes the highest position."""
    assert (position in BundleRange.parse(text)) is held


@pytest.mark.parametrize(
    ("name", "position"),
    [
        ("", 0),
        ("123456789", 0xCBF43926),  # the check value in every catalogue of CRCs
        ("The quick brown fox jumps over the lazy dog", 0x414FA339),
    ],
)
def test_a_position_is_the_crc_32_of_the_name(name: str, position: int) -> None:
    """The position of a name is its CRC-32, by published check values."""
    assert position_of(name) == position


def test_a_name_is_hashed_as_utf_8() -> None:
    """The position of a name beyond ASCII is the CRC-32 of its bytes in UTF-8."""
    assert position_of("ü") == zlib.crc32(b"\xc3\xbc") == 0x63D969D5
    assert 0 <= position_of("persistent://t/n/主題") <= FULL_RANGE


def test_a_coordinator_is_placed_by_its_partition() -> None:
    """Coordinator 7 is partition 7 of the assignment topic."""
    assert tc_topic(7) == "persistent://pulsar/system/transaction_coordinator_assign-partition-7"


def test_boundaries_make_ranges_without_gaps() -> None:
    """Boundaries in any order become ascending ranges without gaps."""
    made = ranges_of(["0xffffffff", "0x00000000", "0x80000000", "0x40000000"])
    assert [str(each) for each in made] == ["0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xffffffff"]
    assert ranges_of(["0x00000000"]) == ()


@given(st.sets(st.integers(1, FULL_RANGE - 1), max_size=20), positions)
def test_exactly_one_range_holds_a_position(cuts: set[int], position: int) -> None:
    """The range that is found is the only one of the namespace that holds the position."""
    ranges = ranges_of([f"0x{cut:08x}" for cut in {0, FULL_RANGE, *cuts}])
    assert [each for each in ranges if position in each] == [range_holding(ranges, position)]


WHOLE = BundleRange(0, 1000)


@pytest.mark.parametrize(
    ("topics", "cut"),
    [
        ([], None),
        ([500], None),
        ([100, 300], 200),
        ([300, 100], 200),
        ([100, 301], 200),
        ([100, 200, 900], 150),
        ([100, 200, 300, 900], 250),
        ([400, 400], 400),
        ([400, 401], 400),
        ([0, 0], None),
        ([0, 1], None),
        ([0, 2], 1),
    ],
)
def test_halves_are_cut_between_the_middle_topics(topics: list[int], cut: int | None) -> None:
    """A bundle is cut between its middle topics as by the broker's `TopicCountEquallyDivideBundleSplitAlgorithm`."""
    expected = None if cut is None else (BundleRange(0, cut), BundleRange(cut, 1000))
    assert halves_by_topic_count(WHOLE, topics) == expected


@given(bundles, st.data())
def test_halves_part_the_topics_evenly(bundle: BundleRange, data: st.DataObject) -> None:
    """The halves tile the bundle and part its topics in the middle, or one before if the middle ones are adjacent."""
    topics = sorted(data.draw(st.sets(st.integers(bundle.lower, bundle.upper - 1), max_size=20)))
    halves = halves_by_topic_count(bundle, topics)
    if halves is None:
        assert len(topics) <= 1 or topics[:2] == [bundle.lower, bundle.lower + 1]
        return
    lower, upper = halves
    assert (lower.lower, lower.upper, upper.upper) == (bundle.lower, upper.lower, bundle.upper)
    middle = len(topics) // 2
    below = sum(topic in lower for topic in topics)
    # Neighbouring positions leave no room between them: the cut is the lower one, which then belongs to the upper half.
    assert below == middle - (topics[middle] - topics[middle - 1] == 1)
