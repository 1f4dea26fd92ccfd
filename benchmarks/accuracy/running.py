"""Makes faults, looks at them as Steward does (collecting, then diagnosing), and judges what was found."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from benchmarks.accuracy.judging import Judgement, judge, judge_together
from benchmarks.accuracy.labs import Labs
from benchmarks.accuracy.made_up import MadeUp
from benchmarks.accuracy.outcome import Outcome, SceneOutcome
from benchmarks.accuracy.scenes import Scene, policy_of, scenes
from benchmarks.accuracy.settling import statistics_apart_s, wait_for_quick_writes
from benchmarks.accuracy.stage import Stage
from benchmarks.observing import observe, observe_kafka
from lab.bookie import metrics_urls
from lab.faults.fault import RealFault, RealKafkaFault, SimulatedFault, SimulatedKafkaFault
from lab.kafka.made_up import MadeUpKafka
from lab.model import VERSIONS
from lab.simulator import running_servers
from pulsar_steward.changes import kind_of
from pulsar_steward.checks.resources import bookie_thread_busy, publish_slow
from pulsar_steward.collect.kafka.reader import KafkaReader
from pulsar_steward.collect.kafka.settings import KafkaSettings
from pulsar_steward.model.finding import Severity
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.load import parse_policy
from pulsar_steward.policy.schema import KafkaPolicy
from pulsar_steward.snapshots.folder import stamp_of
from pulsar_steward.snapshots.read import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.accuracy.stage import Actor
    from lab.cluster import Lab
    from lab.faults.registry import AnyFault
    from lab.target import PulsarTarget
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.snapshots.read import Snapshot


A_SECOND_S = 1.0


class Workbench:
    """Looks at one scene after another.

    Args:
        home: A folder for labs and snapshots.
        say: Told what happens, a line at a time.
        pulsar_version: Of the real brokers.
    """

    def __init__(self, home: Path, say: Callable[[str], None], pulsar_version: str = VERSIONS[0]) -> None:
        self._home = home
        self._pulsar_version = pulsar_version
        self._snapshots = home / "snapshots" / stamp_of(datetime.now(UTC))  # those of another run are no scene's past
        self._say = say

    def outcomes(self, faults: Iterable[AnyFault]) -> Iterator[SceneOutcome]:
        """Outcome of each scene, as soon as it is known; labs are started and ended on the way."""
        with Labs(self._home / "labs", self._say, self._pulsar_version) as labs:
            for scene in scenes(faults):
                self._say(f"{scene.name}: {', '.join(fault.name for fault in scene.faults)}")
                yield self.outcome(scene, labs)

    def outcome(self, scene: Scene, labs: Labs, *, again: bool = True) -> SceneOutcome:
        """Outcome of one scene; whatever goes wrong with making it or looking at it is told in there.

        Args:
            scene: The faults.
            labs: Where real ones are made.
            again: Real ones that could not be made are made a second time.
        """
        match scene.first:
            case SimulatedFault() as simulated:
                return self._alone(scene, lambda: self._simulated(scene, simulated))
            case SimulatedKafkaFault() as made_up:
                reader = cast("KafkaReader", MadeUpKafka(made_up.spec))
                return self._alone(scene, lambda: self._observe_kafka(scene, reader))
            case RealKafkaFault() as real:
                outcome = self._alone(scene, lambda: self._made_in_kafka(scene, real, labs))
                if outcome.outcomes[0].failure is not None:  # the next one gets another lab
                    labs.end()
                return outcome
        try:
            lab = labs.lab_for(scene)
        except Exception as error:  # whatever it is, the other scenes are looked at all the same
            labs.end()
            return _failed(scene, f"{type(error).__name__}: {error}", 0.0)
        outcome, unmade = self._real(scene, lab, labs)
        labs.done_with(scene)
        return self._made_again(outcome, unmade, labs) if unmade and again else outcome

    def _made_again(self, outcome: SceneOutcome, unmade: Sequence[Actor], labs: Labs) -> SceneOutcome:
        """A fault that is not there says nothing of the checks: it is made once more, in a scene of its own."""
        failures = {actor.fault.name: actor.failure for actor in unmade}
        for name, failure in failures.items():
            self._say(f"  {name} could not be made, and is made once more: {failure}")
        faults = tuple(actor.fault for actor in unmade)
        second = self.outcome(Scene(f"{outcome.scene.name}-again", faults, policy_of(faults)), labs, again=False)
        later = {each.fault.name: replace(each, at_first=failures[each.fault.name]) for each in second.outcomes}
        outcomes = tuple(later.get(each.fault.name, each) for each in outcome.outcomes)
        strays, seconds = (*outcome.strays, *second.strays), outcome.seconds + second.seconds
        return replace(outcome, outcomes=outcomes, strays=strays, seconds=seconds)

    def _real(self, scene: Scene, lab: Lab, labs: Labs) -> tuple[SceneOutcome, list[Actor]]:
        """Outcome of a scene on real brokers, and its faults that could not be made.

        It counts also where a fault cannot be cleared away: the next scene gets another lab then. Many faults are made
        in a burst, and some checks judge what brokers did since the snapshot before: one is taken after the burst, as
        scheduled ones would be there. The burst itself is no fault: it is over when bookies are written to as quickly
        as usual.
        """
        began, uri, failure = time.monotonic(), None, ""
        stage = Stage([fault for fault in scene.faults if isinstance(fault, RealFault)], lab)
        try:
            stage.make()
            if len(scene.faults) > 1 and scene.observations == 1:
                wait_for_quick_writes(
                    lambda: self._writes_are_slow(scene, lab), statistics_apart_s(dict(scene.settings))
                )
                self._observe(scene, lab, datetime.now(UTC))
            for observed in range(scene.observations):
                time.sleep(A_SECOND_S)  # a snapshot's name is the second that it was taken at
                stage.change(observed)
                uri = self._observe(scene, lab, datetime.now(UTC), servers=metrics_urls(lab))
        except Exception as error:
            uri, failure = None, f"{type(error).__name__}: {error}"
        finally:
            left = stage.clear()
        if left or failure:
            for sentence in left:
                self._say(f"  {sentence}")
            labs.end()
        seconds = time.monotonic() - began
        if uri is None:
            return _failed(scene, failure, seconds), []
        judged, strays = _judged(uri, scene.faults)
        outcome = SceneOutcome(scene, tuple(_outcome(actor, judged) for actor in stage.actors), strays, seconds)
        return outcome, [actor for actor in stage.actors if actor.failure is not None]

    def _writes_are_slow(self, scene: Scene, lab: Lab) -> bool:
        """Whether a check of slow writes finds any.

        A machine that computes other things, too, writes slowly in the minute of a burst: seen with 45 % of writes over
        200 ms. The snapshots taken meanwhile are in a folder of their own, and so no scene's past.
        """
        aside, checks = self._home / "settling", [each.CHECK.check_id for each in (bookie_thread_busy, publish_slow)]
        uri = self._observe(scene, lab, datetime.now(UTC), out=aside, checks=checks)
        if all(finding.severity is Severity.INFO for finding in open_snapshot(uri).findings()):
            return False
        self._say("  the machine is still busy with the faults that were made: looked at later")
        return True

    def _alone(self, scene: Scene, looked: Callable[[], str]) -> SceneOutcome:
        """Outcome of a scene of one fault; `looked` gives the URI of its last snapshot."""
        began, fault = time.monotonic(), scene.first
        try:
            snapshot = open_snapshot(looked())
        except Exception as error:
            return _failed(scene, f"{type(error).__name__}: {error}", time.monotonic() - began)
        proposed = _proposed(snapshot, scene) if fault.report else ()
        judgement = judge(fault, snapshot.findings(), snapshot.verdicts(), proposed)
        seconds = time.monotonic() - began
        return SceneOutcome(scene, (Outcome(fault, judgement, seconds),), (), seconds)

    def _simulated(self, scene: Scene, fault: SimulatedFault) -> str:
        """The last observation is of now, and the others of as long ago as the fault says."""
        made_up, now = MadeUp(fault), datetime.now(UTC)
        with running_servers(*fault.servers[0]) as servers:
            for number in range(fault.observations):
                ago = timedelta(minutes=fault.minutes_apart * (fault.observations - 1 - number))
                servers.show(*fault.servers[min(number, len(fault.servers) - 1)])
                with made_up.cluster(number) as cluster:
                    uri = self._observe(scene, cluster, now - ago, servers=servers.metrics_urls)
        return uri

    def _made_in_kafka(self, scene: Scene, fault: RealKafkaFault, labs: Labs) -> str:
        """Made, looked at, and cleared away; a snapshot's name is the second that it was taken at."""
        lab = labs.kafka()
        with fault.made(lab) as change:
            for observed in range(fault.observations):
                time.sleep(A_SECOND_S)
                if change is not None:
                    change(observed)
                uri = self._observe_kafka(scene, KafkaReader(KafkaSettings(servers=lab.servers), KafkaPolicy()))
        return uri

    def _observe_kafka(self, scene: Scene, reader: KafkaReader) -> str:
        policy = parse_policy(dict(scene.policy), name=f"the policy of {scene.name}")
        return observe_kafka(reader, policy, cluster=scene.name, out=self._snapshots, taken_at=datetime.now(UTC))

    def _observe(
        self,
        scene: Scene,
        cluster: PulsarTarget,
        taken_at: datetime,
        *,
        out: Path | None = None,
        checks: Collection[str] = (),
        servers: tuple[str, ...] = (),
    ) -> str:
        """Takes a snapshot and diagnoses it; ``servers`` are to be named in `collect.metrics_urls` as well."""
        policy = parse_policy(dict(scene.policy), name=f"the policy of {scene.name}")
        collecting = policy.collect.model_copy(update={"metrics_urls": (*policy.collect.metrics_urls, *servers)})
        policy = policy.model_copy(update={"collect": collecting})
        return observe(
            cluster, policy, cluster=scene.name, out=out or self._snapshots, taken_at=taken_at, checks=checks
        )


def _proposed(snapshot: Snapshot, scene: Scene) -> tuple[str, ...]:
    """Every step that is proposed, in words."""
    policy = parse_policy(dict(scene.policy), name=f"the policy of {scene.name}")
    plan = make_plan(planning_facts_of(snapshot, policy, Moves()))
    return tuple(
        f"{batch.title}: {kind_of(step.change).describe()}: {step.why}"
        for batch in plan.batches
        for step in batch.steps
    )


def _outcome(actor: Actor, judged: Mapping[str, Judgement]) -> Outcome:
    """Of one that could not be made nothing counts that was found or was not."""
    judgement = judged[actor.fault.name] if actor.failure is None else Judgement()
    return Outcome(actor.fault, judgement, actor.seconds, actor.failure)


def _failed(scene: Scene, failure: str, seconds: float) -> SceneOutcome:
    return SceneOutcome(scene, tuple(Outcome(fault, failure=failure) for fault in scene.faults), seconds=seconds)


def _judged(uri: str, faults: Sequence[AnyFault]) -> tuple[dict[str, Judgement], tuple[Finding, ...]]:
    """Judgement of each fault, and findings of none; of a single fault all findings are."""
    snapshot = open_snapshot(uri)
    findings, verdicts = snapshot.findings(), snapshot.verdicts()
    if len(faults) == 1:
        return {faults[0].name: judge(faults[0], findings, verdicts)}, ()
    return judge_together(faults, findings, verdicts)
