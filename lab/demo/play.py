"""The demo from its first line to its last: break, observe, ask, heal or leave alone, and read the brokers back."""

import contextlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Literal

from lab import jars, prerequisites
from lab.airflow.server import Airflow, prepared_airflow
from lab.airflow.settings import connection_to
from lab.cluster import running_lab
from lab.demo.scenarios import Scenario
from lab.demo.stages import Stages
from lab.errors import JarsUnavailableError, LabError, NotReachedError
from lab.faults.real.ground import COMMON_SETTINGS
from lab.model import VERSIONS, LabOptions
from lab.placement import differences
from lab.simulator import running_simulator
from lab.target import PulsarTarget


def why_simulated() -> str | None:
    """Reason why there can be no real Pulsar here, with what to install; None: there can.

    The jars are fetched here, so that a machine without a way to Maven's repository is found out at once.
    """
    version = VERSIONS[0]
    missing = prerequisites.missing(maven=not jars.fetched(version))
    if missing:
        return "; ".join(missing)
    try:
        jars.fetch(version, print)
    except JarsUnavailableError as error:
        return str(error)
    return None


@contextlib.contextmanager
def pulsar(home: Path, scenario: Scenario, *, simulated: bool) -> Iterator[PulsarTarget]:
    """The scenario's Pulsar for the length of a ``with`` block."""
    if simulated:
        with running_simulator(scenario.spec) as simulator:
            yield simulator
        return
    options = scenario.lab | LabOptions(broker_settings=dict(COMMON_SETTINGS))
    with running_lab("demo", home=home, **options) as lab:
        yield lab


Answer = Literal["ask", "approve", "reject"]

LOSS = "messages_may_be_lost"
"""The tick that the form has where brokers delete messages; what the demo loses, it has made itself."""

OBSERVED_WITHIN_S = 240.0
ASKED_WITHIN_S = 120.0
APPLIED_WITHIN_S = 240.0
EVENTS_NAMESPACE = "public/default"
"""A decision is published, a rejection too: the first message has a bundle of this namespace loaded."""


class DemoError(LabError):
    """The demo did not go as it should."""


def play(scenario: Scenario, answer: Answer, home: Path, stages: Stages, *, port: int | None, simulated: bool) -> bool:
    """Plays the whole demo; returns whether the brokers show in the end what they should."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    why = "asked for with --simulator" if simulated else why_simulated()
    label = f"SIMULATED Pulsar, not a real one ({why})" if why else "a real Pulsar: ZooKeeper, a bookie, brokers"
    stages.say(f"Pulsar Steward demo on {label}")
    with ExitStack() as running:
        airflow = running.enter_context(prepared_airflow(home / "airflow", port=port))
        with stages.stage("starting Pulsar"):
            target = running.enter_context(pulsar(home / "lab", scenario, simulated=why is not None))
        went_well = _on(target, airflow, scenario, answer, stages)
    stages.say(
        f"{'All as it should be' if went_well else 'NOT as it should be'} after {stages.seconds:.0f} s on {label}."
    )
    return went_well


def _on(target: PulsarTarget, airflow: Airflow, scenario: Scenario, answer: Answer, stages: Stages) -> bool:
    broken = ExitStack()
    try:
        with stages.stage(scenario.trouble):
            broken.enter_context(scenario.broken(target))
        return _healed(target, airflow, scenario, answer, stages)
    finally:
        # Brokers may refuse for minutes to delete what was made; all of this cluster ends right after.
        with suppress(NotReachedError):
            broken.close()


def _healed(target: PulsarTarget, airflow: Airflow, scenario: Scenario, answer: Answer, stages: Stages) -> bool:
    before, owned = scenario.shown(target), target.owned_bundles()
    stages.counts(f"{scenario.counted}, as the brokers show it:", before)
    with stages.stage("starting Airflow"):
        if policy := scenario.policy_on(target):
            airflow.spec.steward_home.mkdir(parents=True, exist_ok=True)
            (airflow.spec.steward_home / "policy.yaml").write_text(json.dumps(policy), encoding="utf-8")
        airflow.start({"STEWARD_CLUSTER": "local", **connection_to(target)})
        for dag_id in ("pulsar_remediate", "pulsar_rollback", "pulsar_observe"):
            airflow.api.unpause(dag_id)
    detail = _observe(airflow, scenario, stages)
    stages.say(f"  {detail['subject']}")
    _answer(airflow, detail, answer, stages)
    run = detail["task_instance"]["dag_run_id"]
    with stages.stage("applying and verifying what was answered"):
        state = airflow.api.wait_for_run("pulsar_remediate", run, APPLIED_WITHIN_S)
    now = scenario.shown(target)
    stages.counts(f"{scenario.counted}, read back from the brokers:", now)
    decision = _decision(airflow, run)
    stages.say(f"  the run ended in {state}; the answer was: {decision}")
    if answer == "ask":
        stages.say("Look around in Airflow as long as you like; pulsar_rollback takes back what was done. Ctrl-C ends.")
        while True:
            time.sleep(3600)
    if decision == "approved":
        return state == "success" and scenario.healed(before, now)
    changed = differences(owned, target.owned_bundles(), besides=EVENTS_NAMESPACE)
    if not changed and now == before:
        stages.say("  every bundle is owned by whom it was before, and nothing else changed")
        return state == "success"
    stages.say(f"  CHANGED: {changed or now}")
    return False


def _observe(airflow: Airflow, scenario: Scenario, stages: Stages) -> dict[str, Any]:
    for number in range(1, scenario.observations + 1):
        which = f" ({number} of {scenario.observations})" if scenario.observations > 1 else ""
        with stages.stage(f"pulsar_observe: collecting, diagnosing and planning with Spark{which}"):
            run = airflow.api.trigger("pulsar_observe")
            state = airflow.api.wait_for_run("pulsar_observe", run, OBSERVED_WITHIN_S)
            if state != "success":
                raise DemoError(f"pulsar_observe ended in {state}: {airflow.api.states('pulsar_observe', run)}")
    with stages.stage("pulsar_remediate: until the approval waits"):
        return _asked(airflow)


def _asked(airflow: Airflow) -> dict[str, Any]:
    deadline = time.monotonic() + ASKED_WITHIN_S
    while time.monotonic() < deadline:
        if waiting := airflow.api.waiting():
            return waiting[0]
        for run in airflow.api.runs("pulsar_remediate"):
            if run["state"] == "failed":
                states = airflow.api.states("pulsar_remediate", run["dag_run_id"])
                raise DemoError(f"pulsar_remediate failed before it could ask: {states}")
        time.sleep(0.3)
    raise DemoError(f"no approval waits after {ASKED_WITHIN_S:.0f} s: look into {airflow.spec.home}/logs")


def _answer(airflow: Airflow, detail: Mapping[str, Any], answer: Answer, stages: Stages) -> None:
    if answer != "ask":
        with stages.stage(f"answering through Airflow's REST API: {answer}"):
            ticked: dict[str, Any] = (
                {LOSS: True} if answer == "approve" and LOSS in (detail.get("params") or {}) else {}
            )
            airflow.api.answer(detail, answer.capitalize(), comment=f"the demo was told to {answer}", **ticked)
        return
    user, password = next(iter(airflow.passwords.items()))
    stages.say("")
    stages.say(f"  An approval waits at  {airflow.spec.url}/required_actions")
    stages.say(f"  Log in as  {user}  with the password  {password}")
    stages.say("")
    with stages.stage("waiting for your answer"):
        while any(each["task_instance"]["id"] == detail["task_instance"]["id"] for each in airflow.api.waiting()):
            time.sleep(1)


def _decision(airflow: Airflow, run: str) -> str:
    states = airflow.api.states("pulsar_remediate", run)
    applied = [state for task, state in states.items() if task.startswith("batch.apply")]
    return "approved" if "success" in applied or "failed" in applied else "rejected"
