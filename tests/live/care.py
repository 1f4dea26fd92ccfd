"""One cluster under Steward's care: what an operator does in Airflow, and what brokers and ledger then say."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.observing import settings_of
from lab.airflow.settings import connection_to
from lab.waiting import wait_until
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from sqlalchemy import Engine

    from lab.airflow.server import Airflow
    from lab.cluster import Lab
    from pulsar_steward.model.plan import Plan

OBSERVED_WITHIN_S = 480.0
ASKED_WITHIN_S = 240.0
ENDED_WITHIN_S = 360.0


@dataclass(frozen=True)
class Care:
    """A cluster in Steward's connections, under a name of its own."""

    airflow: Airflow
    lab: Lab
    cluster: str
    engine: Engine

    @classmethod
    @contextmanager
    def taken(
        cls, airflow: Airflow, lab: Lab, cluster: str, documents: Mapping[str, str] | None = None
    ) -> Iterator[Care]:
        """Adds the connections to Airflow's: the lab's own, or others, by the names of their variables."""
        documents = documents or connection_to(lab, cluster)
        names = {f"{variable}".removeprefix("AIRFLOW_CONN_").lower(): variable for variable in documents}
        for name, variable in names.items():
            airflow.api.add_connection(name, documents[variable])
        engine = open_ledger(airflow.spec.ledger)
        care = cls(airflow, lab, cluster, engine)
        try:
            yield care
        finally:
            engine.dispose()
            # Other tests call the same brokers by another name, and no name is the way round another one's policy.
            care.policy_file.unlink(missing_ok=True)
            for name in names:
                airflow.api.remove_connection(name)

    @property
    def ledger(self) -> LedgerReader:
        """Reader of the ledger."""
        return LedgerReader(self.engine)

    @property
    def ledger_writer(self) -> LedgerWriter:
        """To record a plan of the test's own."""
        return LedgerWriter(self.engine)

    def record(self, plan: Plan, **sections: Any) -> Plan:
        """Records a plan as one for this cluster, under the default policy with other values in some sections.

        Returns:
            The plan as it is recorded.
        """
        policy = Policy.model_validate(sections)
        if sections:
            self.write_policy(sections)
        with LiveReader(settings_of(self.lab, policy)) as look:
            identity = look.identity()
        mine = msgspec.structs.replace(plan, pulsar_cluster=identity, policy_digest=policy.digest)
        self.ledger_writer.record_plan(mine, datetime.now(UTC), policy=policy)
        return mine

    @property
    def policy_file(self) -> Path:
        """The cluster's own policy, if it has one."""
        return self.airflow.spec.steward_home / "policies" / f"{self.cluster}.yaml"

    def write_policy(self, sections: Mapping[str, Any]) -> None:
        """Puts the cluster's policy where tasks read it, each time they begin; JSON is YAML."""
        self.policy_file.parent.mkdir(parents=True, exist_ok=True)
        self.policy_file.write_text(json.dumps(sections), encoding="utf-8")

    def observe(self, *unreachable: str) -> dict[str, str | None]:
        """Runs ``pulsar_observe`` to its end; returns its tasks' states.

        Args:
            unreachable: Further clusters without a connection, whose tasks fail and have their own states.
        """
        run = self.airflow.api.trigger("pulsar_observe", {"cluster": ",".join((self.cluster, *unreachable))})
        state = self.airflow.api.wait_for_run("pulsar_observe", run, OBSERVED_WITHIN_S)
        states = self.airflow.api.states("pulsar_observe", run)
        assert state == ("failed" if unreachable else "success"), f"pulsar_observe {run}: {states}"
        return {re.sub(r"cluster\.(\w+)\[0\]", r"\1", name): state for name, state in states.items()}

    def remediate(self, **parameters: Any) -> str:
        """Starts ``pulsar_remediate`` by hand; returns the run's id."""
        return self.airflow.api.trigger("pulsar_remediate", {"cluster": self.cluster, **parameters})

    def approvals(self, count: int = 1, run: str | None = None) -> list[dict[str, Any]]:
        """Questions about this cluster, once they are so many; by map index within a run, oldest first."""
        wait_until(lambda: len(self.waiting(run)) >= count, f"{count} approvals wait", ASKED_WITHIN_S, every_s=0.3)
        return self.waiting(run)

    def waiting(self, run: str | None = None) -> list[dict[str, Any]]:
        """Questions about this cluster that wait for an answer now."""
        found = [each for each in self.airflow.api.waiting() if each["subject"].startswith(f"{self.cluster}:")]
        mine = [each["task_instance"] | {"detail": each} for each in found]
        chosen = [each for each in mine if run in (None, each["dag_run_id"])]
        return [each["detail"] for each in sorted(chosen, key=lambda each: (each["run_after"], each["map_index"]))]

    def approve(
        self, detail: Mapping[str, Any], *, meanwhile: Callable[[], object] = lambda: None, **form: Any
    ) -> None:
        """Approves, all steps ticked unless the form says otherwise; ``meanwhile`` is done right after the answer."""
        self.airflow.api.answer(detail, "Approve", meanwhile=meanwhile, **form)

    def reject(self, detail: Mapping[str, Any]) -> None:
        """Rejects."""
        self.airflow.api.answer(detail, "Reject", comment="not now")

    def ended(self, detail_or_run: Mapping[str, Any] | str) -> str:
        """Waits for the end of a run of ``pulsar_remediate``; returns its state."""
        run = detail_or_run if isinstance(detail_or_run, str) else detail_or_run["task_instance"]["dag_run_id"]
        return self.airflow.api.wait_for_run("pulsar_remediate", run, ENDED_WITHIN_S)

    def placement(self) -> list[int]:
        """Transaction coordinators by broker, most first."""
        return sorted(self.lab.tc_placement().values(), reverse=True)
