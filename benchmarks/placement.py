"""Time of a placement: ``python -m benchmarks.placement [NAMESPACES] [MEMBERS]`` prints it; 1,000 over 20 by default.

A fifth of the members are over a ceiling, in three regions, with replicated namespaces and tenants that stay together.
"""

from __future__ import annotations

import random
import sys
from itertools import combinations
from time import process_time

from pulsar_steward.model.units import GIB, bytes_in_words
from pulsar_steward.planners.clusters.model import Holding, LogicalCluster, Member, Resource
from pulsar_steward.planners.clusters.place import place

REGIONS = ("eu", "us", "asia")
TENANTS = 200
REPLICATED_PERCENT = 10
ROUNDS, SMALL = 300, 10
OVER = 5
"""Of so many members one holds thrice as much as the others."""


def made_up(namespaces: int, members: int) -> LogicalCluster:
    """A logical cluster, always the same for the same numbers."""
    chance = random.Random(namespaces * members)
    names = [f"cluster-{number:02d}" for number in range(members)]
    weights = [3 if number % OVER == 0 else 1 for number in range(members)]
    mean = 100 * namespaces * 1.1 / members
    holdings = []
    for number in range(namespaces):
        homes = dict.fromkeys(chance.choices(names, weights, k=2 if chance.randrange(100) < REPLICATED_PERCENT else 1))
        for home in homes:
            topics = max(1, int(chance.paretovariate(1.2) * 20))
            load = {
                Resource.TOPICS: topics,
                Resource.METADATA_NODES: topics * chance.randint(4, 12),
                Resource.MILLICPU: chance.randint(0, 400),
                Resource.STORED_BYTES: chance.randint(0, 500) * GIB,
            }
            tenant = f"tenant-{number % TENANTS}"
            growth = {Resource.TOPICS: topics // 50}
            holdings.append(Holding(namespace=f"{tenant}/{number}", member=home, load=load, growth=growth))
    ceilings = {
        Resource.TOPICS: int(mean * 1.5),
        Resource.METADATA_NODES: int(mean * 12),
        Resource.MILLICPU: int(mean * 3),
    }
    return LogicalCluster(
        members=tuple(
            Member(name=name, region=REGIONS[number % len(REGIONS)], ceilings=ceilings)
            for number, name in enumerate(names)
        ),
        holdings=tuple(holdings),
        together=(frozenset({"tenant-1", "tenant-2"}), frozenset({"tenant-3"})),
    )


def full(namespaces: int, members: int, room: int) -> LogicalCluster:
    """A member that should keep 2 % of its topics, beside others with room for so many."""
    chance = random.Random(namespaces)
    topics = [chance.randint(1, 100) for _ in range(namespaces)]
    others = (Member(name=f"other-{number}", ceilings={Resource.TOPICS: room}) for number in range(members - 1))
    return LogicalCluster(
        members=(Member(name="full", ceilings={Resource.TOPICS: sum(topics) // 50}), *others),
        holdings=tuple(_holding(number, {Resource.TOPICS: each}, chance) for number, each in enumerate(topics)),
    )


def against_the_least(rounds: int, namespaces: int) -> tuple[int, float]:
    """Small clusters with a full member: in how many the least bytes were moved, and all bytes by the least ones."""
    same, moved, least = 0, 0, 0
    for number in range(rounds):
        chance = random.Random(number)
        bounded = (Resource.TOPICS, Resource.METADATA_NODES)
        held = [_holding(each, {it: chance.randint(1, 100) for it in bounded}, chance) for each in range(namespaces)]
        part = chance.choice((50, 70, 90))
        tops = {it: sum(each.load[it] for each in held) * part // 100 for it in bounded}
        members = (Member(name="full", ceilings=tops), Member(name="other", ceilings={}))
        found = place(LogicalCluster(members=members, holdings=tuple(held))).stored_bytes
        best = min(
            sum(each.stored_bytes for each in held) - sum(each.stored_bytes for each in kept)
            for count in range(namespaces + 1)
            for kept in combinations(held, count)
            if all(sum(each.load[it] for each in kept) <= top for it, top in tops.items())
        )
        same, moved, least = same + (found == best), moved + found, least + best
    return same, moved / least


def _holding(number: int, load: dict[Resource, int], chance: random.Random) -> Holding:
    stored = {Resource.STORED_BYTES: chance.randint(1, 100) * GIB}
    return Holding(namespace=f"tenant-{number}/x", member="full", load=load | stored)


def main() -> None:
    """Places namespaces, and prints how long that took, what it came to, and how far from the least bytes it was."""
    namespaces, members = (*map(int, sys.argv[1:]), *(1_000, 20)[len(sys.argv) - 1 :])
    for cluster in (made_up(namespaces, members), full(namespaces, members, 600)):
        began = process_time()
        placement = place(cluster)
        seconds = process_time() - began
        over = [sum(bool(use.over) for use in uses) for uses in (placement.before, placement.after)]
        print(f"{namespaces:,} namespaces over {members} members: {seconds:.2f} s; {over[0]} over a ceiling", end="")
        print(
            f" before, {over[1]} after; {len(placement.moves)} moved, {len(placement.unplaced)} without a place,",
            end="",
        )
        print(f" {bytes_in_words(placement.stored_bytes, rounded=True)}")
    same, parts = against_the_least(ROUNDS, SMALL)
    print(f"{ROUNDS} clusters of {SMALL}: the least bytes in {same}, together {parts - 1:.1%} more than the least")


if __name__ == "__main__":
    main()
