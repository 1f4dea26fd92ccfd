"""Positions of topics in a namespace's hash range."""

import pytest

from lab import placement

HALVES = {"a:1": ["pulsar/system/0x00000000_0x80000000"], "b:1": ["pulsar/system/0x80000000_0xffffffff"]}


def test_the_position_is_the_crc_32_of_the_name() -> None:
    assert placement.position("123456789") == 0xCBF43926


@pytest.mark.parametrize(
    ("bundle", "held"),
    [
        ("0xcbf43926_0xcbf43927", True),
        ("0xcbf43925_0xcbf43926", False),
        ("0xcbf43927_0xffffffff", False),
        ("tenant/ns/0x00000000_0xffffffff", True),
    ],
)
def test_ranges_are_open_at_the_upper_end(bundle: str, held: bool) -> None:
    """A hash on the boundary of two bundles belongs to the bundle that begins there."""
    assert placement.holds(bundle, "123456789") is held


def test_every_coordinator_is_counted_once() -> None:
    """Two brokers that own the whole range hold all the coordinators between them."""
    counted = placement.count_by_broker(16, HALVES)
    assert set(counted) == {"a:1", "b:1"}
    assert sum(counted.values()) == 16
    assert all(counted.values())


@pytest.mark.parametrize("bundles", [[], ["public/default/0x00000000_0xffffffff"]])
def test_bundles_of_other_namespaces_hold_no_coordinator(bundles: list[str]) -> None:
    assert placement.count_by_broker(16, {"a:1": bundles}) == {"a:1": 0}
