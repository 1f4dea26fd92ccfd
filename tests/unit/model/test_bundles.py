"""Names of Pulsar's things: bundles, topics, holders of backlogs, tables and clusters."""

from __future__ import annotations

import re
import zlib

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.checks.views import MACROS
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.bundles import (
    FULL_RANGE,
    BundleRange,
    halves_by_topic_count,
    position_of,
    range_holding,
    ranges_of,
    tc_topic,
)
from pulsar_steward.model.cluster import require_cluster_name
from pulsar_steward.model.finding import Severity
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
from pulsar_steward.model.tables import COLLECTED, DIAGNOSED, Table
from pulsar_steward.model.topics import OF_USERS, PARTITION_END, is_of_users, partitioned_topic
from tests.cases import row_by_row

positions = st.integers(0, FULL_RANGE)
bundles = st.tuples(positions, positions).filter(lambda ends: ends[0] < ends[1]).map(lambda ends: BundleRange(*ends))


@given(bundles)
def test_a_range_reads_back_as_it_is_written(bundle: BundleRange) -> None:
    """A range is parsed back from its text, which has eight hexadecimal digits for each boundary."""
    assert BundleRange.parse(str(bundle)) == bundle
    assert len(str(bundle)) == len("0x00000000_0xffffffff")


@row_by_row(
    "text",
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
)
def test_what_is_no_range_is_refused(text: str) -> None:
    """Boundaries that are missing, no numbers, not rising or beyond 32 bits are errors."""
    with pytest.raises(ValueError, match=r"is not a bundle range|invalid literal"):
        BundleRange.parse(text)


@row_by_row(
    "text, position, held",
    ("0x00000000_0x80000000", 0, True),
    ("0x00000000_0x80000000", 0x7FFFFFFF, True),
    ("0x00000000_0x80000000", 0x80000000, False),
    ("0x80000000_0xffffffff", 0x80000000, True),
    ("0x80000000_0xffffffff", 0x7FFFFFFF, False),
    ("0x80000000_0xffffffff", FULL_RANGE, True),
)
def test_a_range_excludes_its_end_but_for_the_last(text: str, position: int, held: bool) -> None:
    assert (position in BundleRange.parse(text)) is held


@row_by_row(
    "name, position",
    ("", 0),
    ("123456789", 0xCBF43926),  # the check value in every catalogue of CRCs
    ("The quick brown fox jumps over the lazy dog", 0x414FA339),
)
def test_a_position_is_the_crc_32_of_the_name(name: str, position: int) -> None:
    assert position_of(name) == position


def test_a_name_is_hashed_as_utf_8() -> None:
    assert position_of("ü") == zlib.crc32(b"\xc3\xbc") == 0x63D969D5
    assert 0 <= position_of("persistent://t/n/主題") <= FULL_RANGE


def test_a_coordinator_is_placed_by_its_partition() -> None:
    """Coordinator 7 is partition 7 of the assignment topic."""
    assert tc_topic(7) == "persistent://pulsar/system/transaction_coordinator_assign-partition-7"


def test_boundaries_make_ranges_without_gaps() -> None:
    made = ranges_of(["0xffffffff", "0x00000000", "0x80000000", "0x40000000"])
    assert [str(each) for each in made] == ["0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xffffffff"]
    assert ranges_of(["0x00000000"]) == ()


@given(st.sets(st.integers(1, FULL_RANGE - 1), max_size=20), positions)
def test_exactly_one_range_holds_a_position(cuts: set[int], position: int) -> None:
    """The range that is found is the only one of the namespace that holds the position."""
    ranges = ranges_of([f"0x{cut:08x}" for cut in {0, FULL_RANGE, *cuts}])
    assert [each for each in ranges if position in each] == [range_holding(ranges, position)]


WHOLE = BundleRange(0, 1000)


@row_by_row(
    "topics, cut",
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
)
def test_halves_are_cut_between_the_middle_topics(topics: list[int], cut: int | None) -> None:
    """A bundle is cut between its middle topics as by the broker's `TopicCountEquallyDivideBundleSplitAlgorithm`."""
    expected = None if cut is None else (BundleRange(0, cut), BundleRange(cut, 1000))
    assert halves_by_topic_count(WHOLE, topics) == expected


@given(bundles, st.data())
def test_halves_part_the_topics_evenly(bundle: BundleRange, data: st.DataObject) -> None:
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


NAMES = {
    "persistent://a/b/t-partition-12": "persistent://a/b/t",
    "persistent://a/b/t-partition-1-partition-0": "persistent://a/b/t-partition-1",
    "persistent://a/b/t-partition-x": "persistent://a/b/t-partition-x",
    "persistent://a/b/t-partition-٣": "persistent://a/b/t-partition-٣",
    "persistent://a/b/t": "persistent://a/b/t",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_partition_belongs_to_its_topic(name: str) -> None:
    """Only a number after `-partition-` marks a partition, and the pattern for queries agrees."""
    assert partitioned_topic(name) == NAMES[name]
    assert re.sub(PARTITION_END, "", name) == NAMES[name]


@pytest.mark.parametrize("tenant", ["pulsar", "pulsars", "a"])
@pytest.mark.parametrize("name", ["t", "__change_events", "_t", "t__", "__t-partition-0"])
@pytest.mark.parametrize("domain", ["persistent", "non-persistent", "segment"])
def test_topics_of_users_are_the_same_for_queries(domain: str, tenant: str, name: str) -> None:
    """A topic is Pulsar's own by its tenant or by the beginning of its name, and queries agree."""
    inside = "topic/" if domain == "segment" else ""
    topic = f"{domain}://{tenant}/b/{inside}{name}"
    assert is_of_users(topic) == (tenant != "pulsar" and not name.startswith("__"))
    query = f"select {OF_USERS} from (select ? as topic)"  # noqa: S608 - of the library's own words
    assert duckdb.execute(query, [topic]).fetchall() == [(is_of_users(topic),)]


@pytest.mark.parametrize(
    ("topic", "namespace"),
    [
        ("persistent://a/b/c-partition-0", "a/b"),
        ("non-persistent://a/b/c", "a/b"),
        ("segment://a/b/c/0000-3fff-0", "a/b"),
        ("persistent://a/cluster/b/c", "a/cluster/b"),
    ],
)
def test_queries_find_the_namespace_of_a_topic(topic: str, namespace: str) -> None:
    """By its name alone; of a segment too, whose own name has a slash; an old name has the cluster in it."""
    connection = duckdb.connect()
    for macro in MACROS:
        connection.execute(macro)
    assert connection.execute("select namespace_of(?)", [topic]).fetchall() == [(namespace,)]


@pytest.mark.parametrize(
    ("segment", "bundle"),
    [
        ("0000-3fff-0", "0x00000000_0x40000000"),
        ("4000-7fff-1", "0x40000000_0x80000000"),
        ("8000-bfff-2", "0x80000000_0xc0000000"),
        ("c000-ffff-3", "0x00000000_0x40000000"),
    ],
)
def test_a_segment_is_in_the_bundle_of_its_whole_name(segment: str, bundle: str) -> None:
    """As three brokers of 5.0.1 served the four segments of ``topic://public/sc/one``."""
    assert position_of(f"segment://public/sc/one/{segment}") in BundleRange.parse(bundle)


@pytest.mark.parametrize("table", [*COLLECTED, *DIAGNOSED], ids=lambda table: table.name)
def test_a_table_says_what_it_holds(table: Table) -> None:
    """A table's column names are unique and in snake case, and every column has a meaning."""
    assert len(set(table.names)) == len(table.names)
    assert all(name.isidentifier() and name == name.lower() for name in table.names)
    assert all(column.meaning for column in table.columns)
    assert table.rows.startswith("one row")


def test_tables_have_names_of_their_own() -> None:
    """A table's name is its folder, so no two share one."""
    names = [table.name for table in (*COLLECTED, *DIAGNOSED)]
    assert len(set(names)) == len(names)


def test_severities_rise() -> None:
    """The ranks of severities rise from info to critical."""
    ranks = [Severity.INFO.rank, Severity.WARNING.rank, Severity.CRITICAL.rank]
    assert ranks == [0, 1, 2]


@pytest.mark.parametrize("check_id", BY_ID)
def test_a_check_has_words(check_id: str) -> None:
    """Every check is listed under its own id, with advice and a source."""
    info = BY_ID[check_id]
    assert info.check_id == check_id
    assert info.title
    assert info.source
    assert all(info.advice)


@pytest.mark.parametrize("name", ["east", "a", "9", "east-1.prod_b", "E..1"])
def test_a_name_that_makes_a_part_of_a_path(name: str) -> None:
    """A valid cluster name is returned unchanged."""
    assert require_cluster_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", "-a", "a b", "a\n", "é"])
def test_any_other_name_is_refused(name: str) -> None:
    """A name with other characters is refused, and the error tells which option gives another name."""
    words = "cluster name .*: use letters, digits, '.', '_' and '-' only"
    with pytest.raises(ConfigurationError, match=f"{words}$"):
        require_cluster_name(name)
    with pytest.raises(ConfigurationError, match=rf"{words} \(give one by --cluster\)$"):
        require_cluster_name(name, named_by="--cluster")


KINDS_BY_NAME = {
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


@pytest.mark.parametrize(("name", "kind"), KINDS_BY_NAME.items())
def test_a_cursor_is_whose_its_name_says(name: str, kind: HolderKind) -> None:
    """A cursor's kind is the first whose pattern matches its name, in Python as in DuckDB; else it is a user's."""
    assert kind_of_cursor(name) is kind
    query = "select regexp_matches(?, ?)"
    matching = [each for each, pattern in PATTERNS.items() if duckdb.execute(query, [name, pattern]).fetchall()[0][0]]
    assert (matching or [HolderKind.SUBSCRIPTION])[0] is kind


def test_every_kind_says_how_it_comes_to_hold_less() -> None:
    """Each holder has words, a remedy and what is taken from it, and those of Pulsar's own say more than a name."""
    holders = [Holder(name=name, entries=1) for name in KINDS_BY_NAME]
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
