"""Namespaces are placed within ceilings and constraints, with few bytes moved, the same in whatever order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.model.units import GIB
from pulsar_steward.planners.clusters.model import Holding, LogicalCluster, Member, Resource
from pulsar_steward.planners.clusters.place import NamespacePlacement, place
from tests.cases import cases

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

TENANTS = ("a", "b", "c", "d")
NAMES = ("east", "north", "south", "west")

Homes: TypeAlias = "dict[tuple[str, str | None], str | None]"
"""Member of each holding, by its namespace and the member that has it now."""


def member(name: str, topics: int | None = 100, **fields: Any) -> Member:
    """A member with a ceiling of topics."""
    return Member(name=name, ceilings={} if topics is None else {Resource.TOPICS: topics}, **fields)


def holding(namespace: str, at: str | None, topics: int = 10, stored: int = 0, **fields: Any) -> Holding:
    """A namespace at a member, or a new one, with its topics and its stored bytes."""
    load = {Resource.TOPICS: topics, Resource.STORED_BYTES: stored}
    return Holding(namespace=namespace, member=at, load=load, **fields)


def placed(members: list[Member], holdings: list[Holding], *together: set[str]) -> NamespacePlacement:
    """The placement of these."""
    groups = tuple(frozenset(each) for each in together)
    return place(LogicalCluster(members=tuple(members), holdings=tuple(holdings), together=groups))


def routes(placement: NamespacePlacement) -> list[tuple[str, str | None, str]]:
    """The moves without their reasons."""
    return [(move.namespace, move.source, move.target) for move in placement.moves]


@st.composite
def clusters(draw: DrawFn) -> LogicalCluster:
    """A small logical cluster, over its ceilings or not, with constraints of all kinds."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    amounts = st.integers(0, 30)
    members = [
        Member(
            name=name,
            region=draw(st.sampled_from((None, "eu", "us"))) if draw(st.booleans()) else "eu",
            ceilings={each: draw(amounts) * 2 for each in draw(st.sets(st.sampled_from(list(Resource)), max_size=2))},
            own=draw(st.dictionaries(st.sampled_from(list(Resource)), st.integers(0, 5), max_size=1)),
            leaving=draw(st.integers(0, 9)) == 0,
            whole=draw(st.integers(0, 9)) > 0,
        )
        for name in names
    ]
    holdings = []
    for number in range(draw(st.integers(0, 8))):
        namespace = f"{draw(st.sampled_from(TENANTS))}/n{number}"
        homes: list[str | None] = list(draw(st.lists(st.sampled_from(names), max_size=2, unique=True))) or [None]
        holdings += [
            Holding(
                namespace=namespace,
                member=home,
                load={each: draw(amounts) for each in Resource},
                growth=draw(st.none() | st.just({Resource.TOPICS: 1})),
                allowed=draw(st.none() | st.none() | st.frozensets(st.sampled_from(names))),
                pinned=draw(st.sampled_from((None, None, None, "it is isolated"))),
            )
            for home in homes
        ]
    together = draw(st.sampled_from(((), ("a",), ("a", "b"), ("a b",), ("a b", "c"))))
    groups = tuple(frozenset(each.split()) for each in together)
    return LogicalCluster(members=tuple(members), holdings=tuple(holdings), together=groups)


def loads_of(
    cluster: LogicalCluster, homes: dict[tuple[str, str | None], str | None]
) -> dict[str, dict[Resource, int]]:
    """Loads of each member, counted anew."""
    loads = {each.name: {it: each.own.get(it, 0) for it in Resource} for each in cluster.members}
    for each in cluster.holdings:
        if (home := homes[each.namespace, each.member]) is not None:
            for resource, amount in each.load.items():
                loads[home][resource] += amount
    return loads


def excess_of(cluster: LogicalCluster, homes: Homes, name: str) -> float:
    """How far a member is over its ceilings; of one that leaves, the number of its namespaces."""
    (found,) = (each for each in cluster.members if each.name == name)
    if found.leaving:
        return sum(home == name for home in homes.values())
    loads = loads_of(cluster, homes)[name]
    return sum(max(loads[it] - top, 0) / max(top, 1) for it, top in found.ceilings.items())


def homes_of(cluster: LogicalCluster, placement: NamespacePlacement | None = None) -> Homes:
    """Members as they are, or after a placement."""
    homes = {(each.namespace, each.member): each.member for each in cluster.holdings}
    for move in placement.moves if placement else ():
        homes[move.namespace, move.source] = move.target
    return homes


@given(clusters(), st.randoms(use_true_random=False))
def test_the_same_in_whatever_order(cluster: LogicalCluster, chance: Any) -> None:
    def shuffled(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(chance.sample(values, len(values)))

    mixed = LogicalCluster(
        members=shuffled(cluster.members), holdings=shuffled(cluster.holdings), together=shuffled(cluster.together)
    )
    assert place(mixed) == place(cluster)


@given(clusters())
def test_no_member_is_worse_off(cluster: LogicalCluster) -> None:
    """No member is further over its ceilings than before, and none takes more than there is room for."""
    placement = place(cluster)
    before, after = homes_of(cluster), homes_of(cluster, placement)
    for each in cluster.members:
        assert excess_of(cluster, after, each.name) <= excess_of(cluster, before, each.name)
    loads = loads_of(cluster, after)
    held = {(each.namespace, each.member): each for each in cluster.holdings}
    tops = {each.name: each.ceilings for each in cluster.members}
    for move in placement.moves:
        gained = held[move.namespace, move.source].load
        assert all(loads[move.target][it] <= top for it, top in tops[move.target].items() if gained[it])
    for use in (*placement.before, *placement.after):
        homes = before if use in placement.before else after
        assert {it.resource: it.load for it in use.uses} == loads_of(cluster, homes)[use.member]


@given(clusters())
def test_no_constraint_is_broken(cluster: LogicalCluster) -> None:
    placement = place(cluster)
    held = {(each.namespace, each.member): each for each in cluster.holdings}
    members = {each.name: each for each in cluster.members}
    for move in placement.moves:
        moved, target = held[move.namespace, move.source], members[move.target]
        assert moved.pinned is None
        assert (target.leaving, target.whole) == (False, True)
        assert moved.allowed is None or target.name in moved.allowed
        assert move.source is None or members[move.source].region == target.region
    after = homes_of(cluster, placement)
    served = [(namespace, home) for (namespace, _), home in after.items() if home is not None]
    assert len(served) == len(set(served))  # replicated ones are at as many members as before
    assert not {(move.namespace, move.target) for move in placement.moves} & held.keys()
    for group in cluster.together:
        assert not whole(group, homes_of(cluster)) or whole(group, after)


def whole(group: frozenset[str], homes: Homes) -> set[str]:
    """Members that hold all namespaces of a group, of those that are anywhere."""
    there = [(namespace, home) for (namespace, _), home in homes.items() if namespace.partition("/")[0] in group]
    names = {namespace for namespace, home in there if home is not None}
    at = {home: {name for name, each in there if each == home} for _, home in there if home is not None}
    return {home for home, held in at.items() if held == names}


@given(clusters())
def test_each_move_helps(cluster: LogicalCluster) -> None:
    """Without a move, its source would be further over its ceilings; tenants that stay together are one move."""
    placement = place(cluster)
    after = homes_of(cluster, placement)
    group_of = {tenant: group for group in cluster.together for tenant in group}
    units: dict[tuple[object, str], list[str]] = {}
    for move in placement.moves:
        if move.source is not None:
            key = group_of.get(move.namespace.partition("/")[0], move.namespace)
            units.setdefault((key, move.source), []).append(move.namespace)
    for (_, source), namespaces in units.items():
        back = after | {(each, source): source for each in namespaces}
        assert excess_of(cluster, back, source) > excess_of(cluster, after, source)


@given(clusters())
def test_whatever_would_help_is_moved_or_explained(cluster: LogicalCluster) -> None:
    """A namespace whose move would relieve a member in trouble has a reason, and so has a new one without a place."""
    placement = place(cluster)
    after = homes_of(cluster, placement)
    moved = {(move.namespace, move.source) for move in placement.moves}
    told = {(each.namespace, each.member): each.why for each in (*placement.unplaced, *placement.dropped)}
    assert all(told.values())
    assert not moved & told.keys()
    for each in cluster.holdings:
        if each.member is None:
            assert ((each.namespace, None) in moved) != ((each.namespace, None) in told)
        elif (each.namespace, each.member) not in moved:
            without = after | {(each.namespace, each.member): None}
            if excess_of(cluster, without, each.member) < excess_of(cluster, after, each.member):
                assert (each.namespace, each.member) in told


@cases(
    "sizes, moved",
    ("one that suffices", {"a/s": (30, 3), "a/m": (40, 9), "a/l": (60, 50)}, {"a/s"}),
    ("two small ones", {"a/s": (15, 1), "a/m": (16, 2), "a/l": (95, 50)}, {"a/s", "a/m"}),
    ("the smallest is not needed", {"a/s": (5, 1), "a/m": (30, 2), "a/l": (95, 50)}, {"a/m"}),
    ("nothing, under the ceiling", {"a/s": (50, 1), "a/m": (50, 1)}, set()),
)
def test_the_fewest_bytes_are_moved(sizes: dict[str, tuple[int, int]], moved: set[str]) -> None:
    """Topics and GiB of each namespace of a member that takes 100 topics; another one has room."""
    holdings = [holding(name, "east", topics, stored * GIB) for name, (topics, stored) in sizes.items()]
    placement = placed([member("east"), member("west", 1000)], holdings)
    assert routes(placement) == [(name, "east", "west") for name in sorted(moved)]
    assert placement.stored_bytes == sum(sizes[name][1] for name in moved) * GIB


OVER = [holding("a/x", "east", 60), holding("b/y", "east", 60, 1)]
EAST = member("east")


@cases(
    "members, holdings, together, moves, why",
    ("one has room", [EAST, member("west")], OVER, [], [("a/x", "east", "west")], {}),
    (
        "the least full one",
        [EAST, member("north"), member("west")],
        [*OVER, holding("c/z", "north", 1)],
        [],
        [("a/x", "east", "west")],
        {},
    ),
    (
        "none in the region",
        [member("east", region="eu"), member("west", region="us")],
        OVER,
        [],
        [],
        {"a/x": "in another region: west", "b/y": "in another region: west"},
    ),
    (
        "another is allowed",
        [EAST, member("west")],
        [holding("a/x", "east", 60, allowed=frozenset({"east"})), OVER[1]],
        [],
        [("b/y", "east", "west")],
        {},
    ),
    (
        "replicated there",
        [EAST, member("west")],
        [*OVER, holding("a/x", "west", 1)],
        [],
        [("b/y", "east", "west")],
        {},
    ),
    (
        "no room",
        [EAST, member("west", 50)],
        OVER,
        [],
        [],
        {"a/x": "no room (topics): west", "b/y": "no room (topics): west"},
    ),
    (
        "isolated",
        [EAST, member("west")],
        [holding("a/x", "east", 120, pinned="it is isolated")],
        [],
        [],
        {"a/x": "it is isolated"},
    ),
    (
        "tenants that stay together",
        [EAST, member("west")],
        [*OVER, holding("c/z", "east", 20)],
        [{"a", "c"}],
        [("a/x", "east", "west"), ("c/z", "east", "west")],
        {},
    ),
    ("one was not read", [EAST, member("north", whole=False), member("west")], OVER, [], [("a/x", "east", "west")], {}),
    ("alone", [EAST], OVER, [], [], {"a/x": "there is no other member", "b/y": "there is no other member"}),
    (
        "one leaves",
        [member("east", leaving=True), member("west", 100)],
        OVER,
        [],
        [("a/x", "east", "west")],
        {"b/y": "no room (topics): west"},
    ),
    ("a new one", [EAST, member("west")], [OVER[0], holding("c/z", None, 10)], [], [("c/z", None, "west")], {}),
    (
        "a new one of a tenant that stays",
        [EAST, member("west")],
        [OVER[0], holding("a/z", None, 10)],
        [{"a"}],
        [("a/z", None, "east")],
        {},
    ),
    ("a name that is there", [EAST], [OVER[0], holding("a/x", None)], [], [], {"a/x": "a/x is there already"}),
)
def test_where_namespaces_go(
    members: list[Member],
    holdings: list[Holding],
    together: list[set[str]],
    moves: list[tuple[str, str | None, str]],
    why: dict[str, str],
) -> None:
    """Each constraint by itself; whatever cannot be moved has a reason for each member."""
    placement = placed(members, holdings, *together)
    assert routes(placement) == moves
    assert {each.namespace: each.why for each in placement.unplaced} == why


def test_what_every_other_member_serves_only_loses_the_one_that_leaves() -> None:
    """If it is replicated to them; another one of the same name would lose its messages, loaded or not."""
    members = [member("east", leaving=True), member("north"), member("west")]
    everywhere = frozenset(each.name for each in members)
    held = [
        each
        for name in everywhere
        for each in (
            holding("a/unloaded", name, 0),
            holding("a/isolated", name, 0, pinned="its policies could not be read"),
            holding("a/sent", name, 5, replicated_to=everywhere),
            holding("a/same-name", name, 5),
        )
    ]
    placement = placed(members, [*held, holding("a/two", "east", replicated_to=everywhere), holding("a/two", "west")])
    assert [(each.namespace, each.member) for each in placement.dropped] == [("a/sent", "east")]
    unseen = "nothing is loaded there, what it stores is not known; "
    assert {each.namespace: each.why for each in placement.unplaced} == {
        "a/isolated": f"{unseen}its policies could not be read",
        "a/unloaded": f"{unseen}serving it already: north, west",
        "a/same-name": "serving it already: north, west",
    }
    assert routes(placement) == [("a/two", "east", "north")]
    assert {each.member: each.namespaces for each in placement.after} == {"east": 3, "north": 5, "west": 5}


@cases(
    "ceilings, unbounded",
    ("CPU drives it out", {Resource.MILLICPU: 100}, ("CPU",)),
    ("topics do", {Resource.TOPICS: 100, Resource.MILLICPU: 1000}, ()),
)
def test_a_move_says_what_is_not_known_of_its_target(ceilings: dict[Resource, int], unbounded: tuple[str, ...]) -> None:
    """Of a new member only topics are known."""
    held = [
        Holding(namespace=name, member="east", load={Resource.TOPICS: 60, Resource.MILLICPU: 60})
        for name in ("a/x", "b/y")
    ]
    (move,) = placed([Member(name="east", ceilings=ceilings), member("new")], held).moves
    assert (move.target, move.unbounded) == ("new", unbounded)


def test_the_reason_of_a_move() -> None:
    (move,) = placed([EAST, member("west")], OVER).moves
    assert move.why == "east is over its ceiling of topics; west is the least full member that may take it"


@cases(
    "topics, growth, ceiling, days",
    ("in some days", 60, 4, 100, 10.0),
    ("not known", 60, None, 100, None),
    ("no ceiling", 60, 4, None, None),
    ("never", 60, -1, 100, math.inf),
    ("over it", 120, 4, 100, 0.0),
)
def test_the_day_when_a_member_is_full(
    topics: int, growth: int | None, ceiling: int | None, days: float | None
) -> None:
    """The forecast takes the growth of a day, whose absence is no 0."""
    grown = None if growth is None else {Resource.TOPICS: growth}
    (use,) = placed([member("east", ceiling)], [holding("a/x", "east", topics, growth=grown)]).before
    assert (use.first.days if use.first else None) == days


@pytest.mark.parametrize("holdings", [[holding("a/x", "nowhere")], [holding("a/x", "east")] * 2])
def test_a_cluster_that_makes_no_sense_is_refused(holdings: list[Holding]) -> None:
    with pytest.raises(ValueError, match=r"nowhere is no member|is given twice"):
        placed([EAST], holdings)
