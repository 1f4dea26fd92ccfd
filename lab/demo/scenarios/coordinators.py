"""All transaction coordinators on one broker, as a rolling restart leaves them."""

import contextlib
from collections.abc import Iterator, Mapping

from lab.demo.scenarios.scenario import Scenario
from lab.target import PulsarTarget

HEALED_SPREAD = 1


@contextlib.contextmanager
def _piled_up(target: PulsarTarget) -> Iterator[None]:
    target.pile_up_tcs()
    yield


def _spread(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    return sum(now.values()) == sum(before.values()) and max(now.values()) - min(now.values()) <= HEALED_SPREAD


TC = Scenario(
    name="tc",
    trouble="piling all transaction coordinators up on one broker, as a rolling restart would",
    counted="transaction coordinators by broker",
    made=_piled_up,
    made_up=_piled_up,
    shown=lambda target: target.tc_placement(),
    healed=_spread,
)
