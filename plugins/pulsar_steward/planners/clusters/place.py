"""Placement of namespaces over the members of a logical cluster: the search, a pure function.

Members over a ceiling give namespaces away, the fewest bytes that make it fit; then new namespaces are placed. A
namespace is moved at most once, straight to a member with room: nothing is moved to make room for another one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from pulsar_steward.model.units import named
from pulsar_steward.planners.clusters.model import RESOURCES, Holding, LogicalCluster, MemberUse, used_part, uses_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pulsar_steward.planners.clusters.model import Resource

SWAPPED, TRIED = 50, 20
"""Number of a member's moves, those of the most bytes, and of namespaces that each of them is replaced by on trial."""

WORDS = {"topics": "topics", "metadata_nodes": "metadata nodes", "millicpu": "CPU", "stored_bytes": "disk"}
"""Resources in words; keys are values of `Resource`."""

UNSEEN = "nothing is loaded there, what it stores is not known"


class NamespaceMove(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace that goes to another member, or a new one's place (`source` is None), and why.

    Attributes:
        unbounded: Resources that drive it out, in words, of which the target's ceiling is not known.
    """

    namespace: str
    source: str | None
    target: str
    stored_bytes: int
    why: str
    unbounded: tuple[str, ...] = ()


class Unmoved(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace that does not move from its member, or is new (`member` is None) and gets none, and why."""

    namespace: str
    member: str | None
    why: str


class NamespacePlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `place`.

    Attributes:
        before: How full members are.
        after: How full they are after the moves.
        moves: Namespaces that have to be moved for it.
        unplaced: Namespaces that should move, or are new, but have no place.
        dropped: Namespaces that only lose the member that leaves: they are replicated to every other one.
    """

    before: tuple[MemberUse, ...]
    after: tuple[MemberUse, ...]
    moves: tuple[NamespaceMove, ...]
    unplaced: tuple[Unmoved, ...]
    dropped: tuple[Unmoved, ...] = ()

    @property
    def stored_bytes(self) -> int:
        """Bytes that all moves have to copy."""
        return sum(move.stored_bytes for move in self.moves)


@dataclass(frozen=True, eq=False)
class _Unit:
    """Holdings that move at once: one, or all of a group of tenants at a member.

    Attributes:
        numbers: Numbers of the holdings.
        namespaces: Their names, sorted.
        source: Number of their member; None: they are new.
        group: Number of the group of tenants; None: of none.
        load: Their load, by `RESOURCES`.
        stored_bytes: Bytes that a move copies.
        pinned: Reason why they cannot be moved.
        refused: Reasons by the number of a member, as far as they depend on nothing that moves.
        open_to: Numbers of the other members.
    """

    numbers: tuple[int, ...]
    namespaces: tuple[str, ...]
    source: int | None
    group: int | None
    load: tuple[int, ...]
    stored_bytes: int
    pinned: str | None
    refused: dict[int, str]
    open_to: tuple[int, ...]


_Order: TypeAlias = "Callable[[_Unit, float, float], tuple[float, float]]"

_ORDERS: tuple[_Order, ...] = (
    lambda unit, relief, _: (unit.stored_bytes / relief, -relief),
    lambda unit, relief, excess: (float(relief < excess), unit.stored_bytes),
    lambda unit, relief, _: (unit.stored_bytes, -relief),
    lambda unit, relief, _: (-relief, unit.stored_bytes),
)
"""Orders in which a member's namespaces are tried, by their relief and the member's excess; the best result counts."""


def place(cluster: LogicalCluster) -> NamespacePlacement:
    """Places namespaces so that no member is over a ceiling, as far as that can be, with few bytes moved.

    The same cluster gives the same result, in whatever order its members and namespaces are given. No move breaks a
    constraint: namespaces stay in their region and at members that their policies allow, replicated ones stay at as
    many members, groups of tenants that are at one member stay so. A new namespace may go to every region. Of a member
    that leaves, a namespace that is replicated to every other one needs no place. One without loaded topics may store
    messages all the same.

    Raises:
        ValueError: If a holding is at no member of the cluster, or one name is given twice.
    """
    whole = _in_order(cluster)
    dropped = tuple(_dropped(whole))
    gone = {(each.namespace, each.member) for each in dropped}
    kept = tuple(each for each in whole.holdings if (each.namespace, each.member) not in gone)
    cluster = msgspec.structs.replace(whole, holdings=kept)
    best = min((_Search(cluster).run(order) for order in _ORDERS), key=lambda search: search.cost)
    return NamespacePlacement(
        before=uses_of(whole, {}),
        after=uses_of(cluster, {number: cluster.members[each].name for number, each in best.homes.items()}),
        moves=tuple(sorted(best.moves(), key=lambda move: (move.source or "", move.namespace))),
        unplaced=tuple(sorted(best.unplaced(), key=lambda each: (each.member or "", each.namespace))),
        dropped=dropped,
    )


def _dropped(cluster: LogicalCluster) -> Iterator[Unmoved]:
    """Namespaces of members that leave, which every other member serves and replicates."""
    leaving = {member.name for member in cluster.members if member.leaving}
    others = {member.name: member.policy_name for member in cluster.members if not member.leaving}
    serving: dict[str, set[str | None]] = defaultdict(set)
    for each in cluster.holdings:
        serving[each.namespace].add(each.member)
    for each in cluster.holdings:
        if each.member not in leaving or not others or not others.keys() <= serving[each.namespace]:
            continue
        if each.replicated_to >= set(others.values()):
            yield Unmoved(namespace=each.namespace, member=each.member, why="every other member replicates it")


def _in_order(cluster: LogicalCluster) -> LogicalCluster:
    names = [member.name for member in cluster.members]
    places = [(holding.namespace, holding.member) for holding in cluster.holdings]
    for each, count in (Counter(names) + Counter(places)).items():
        if count > 1:
            raise ValueError(f"{each} is given twice")
    if strange := {member for _, member in places if member is not None} - set(names):
        raise ValueError(f"{min(strange)} is no member")
    return LogicalCluster(
        members=tuple(sorted(cluster.members, key=lambda each: each.name)),
        holdings=tuple(sorted(cluster.holdings, key=lambda each: (each.namespace, each.member or ""))),
        together=tuple(sorted(cluster.together, key=sorted)),
    )


class _Search:
    """One search in one order: the loads of members, by number, as namespaces move."""

    def __init__(self, cluster: LogicalCluster) -> None:
        self._members = cluster.members
        self._holdings = cluster.holdings
        self._ceilings = [[each.ceilings.get(it, math.inf) for it in RESOURCES] for each in cluster.members]
        self._loads = [[each.own.get(it, 0) for it in RESOURCES] for each in cluster.members]
        self._serving: dict[str, set[int]] = defaultdict(set)  # those that are left, too
        self._group_parts: dict[int, Counter[int]] = defaultdict(Counter)
        self._group_sizes: Counter[int] = Counter()
        self._left: list[int] = [0] * len(cluster.members)
        self.homes: dict[int, int] = {}
        self._units = list(self._divided(cluster.together))
        self._of_member: dict[int | None, list[_Unit]] = defaultdict(list)
        for unit in self._units:
            self._of_member[unit.source].append(unit)
            if unit.source is not None:
                self._change(unit, unit.source, 1)
                for name in unit.namespaces:
                    self._serving[name].add(unit.source)
        for unit in self._units:
            if unit.group is not None and unit.source is not None:
                self._group_sizes[unit.group] = len(self._of_group(unit.group))
        self._over = [self._driving(number) for number in range(len(self._members))]

    def run(self, order: _Order) -> _Search:
        """Relieves members that are over a ceiling, the worst first, until nothing improves; then places new ones."""
        cost, before = self.cost, None
        while cost != before:
            over = [number for number in range(len(self._members)) if self._excess(number)]
            for number in sorted(over, key=lambda each: (-self._excess(each), each)):
                self._relieve(number, order)
            cost, before = self.cost, cost
        new = self._of_member[None]
        for unit in sorted(new, key=lambda each: (tuple(-amount for amount in each.load), each.namespaces)):
            if unit.pinned is None and (target := self._target(unit)) is not None:
                self._move(unit, target)
                if unit.group is not None:
                    self._group_sizes[unit.group] = len(self._of_group(unit.group))
        return self

    @property
    def cost(self) -> tuple[int, float, int, int]:
        """New namespaces without a place, excess of all members, bytes moved, and number of moves."""
        without = sum(len(unit.numbers) for unit in self._units if unit.source is None and not self._has_moved(unit))
        excess = sum(self._excess(number) for number in range(len(self._members)))
        copied = sum(self._holdings[number].stored_bytes for number in self.homes)
        return without, excess, copied, len(self.homes)

    def moves(self) -> Iterator[NamespaceMove]:
        """The moves, each with its reason."""
        for unit in self._units:
            if not self._has_moved(unit):
                continue
            home = self.homes[unit.numbers[0]]
            target = self._members[home].name
            why = f"{target} is the least full member that may take it"
            driving = self._over[unit.source] if unit.source is not None else ()
            if unit.source is not None:
                why = f"{self._words_of_excess(unit.source)}; {why}"
            if len(unit.numbers) > 1:
                why = f"{why}, with all namespaces of the tenants that stay together"
            for number in unit.numbers:
                each = self._holdings[number]
                yield NamespaceMove(
                    namespace=each.namespace,
                    source=each.member,
                    target=target,
                    stored_bytes=each.stored_bytes,
                    why=why,
                    unbounded=tuple(
                        WORDS[it]
                        for it in driving
                        if each.load.get(it) and self._ceilings[home][RESOURCES.index(it)] == math.inf
                    ),
                )

    def unplaced(self) -> Iterator[Unmoved]:
        """Namespaces that have no place, or would help their member by moving and cannot."""
        for unit in self._units:
            if self._has_moved(unit) or (unit.source is not None and not self._helps(unit, unit.source)):
                continue
            why = unit.pinned or self._objections(unit)
            for number in unit.numbers:
                each = self._holdings[number]
                unseen = f"{UNSEEN}; " * (each.member is not None and not any(each.load.values()))
                yield Unmoved(namespace=each.namespace, member=each.member, why=unseen + why)

    def _divided(self, together: Sequence[frozenset[str]]) -> Iterator[_Unit]:
        """Units of the holdings, by name."""
        group_of = {tenant: number for number, group in enumerate(together) for tenant in group}
        number_of = {member.name: number for number, member in enumerate(self._members)}
        parts: dict[tuple[object, str | None], list[int]] = defaultdict(list)
        for number, each in enumerate(self._holdings):
            group = group_of.get(each.tenant)
            parts[number if group is None else (group,), each.member].append(number)
        served = {each.namespace for each in self._holdings if each.member is not None}
        for numbers in parts.values():
            held = [self._holdings[number] for number in numbers]
            source = None if held[0].member is None else number_of[held[0].member]
            refused = {
                number: why for number in range(len(self._members)) if (why := self._refusal(held, source, number))
            }
            twice = [f"{it.namespace} is there already" for it in held if source is None and it.namespace in served]
            yield _Unit(
                numbers=tuple(numbers),
                namespaces=tuple(each.namespace for each in held),
                source=source,
                group=group_of.get(held[0].tenant),
                load=tuple(sum(each.load.get(it, 0) for each in held) for it in RESOURCES),
                stored_bytes=sum(each.stored_bytes for each in held),
                pinned=next(iter((*twice, *(it.pinned for it in held if it.pinned))), None),
                refused=refused,
                open_to=tuple(each for each in range(len(self._members)) if each not in refused and each != source),
            )

    def _refusal(self, held: Sequence[Holding], source: int | None, target: int) -> str | None:
        """Reason why a member can never take these holdings."""
        member = self._members[target]
        if member.leaving:
            return "leaves the logical cluster"
        if not member.whole:
            return "with brokers that could not be read"
        if source is not None and self._members[source].region != member.region:
            return "in another region"
        if any(each.allowed is not None and member.policy_name not in each.allowed for each in held):
            return "not allowed by its policies"
        return None

    def _relieve(self, number: int, order: _Order) -> None:
        """Moves namespaces off a member until it is under its ceilings, and gives back those that may stay."""
        excess = self._excess(number)
        units = (unit for unit in self._of_member[number] if unit.pinned is None and not self._has_moved(unit))
        reliefs = {unit: excess - self._excess(number, without=unit) for unit in units}
        helping = [unit for unit, relief in reliefs.items() if relief > 0]
        for unit in sorted(helping, key=lambda each: (order(each, reliefs[each], excess), each.namespaces)):
            if self._helps(unit, number) and (target := self._target(unit)) is not None:
                self._move(unit, target)
        for unit in self._gone(number):
            self._spare(unit, number)
        stayed = [unit for unit in self._of_member[number] if unit.pinned is None and not self._has_moved(unit)]
        stayed.sort(key=lambda each: (each.stored_bytes, each.namespaces))
        for unit in self._gone(number)[:SWAPPED]:
            self._swap(unit, stayed, number)

    def _gone(self, number: int) -> list[_Unit]:
        """Units that have left a member, those of most bytes first."""
        gone = [unit for unit in self._of_member[number] if self._has_moved(unit)]
        return sorted(gone, key=lambda unit: (-unit.stored_bytes, unit.namespaces))

    def _spare(self, unit: _Unit, number: int) -> None:
        """Takes a move back, if the member needs it no more."""
        excess = self._excess(number)
        if self._excess(number, plus=unit) <= excess:
            self._give_back(unit)

    def _swap(self, unit: _Unit, stayed: list[_Unit], number: int) -> None:
        """Moves one of fewer bytes in place of another one, if that relieves the member as much."""
        excess = self._excess(number)
        fewer = takewhile(lambda other: other.stored_bytes < unit.stored_bytes, stayed)
        as_good = (each for each in fewer if self._excess(number, without=each, plus=unit) <= excess)
        for other in islice(as_good, TRIED):
            back = self._give_back(unit)
            if (target := self._target(other)) is not None:
                self._move(other, target)
                stayed.remove(other)
                return
            self._move(unit, back)

    def _target(self, unit: _Unit) -> int | None:
        """The least full member that may take a unit, and stays under its ceilings with it."""
        open_to = [each for each in unit.open_to if self._objection(unit, each) is None]
        return min(open_to, key=lambda each: (self._fullness(each, unit), each), default=None)

    def _fullness(self, number: int, unit: _Unit) -> float:
        amounts = zip(self._loads[number], unit.load, self._ceilings[number], strict=True)
        return max(used_part(load + more, ceiling) for load, more, ceiling in amounts)

    def _objection(self, unit: _Unit, target: int) -> str | None:
        """Reason why a member cannot take a unit as things are."""
        if any(target in self._serving[name] for name in unit.namespaces):
            return "serving it already"
        if unit.group is not None and not self._keeps_together(unit, target):
            return "without the tenants that it stays with"
        amounts = zip(RESOURCES, self._loads[target], unit.load, self._ceilings[target], strict=True)
        short = [WORDS[each] for each, load, more, ceiling in amounts if more and load + more > ceiling]
        return f"no room ({', '.join(short)})" if short else None

    def _keeps_together(self, unit: _Unit, target: int) -> bool:
        """True if a group at one member stays at one, and a scattered one comes closer."""
        parts, size = self._group_parts[unit.group or 0], self._group_sizes[unit.group or 0]
        if not size:
            return True
        whole = {number for number, count in parts.items() if count == size}
        if not whole:
            return parts[target] > 0
        if unit.source is None:
            return target in whole
        return bool(whole - {unit.source}) or parts[target] + len(unit.namespaces) == size

    def _objections(self, unit: _Unit) -> str:
        """What each member has against a unit."""
        by_reason: dict[str | None, list[str]] = defaultdict(list)
        for number, member in enumerate(self._members):
            if number != unit.source:
                by_reason[unit.refused.get(number) or self._objection(unit, number)].append(member.name)
        reasons = [f"{why}: {named(names)}" for why, names in by_reason.items() if why]
        return "; ".join(reasons) or "there is no other member"

    def _excess(self, number: int, without: _Unit | None = None, plus: _Unit | None = None) -> float:
        """How far a member is over its ceilings, in parts of them; of one that leaves, the namespaces that it holds."""
        if self._members[number].leaving:
            less_and_more = (len(unit.numbers) * sign for unit, sign in ((without, -1), (plus, 1)) if unit is not None)
            return float(self._left[number] + sum(less_and_more))
        less = (0,) * len(RESOURCES) if without is None else without.load
        more = (0,) * len(RESOURCES) if plus is None else plus.load
        amounts = zip(self._loads[number], less, more, self._ceilings[number], strict=True)
        over = ((load - fewer + further - ceiling) / max(ceiling, 1) for load, fewer, further, ceiling in amounts)
        return sum(each for each in over if each > 0)

    def _helps(self, unit: _Unit, number: int) -> bool:
        return self._excess(number, without=unit) < self._excess(number)

    def _driving(self, number: int) -> tuple[Resource, ...]:
        """Resources that drive namespaces out: those over a ceiling; of a member that leaves, all with a ceiling."""
        leaving = self._members[number].leaving
        amounts = zip(RESOURCES, self._loads[number], self._ceilings[number], strict=True)
        return tuple(it for it, load, top in amounts if (top < math.inf if leaving else load > top))

    def _words_of_excess(self, number: int) -> str:
        member = self._members[number]
        if member.leaving:
            return f"{member.name} leaves the logical cluster"
        return f"{member.name} is over its ceiling of {', '.join(WORDS[it] for it in self._over[number])}"

    def _has_moved(self, unit: _Unit) -> bool:
        return unit.numbers[0] in self.homes

    def _of_group(self, group: int) -> set[str]:
        placed = (unit for unit in self._units if unit.group == group)
        return {name for unit in placed if unit.source is not None or self._has_moved(unit) for name in unit.namespaces}

    def _move(self, unit: _Unit, target: int) -> None:
        if unit.source is not None:
            self._change(unit, unit.source, -1)
        self._change(unit, target, 1)
        for name in unit.namespaces:
            self._serving[name].add(target)
        self.homes.update(dict.fromkeys(unit.numbers, target))

    def _give_back(self, unit: _Unit) -> int:
        """Takes a move back; returns where it had led to."""
        target = self.homes[unit.numbers[0]]
        self._change(unit, target, -1)
        if unit.source is not None:
            self._change(unit, unit.source, 1)
        for number, name in zip(unit.numbers, unit.namespaces, strict=True):
            self._serving[name].discard(target)
            del self.homes[number]
        return target

    def _change(self, unit: _Unit, number: int, sign: int) -> None:
        self._loads[number] = [load + sign * more for load, more in zip(self._loads[number], unit.load, strict=True)]
        self._left[number] += sign * len(unit.numbers)
        if unit.group is not None:
            self._group_parts[unit.group][number] += sign * len(unit.namespaces)
