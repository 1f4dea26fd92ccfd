"""Canonical JSON: one value, one sequence of bytes, one digest."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.model.canonical import canonical_json, digest
from tests.unit.model.processes import printed_by_hash_seed

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
    """A digest is the SHA-256 of the canonical document."""
    assert canonical_json({"b": [1, "ü"], "a": None}) == '{"a":null,"b":[1,"ü"]}'.encode()
    assert digest({"b": [1, "ü"], "a": None}) == hashlib.sha256('{"a":null,"b":[1,"ü"]}'.encode()).hexdigest()


@pytest.mark.parametrize(
    "value",
    [1.0, float("nan"), [1, 2.5], (0.1,), {"a": {"b": [0.5]}}, {1.5: "a key"}, object(), {"a": object()}, {1, 0.5}],
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
