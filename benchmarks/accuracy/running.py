"""Makes a fault, looks at it as Steward does (collecting, then diagnosing), and judges what was found."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.accuracy.judging import judge
from benchmarks.accuracy.labs import Labs, in_order
from benchmarks.accuracy.made_up import MadeUp
from benchmarks.accuracy.outcome import Outcome
from benchmarks.observing import observe
from lab.errors import LabError
from lab.faults.fault import RealFault
from pulsar_steward.policy.load import parse_policy
from pulsar_steward.snapshots.read import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.faults.fault import SimulatedFault
    from lab.faults.registry import AnyFault
    from lab.target import PulsarTarget


class Workbench:
    """Looks at one fault after another.

    Args:
        home: A folder for labs and snapshots.
        say: Told what happens, a line at a time.
    """

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say

    def outcomes(self, faults: Iterable[AnyFault]) -> Iterator[Outcome]:
        """What came of each fault, as soon as it is known; labs are started and ended on the way."""
        with Labs(self._home / "labs", self._say) as labs:
            for fault in in_order(faults):
                self._say(f"{fault.name}: {fault.about}")
                yield self.outcome(fault, labs)

    def outcome(self, fault: AnyFault, labs: Labs) -> Outcome:
        """What came of one fault; whatever goes wrong with making it or looking at it is told in there."""
        began = time.monotonic()
        try:
            if isinstance(fault, RealFault):
                lab = labs.lab_for(fault)
                began = time.monotonic()  # starting a lab is no part of a fault
                uri = self._real(fault, lab, labs)
            else:
                uri = self._simulated(fault)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other faults are looked at all the same
            labs.end()
            return Outcome(fault, seconds=time.monotonic() - began, failure=f"{type(error).__name__}: {error}")
        snapshot = open_snapshot(uri)
        judgement = judge(fault, snapshot.findings(), snapshot.verdicts())
        return Outcome(fault, judgement, time.monotonic() - began)

    def _real(self, fault: RealFault, lab: Lab, labs: Labs) -> str:
        """What was seen counts also where the fault cannot be cleared away: the next one gets another lab then."""
        uri = None
        try:
            with fault.made(lab):
                seen = self._observe(fault, lab, datetime.now(UTC))
                for observed in range(1, fault.observations):
                    fault.between(lab, observed)
                    seen = self._observe(fault, lab, datetime.now(UTC))
                uri = seen
        except LabError as error:
            if uri is None:
                raise
            self._say(f"  {fault.name} could not be cleared away: {error}")
            labs.end()
            return uri
        labs.done_with(fault)
        return uri

    def _simulated(self, fault: SimulatedFault) -> str:
        """The last observation is of now, and the others of as long ago as the fault says."""
        made_up, now = MadeUp(fault), datetime.now(UTC)
        for number in range(fault.observations):
            ago = timedelta(minutes=fault.minutes_apart * (fault.observations - 1 - number))
            with made_up.cluster(number) as cluster:
                uri = self._observe(fault, cluster, now - ago)
        return uri

    def _observe(self, fault: AnyFault, cluster: PulsarTarget, taken_at: datetime) -> str:
        policy = parse_policy(fault.policy, name=f"the policy of {fault.name}")
        out = self._home / "snapshots"
        return observe(cluster, policy, cluster=fault.name, out=out, taken_at=taken_at)
