"""Figures in words, and canonical JSON."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.model.canonical import canonical_json, digest
from pulsar_steward.model.units import (
    bytes_in_words,
    counted,
    number_in_words,
    seconds_in_words,
    throughput_in_words,
    time_in_words,
)
from tests.cases import row_by_row
from tests.unit.model.processes import printed_by_hash_seed


@row_by_row(
    "count, exact, rounded",
    (-1, "unlimited", "-1 B"),
    (0, "0 B", "0 B"),
    (1023, "1,023 B", "1,023 B"),
    (1024, "1 KiB", "1.0 KiB"),
    (5 * 1024**3 // 4, "1.25 GiB", "1.2 GiB"),
    (1536 * 1024**2, "1.5 GiB", "1.5 GiB"),
    (2 * 1024**4, "2 TiB", "2.0 TiB"),
    (2 * 1024**6, "2,048 PiB", "2,048.0 PiB"),
    (0.4, "0 B", "0 B"),
)
def test_bytes_in_a_unit_that_fits(count: float, exact: str, rounded: str) -> None:
    """Bytes are written in units of powers of 1024, exact or rounded to one decimal."""
    assert (bytes_in_words(count), bytes_in_words(count, rounded=True)) == (exact, rounded)


@row_by_row(
    "count, exact, rounded",
    (-1, "unlimited", "-1 s"),
    (0, "0 s", "0 s"),
    (90, "90 s", "90 s"),
    (120, "2 min", "2.0 min"),
    (750, "750 s", "12.5 min"),
    (36 * 3600, "36 h", "36.0 h"),
    (20 * 86_400, "20 d", "20.0 d"),
    (2_000_000, "2,000,000 s", "23.1 d"),
)
def test_seconds_in_a_unit_that_fits(count: float, exact: str, rounded: str) -> None:
    """A duration is written exactly to the second by default, and with one decimal where it is to be rounded."""
    assert (seconds_in_words(count), seconds_in_words(count, rounded=True)) == (exact, rounded)


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0"), (1234, "1,234"), (0.254, "0.25"), (99.5, "99.50"), (1e6 + 0.5, "1,000,000")]
)
def test_numbers_with_as_many_decimals_as_tell(number: float, words: str) -> None:
    assert number_in_words(number) == words


def test_throughput_and_counts() -> None:
    """Throughput is written in powers of 1000, and a noun is singular or plural by its count."""
    assert throughput_in_words(1_540_000) == "1.5 MB/s"
    assert [counted(1, "topic"), counted(2000, "topic"), counted(3, "entry", "entries")] == [
        "1 topic",
        "2,000 topics",
        "3 entries",
    ]


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=30))])
def test_a_time_is_in_utc_wherever_it_was_read(zone: timezone) -> None:
    """A time of any zone is written in UTC, to the minute or on request to the second."""
    moment = datetime(2026, 1, 31, 23, 59, 58, 999_999, UTC).astimezone(zone)
    assert time_in_words(moment) == "2026-01-31 23:59 UTC"
    assert time_in_words(moment, seconds=True) == "2026-01-31 23:59:58 UTC"
    assert time_in_words(moment, date=False) == "23:59 UTC"
    assert time_in_words(moment, date=False, seconds=True) == "23:59:58 UTC"


texts = st.text(st.characters(exclude_categories=["Cs"]))
keys = st.text(st.characters(max_codepoint=127))
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def typed(value: Any) -> Any:
    """The value with its types spelt out: in Python True equals 1, in JSON it does not."""
    match value:
        case dict():
            return {key: typed(item) for key, item in value.items()}
        case list():
            return [typed(item) for item in value]
        case _:
            return (type(value).__name__, value)


@given(plain)
def test_nothing_is_lost(value: Any) -> None:
    """Canonical JSON reads back as the same value, and has sorted keys and no extra white space."""
    document = canonical_json(value)
    assert typed(json.loads(document)) == typed(value)
    assert document == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@given(plain, plain)
def test_equal_digest_means_equal_content(one: Any, other: Any) -> None:
    """Two values share a digest exactly if they are the same."""
    assert (digest(one) == digest(other)) == (typed(one) == typed(other))


@given(st.dictionaries(keys, st.integers(), min_size=2))
def test_the_order_of_keys_does_not_count(value: dict[str, int]) -> None:
    """The order of an object's keys does not change its canonical bytes."""
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


def test_a_digest_is_sha_256_of_the_document() -> None:
    assert canonical_json({"b": [1, "ü"], "a": None}) == '{"a":null,"b":[1,"ü"]}'.encode()
    assert digest({"b": [1, "ü"], "a": None}) == hashlib.sha256('{"a":null,"b":[1,"ü"]}'.encode()).hexdigest()


@row_by_row(
    "value",
    1.0,
    float("nan"),
    [1, 2.5],
    (0.1,),
    {"a": {"b": [0.5]}},
    {1.5: "a key"},
    object(),
    {"a": object()},
    {1, 0.5},
)
def test_what_has_no_single_form_is_refused(value: object) -> None:
    """A value with a float, or of a type that JSON does not know, is refused."""
    with pytest.raises(TypeError):
        canonical_json(value)


def test_a_decimal_is_text() -> None:
    """A decimal number is written as text with all its digits."""
    assert canonical_json([Decimal("0.10")]) == b'["0.10"]'


def test_a_set_has_one_order_in_every_process() -> None:
    """The digest of a set is the same in processes with different hash seeds."""
    code = "from pulsar_steward.model.canonical import digest; print(digest({'a', 'b', 'c', 'd', 'e'}))"
    assert printed_by_hash_seed(code) == {f"{digest(['a', 'b', 'c', 'd', 'e'])}\n".encode()}
