"""The demo of a fleet: three clusters under one Airflow, a link that is cut, a cluster that is killed meanwhile."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.airflow.server import prepared_airflow
from lab.demo.play import OBSERVED_WITHIN_S, DemoError, why_simulated
from lab.fleet import CLUSTERS, EAST, EVENTS, WEST, running_fleet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from lab.airflow.server import Airflow
    from lab.demo.stages import Stages
    from lab.fleet import Fleet

OBSERVE, REMEDIATE = "pulsar_observe", "pulsar_remediate"
KILLED_NODE = 3
REMEDIATED_WITHIN_S = 120.0
CHECKED_WITHIN_S = 120.0
CUT = "replication-stopped"
ORDER = ("critical", "unknown", "warning", "healthy")

States = dict[str, tuple[str | None, str | None]]
"""States of the tasks ``observe`` and ``plan`` by cluster."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What was seen of the fleet, in order.

    Attributes:
        well: States of the first round, in which all is well.
        cards: Cards of Steward's pages after it, by cluster.
        cut: Check-up of the fleet with the links cut, all clusters running, and a broker of Kafka killed.
        killed: States of the round in which `west` is killed.
        told: Log of the task that observed `west` then.
        cards_then: Cards after it, as they are listed.
        gone: Check-up of the fleet after it.
        kafka_run: State of a run of ``pulsar_remediate`` for the Kafka cluster.
        kafka_told: Log of its first task.
        waiting: Subjects of the questions that wait in the end.
    """

    well: States
    cards: Mapping[str, dict[str, Any]]
    cut: dict[str, Any]
    killed: States
    told: str
    cards_then: list[dict[str, Any]]
    gone: dict[str, Any]
    kafka_run: str
    kafka_told: str
    waiting: list[str]

    def wrong(self) -> list[str]:
        """What is not as it should be, in words."""
        then = {card["cluster"]: card for card in self.cards_then}
        ranks = [ORDER.index(card["health"]) for card in self.cards_then]
        (gone,) = (each for each in self.gone["clusters"] if each["cluster"] == WEST)
        should = {
            "all three clusters are observed": all(each[0] == "success" for each in self.well.values()),
            "all three have a card": set(self.cards) == set(CLUSTERS),
            "nothing is planned for Kafka": {self.well[EVENTS][1], self.killed[EVENTS][1]} == {"skipped"},
            "the cut is told once": [set(each["clusters"]) for each in told_cuts(self.cut)] == [{EAST, WEST}],
            "neither end tells the cut as its own": not own_cuts(self.cut),
            "the observation of the killed cluster fails": self.killed[WEST][0] == "failed",
            "the others are observed meanwhile": self.killed[EAST][0] == self.killed[EVENTS][0] == "success",
            "the others have new snapshots, the killed one has none": [
                name for name in CLUSTERS if then[name]["seen"]["taken_at"] > self.cards[name]["seen"]["taken_at"]
            ]
            == [EAST, EVENTS],
            "the page has the worst first": ranks == sorted(ranks),
            "Kafka's killed broker is a trouble": then[EVENTS]["seen"]["warning"] > 0,
            "the killed cluster could not be looked at": bool(gone["could_not_look"]),
            "remediation has nothing to change in Kafka": self.kafka_run == "success"
            and "there is nothing to change" in self.kafka_told,
            "nobody is asked about Kafka": not any(each.startswith(f"{EVENTS}:") for each in self.waiting),
        }
        return [what for what, so in should.items() if not so]


def told_cuts(checkup: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Troubles of replication that a check-up of a fleet tells as common to clusters."""
    return [each for each in checkup["in_common"] if each["check_id"] == CUT]


def own_cuts(checkup: Mapping[str, Any]) -> list[str]:
    """Clusters with a trouble of replication that is not told at a link."""
    return [
        each["cluster"]
        for each in checkup["clusters"]
        for trouble in (each["checkup"] or {"troubles": []})["troubles"]
        if CUT in trouble["check_ids"] and trouble["trouble_id"] not in each["at_links"]
    ]


def watched(fleet: Fleet, airflow: Airflow, stages: Stages) -> Seen:
    """Has Airflow observe the fleet, cuts, kills, and returns what was seen.

    The clusters' connections have to be in Airflow, and its DAGs unpaused.
    """
    with stages.stage(f"{OBSERVE}: two Pulsar clusters and a Kafka cluster at once"):
        well = _ended(airflow, _observing(airflow))
        cards = {card["cluster"]: card for card in airflow.api.steward("clusters")}
    with stages.stage("cutting the replication links, and killing one of Kafka's three brokers"):
        fleet.cut_links()
        fleet.kafka.kill(KILLED_NODE)
    with stages.stage("steward checkup --fleet connections"):
        cut = _checkup(airflow)
    with stages.stage(f"{OBSERVE} again, while {WEST} is killed"):
        run = _observing(airflow)
        fleet.kill_west()
        killed = _ended(airflow, run)
        told = airflow.api.log(OBSERVE, run, "cluster.observe", map_index=CLUSTERS.index(WEST), attempt=2)
        cards_then = [card for card in airflow.api.steward("clusters") if card["cluster"] in CLUSTERS]
    with stages.stage(f"{REMEDIATE} for the Kafka cluster"):
        run = airflow.api.trigger(REMEDIATE, {"cluster": EVENTS})
        kafka_run = airflow.api.wait_for_run(REMEDIATE, run, REMEDIATED_WITHIN_S)
        kafka_told = airflow.api.log(REMEDIATE, run, "choose")
    with stages.stage("steward checkup --fleet connections, without the killed cluster"):
        gone = _checkup(airflow)
    return Seen(
        well=well,
        cards={name: card for name, card in cards.items() if name in CLUSTERS},
        cut=cut,
        killed=killed,
        told=told,
        cards_then=cards_then,
        gone=gone,
        kafka_run=kafka_run,
        kafka_told=kafka_told,
        waiting=[each["subject"] for each in airflow.api.waiting()],
    )


def _observing(airflow: Airflow) -> str:
    return airflow.api.trigger(OBSERVE, {"cluster": ",".join(CLUSTERS)})


def _ended(airflow: Airflow, run: str) -> States:
    airflow.api.wait_for_run(OBSERVE, run, OBSERVED_WITHIN_S)
    states = airflow.api.states(OBSERVE, run)
    return {
        name: (states.get(f"cluster.observe[{number}]"), states.get(f"cluster.plan[{number}]"))
        for number, name in enumerate(CLUSTERS)
    }


def _checkup(airflow: Airflow) -> dict[str, Any]:
    command = [str(airflow.spec.python), "-m", "pulsar_steward.cli", "checkup", "--fleet", "connections", "--json", "-"]
    ended = subprocess.run(
        command,
        env={**airflow.variables, "STEWARD_CLUSTER": ",".join(CLUSTERS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=CHECKED_WITHIN_S,
    )
    try:
        document: dict[str, Any] = json.loads(ended.stdout)
    except json.JSONDecodeError as error:
        raise DemoError(f"the check-up ended with {ended.returncode}: {ended.stderr}") from error
    return document


def story(seen: Seen) -> Iterator[str]:
    """What was seen, a line at a time."""
    cards = {card["cluster"]: card for card in seen.cards_then}
    for name in CLUSTERS:
        card = cards[name]
        runs = f"{card['seen']['system'].capitalize()} {card['seen']['pulsar_version']}".rstrip()
        worst = next((each["headline"] for each in card["found"]["worst"]), "nothing found")
        (first, _), (again, _) = seen.well[name], seen.killed[name]
        yield f"  {name:<7} {runs:<13} observed: {first}, then {again}; {card['health']}: {worst}"
    for what, checkup in (("with the links cut", seen.cut), (f"with {WEST} killed", seen.gone)):
        for each in told_cuts(checkup):
            yield f"  {what}, told once: {each['words']}"
    for each in seen.gone["clusters"]:
        if each["could_not_look"]:
            yield f"  {each['cluster']} could not be looked at: {each['could_not_look']}"
    yield f"  {REMEDIATE} for {EVENTS}: {seen.kafka_run}, {len(seen.waiting)} questions wait"


def play_fleet(home: Path, stages: Stages, *, port: int | None) -> bool:
    """Plays the demo of a fleet; returns whether all was seen as it should be.

    Raises:
        LabError: If a part cannot run; there is no simulated fleet.
    """
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    if why := why_simulated():
        raise DemoError(f"a fleet needs real clusters: {why}")
    stages.say("Pulsar Steward demo on a fleet: two real Pulsar clusters, a real Kafka cluster, one Airflow")
    with ExitStack() as running:
        airflow = running.enter_context(prepared_airflow(home / "airflow", port=port))
        with stages.stage("starting Kafka and two Pulsar clusters that replicate to each other"):
            fleet = running.enter_context(running_fleet(home / "fleet", lambda _line: None))
        with stages.stage("starting Airflow"):
            airflow.start({"STEWARD_CLUSTER": ",".join(CLUSTERS)})
            for name, document in fleet.connections.items():
                airflow.api.add_connection(name, document)
            for dag_id in (REMEDIATE, OBSERVE):
                airflow.api.unpause(dag_id)
        seen = watched(fleet, airflow, stages)
    for line in story(seen):
        stages.say(line)
    wrong = seen.wrong()
    for what in wrong:
        stages.say(f"  WRONG: it is not so that {what}")
    stages.say(f"{'NOT as it should be' if wrong else 'All as it should be'} after {stages.seconds:.0f} s.")
    return not wrong
