"""Time of a placement: ``python -m benchmarks.placement [NAMESPACES] [MEMBERS]`` prints it; 1,000 over 20 by default.

A fifth of the members are over a ceiling, in three regions, with replicated namespaces and tenants that stay together.
"""

from __future__ import annotations

import random
import sys
from time import perf_counter

from pulsar_steward.model.units import GIB, bytes_in_words
from pulsar_steward.planners.clusters.model import Holding, LogicalCluster, Member, Resource
from pulsar_steward.planners.clusters.place import place

REGIONS = ("eu", "us", "asia")
TENANTS = 200
REPLICATED_PERCENT = 10
OVER = 5
"""Of so many members one holds thrice as much as the others."""


def made_up(namespaces: int, members: int) -> LogicalCluster:
    """A logical cluster, always the same for the same numbers."""
    chance = random.Random(namespaces * members)  # noqa: S311 - always the same
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


def main() -> None:
    """Places namespaces, and prints how long that took and what it came to."""
    namespaces, members = (*map(int, sys.argv[1:]), *(1_000, 20)[len(sys.argv) - 1 :])
    cluster = made_up(namespaces, members)
    began = perf_counter()
    placement = place(cluster)
    seconds = perf_counter() - began
    over = [[use.member for use in uses if use.over] for uses in (placement.before, placement.after)]
    print(f"{namespaces:,} namespaces over {members} members: {seconds:.2f} s")
    print(f"{len(over[0])} members over a ceiling before, {len(over[1])} after")
    print(f"{len(placement.moves)} moved, {bytes_in_words(placement.stored_bytes, rounded=True)}", end="")
    print(f"; {len(placement.unplaced)} without a place")


if __name__ == "__main__":
    main()
