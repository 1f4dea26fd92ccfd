"""Transaction coordinators are located by arithmetic."""

from __future__ import annotations

from collections import Counter

from pulsar_steward.collect.bundles import SystemBundle, placement
from pulsar_steward.model.bundles import BundleRange, ranges_of

SIXTEEN = ranges_of([hex(min(number * 0x10000000, 0xFFFFFFFF)) for number in range(17)])


def test_sixteen_coordinators_fall_into_eight_of_sixteen_bundles() -> None:
    """The computed counts of coordinators by bundle are those of a real cluster: 3, 3, 2, 2, 2, 2, 1, 1."""
    placed = placement(16, [SystemBundle(str(each), "a:1", owner_known=True) for each in SIXTEEN])

    assert sorted(Counter(each.bundle for each in placed).values()) == [1, 1, 2, 2, 2, 2, 3, 3]
    assert {each.broker for each in placed} == {"a:1"}
    assert [each.coordinator for each in placed] == list(range(16))


def test_an_owned_half_counts_before_the_bundle_that_it_was_cut_from() -> None:
    """A coordinator is placed in the owned half of a split bundle rather than in the whole bundle without owner."""
    whole = SystemBundle(str(BundleRange(0, 0xFFFFFFFF)), None, owner_known=True)
    half = SystemBundle(str(BundleRange(0, 0x80000000)), "a:1", owner_known=True)

    placed = placement(16, [whole, half])

    inside = [each.position < 0x80000000 for each in placed]
    assert (len(inside), set(inside)) == (16, {True, False})
    assert [(each.bundle, each.broker) for each in placed] == [
        (half.bundle, "a:1") if lower else (whole.bundle, None) for lower in inside
    ]


def test_a_coordinator_in_no_known_bundle_is_unknown() -> None:
    """A coordinator's bundle and broker are unknown when no bundles are known."""
    assert [(each.bundle, each.broker, each.broker_known) for each in placement(2, [])] == [(None, None, False)] * 2


def test_a_bundle_that_an_unread_broker_may_own_leaves_its_coordinators_unknown() -> None:
    """A coordinator's broker is unknown when it is unknown who owns the coordinator's bundle."""
    (first,) = placement(1, [SystemBundle("0x00000000_0xffffffff", None, owner_known=False)])

    assert (first.bundle, first.broker, first.broker_known) == ("0x00000000_0xffffffff", None, False)
