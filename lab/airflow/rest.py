"""Airflow's REST API, as far as the demo and the tests drive it: trigger, wait, read, answer."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from lab.errors import LabError, NotReachedError

ANY = "~"
FINISHED = frozenset({"success", "failed"})
PAGE = 100
READ_WITHIN_S = 90.0
NOTICED_WITHIN_S = 30.0
WAITING = frozenset({"awaiting_input", "deferred"})
"""States of a task that waits for a person: without a trigger, or in one, as those of Steward do."""


class AirflowCallError(LabError):
    """Airflow refused a call."""


class AirflowApi:
    """One user's view of Airflow; the token is fetched when it is first needed.

    Args:
        url: Address of the pages.
        user: Name of the user.
        password: Their password.
        noticed: Tells of a task instance whether the scheduler knows that its process has ended; None: that cannot be
            told, and two of its heartbeats are waited for instead.
    """

    def __init__(
        self, url: str, user: str, password: str, noticed: Callable[[Mapping[str, Any]], bool] | None = None
    ) -> None:
        self._noticed = noticed
        self._login = {"username": user, "password": password}
        self._client = httpx.Client(base_url=url, timeout=30)
        self.user = user

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at ``/api/v2/<path>``."""
        return self._call("GET", path, params=query)

    def steward(self, path: str) -> Any:
        """The JSON at ``/steward/api/<path>``, of Steward's pages."""
        return self._call("GET", path, root="/steward/api")

    def unpause(self, dag_id: str) -> None:
        """Waits until a DAG has been read, and lets it run."""
        deadline = time.monotonic() + READ_WITHIN_S
        while True:
            try:
                self._call("PATCH", f"dags/{dag_id}", json={"is_paused": False})
            except AirflowCallError as error:
                if time.monotonic() > deadline:
                    raise NotReachedError(f"DAG {dag_id} did not appear: {error}; {self.import_errors()}") from error
                time.sleep(0.5)
            else:
                return

    def import_errors(self) -> list[str]:
        """Errors with which DAG files could not be imported."""
        return [f"{each['filename']}: {each['stack_trace']}" for each in self.get("importErrors")["import_errors"]]

    def add_connection(self, name: str, document: str) -> None:
        """Adds a connection from the JSON that an ``AIRFLOW_CONN_`` variable would hold."""
        fields = json.loads(document)
        extra = json.dumps(fields.pop("extra", {}))
        self._call("POST", "connections", json={"connection_id": name, **fields, "extra": extra})

    def remove_connection(self, name: str) -> None:
        """Removes a connection."""
        self._call("DELETE", f"connections/{name}")

    def add_variable(self, name: str, value: str) -> None:
        """Adds a variable."""
        self._call("POST", "variables", json={"key": name, "value": value})

    def remove_variable(self, name: str) -> None:
        """Removes a variable."""
        self._call("DELETE", f"variables/{name}")

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None) -> str:
        """Starts a run; returns its id."""
        body = {"logical_date": None, "conf": dict(conf or {})}
        return str(self._call("POST", f"dags/{dag_id}/dagRuns", json=body)["dag_run_id"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """Runs of a DAG, oldest first."""
        found: list[dict[str, Any]] = self.get(f"dags/{dag_id}/dagRuns", limit=100)["dag_runs"]
        return sorted(found, key=lambda run: run["run_after"])

    def wait_for_run(self, dag_id: str, run_id: str, within_s: float) -> str:
        """Waits until a run is over; returns ``success`` or ``failed``."""
        deadline = time.monotonic() + within_s
        while (state := self.get(f"dags/{dag_id}/dagRuns/{run_id}")["state"]) not in FINISHED:
            if time.monotonic() > deadline:
                raise NotReachedError(f"{dag_id} {run_id} is still {state}: {self.states(dag_id, run_id)}")
            time.sleep(0.3)
        return str(state)

    def fail_run(self, dag_id: str, run_id: str) -> None:
        """Marks a run as failed, as a person does on its page: tasks of it that wait end."""
        self._call("PATCH", f"dags/{dag_id}/dagRuns/{run_id}", json={"state": "failed"})

    def states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """Task (``task_id`` or ``task_id[map index]``) to state."""
        found = self.get(f"dags/{dag_id}/dagRuns/{run_id}/taskInstances", limit=1000)["task_instances"]
        return {_name(each): each["state"] for each in found}

    def clear(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Has a task of a run run again, with all that is behind it."""
        body = {"dag_run_id": run_id, "task_ids": [task_id], "include_downstream": True, "only_failed": False}
        self._call("POST", f"dags/{dag_id}/clearTaskInstances", json={"dry_run": False, **body})

    def hand_on(self, dag_id: str, run_id: str, task_id: str, value: object) -> None:
        """Replaces what a task handed on to those behind it, as whoever may answer can."""
        place = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/return_value"
        self._call("PATCH", place, json={"value": value})

    def waiting(self) -> list[dict[str, Any]]:
        """Approvals that wait for an answer, as Airflow's *Required Actions* lists them.

        One whose task is over, as its question ended, has no answer either; it is not in the list. The state is looked
        at here, as Airflow 3.1 and 3.2 refuse to filter by one that they do not know.
        """
        unanswered: list[dict[str, Any]] = []
        while True:
            query = {"limit": PAGE, "offset": len(unanswered), "response_received": False}
            page = self.get(f"dags/{ANY}/dagRuns/{ANY}/hitlDetails", **query)["hitl_details"]
            unanswered += page
            if len(page) < PAGE:
                return [each for each in unanswered if each["task_instance"]["state"] in WAITING]

    def answer(
        self,
        detail: Mapping[str, Any],
        option: str,
        *,
        meanwhile: Callable[[], object] = lambda: None,
        within_s: float = 120,
        **form: Any,
    ) -> None:
        """Answers an approval, and returns once the asking task has taken the answer.

        Airflow 3.3 fails a task whose answer comes before the scheduler has noticed that it waits, which only a
        program can be quick enough for. So this waits until the scheduler has; should the task ask again all the same,
        it is answered again.

        Args:
            detail: What waits, as `waiting` lists it.
            option: One of those that the question has, such as ``Approve`` or ``Reject``.
            meanwhile: Done right after the answer was sent, before it is taken.
            within_s: How long the task may take.
            **form: The form's fields; what is not given is sent as the form shows it.
        """
        shown = {name: param.get("value") for name, param in (detail.get("params") or {}).items()}
        body = {"chosen_options": [option], "params_input": {**shown, **form}}
        deadline = time.monotonic() + within_s
        self.settle(detail, within_s)
        self.answer_raw(detail, body)
        meanwhile()
        while (state := self._state_of(detail)) != "success":
            if state == "failed" or time.monotonic() > deadline:
                raise NotReachedError(f"the answer was not taken: {detail['subject']} is {state}")
            if state in WAITING and self._asks(detail):
                self.settle(detail, deadline - time.monotonic())
                self.answer_raw(detail, body)
            time.sleep(0.2)

    def answer_raw(self, detail: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Answers an approval with exactly this document."""
        task = detail["task_instance"]
        place = f"dags/{task['dag_id']}/dagRuns/{task['dag_run_id']}/taskInstances/{task['task_id']}"
        self._call("PATCH", f"{place}/{task['map_index']}/hitlDetails", json=dict(body))

    def settle(self, detail: Mapping[str, Any], within_s: float = 120) -> None:
        """Waits until the task waits, and the scheduler knows that its process ended: then it may be answered."""
        deadline = time.monotonic() + within_s
        while self._state_of(detail) not in WAITING and time.monotonic() < deadline:
            time.sleep(0.1)
        if self._noticed is None:
            for _ in range(2):
                seen = self._heartbeat()
                while self._heartbeat() == seen and time.monotonic() < deadline:
                    time.sleep(0.1)
            return
        last = min(deadline, time.monotonic() + NOTICED_WITHIN_S)
        while not self._noticed(self._task_of(detail)) and time.monotonic() < last:
            time.sleep(0.2)

    def _heartbeat(self) -> str | None:
        beat = self.get("monitor/health")["scheduler"]["latest_scheduler_heartbeat"]
        return None if beat is None else str(beat)

    def _state_of(self, detail: Mapping[str, Any]) -> str | None:
        state = self._task_of(detail)["state"]
        return None if state is None else str(state)

    def _task_of(self, detail: Mapping[str, Any]) -> dict[str, Any]:
        """The asking task as it is now."""
        task = detail["task_instance"]
        place = f"dags/{task['dag_id']}/dagRuns/{task['dag_run_id']}/taskInstances/{task['task_id']}"
        found: dict[str, Any] = self.get(f"{place}/{task['map_index']}")
        return found

    def _asks(self, detail: Mapping[str, Any]) -> bool:
        """True if the same task waits for an answer, be it in another attempt."""
        place = ("dag_id", "dag_run_id", "task_id", "map_index")
        mine = [detail["task_instance"][name] for name in place]
        return any([each["task_instance"][name] for name in place] == mine for each in self.waiting())

    def log(self, dag_id: str, run_id: str, task_id: str, *, map_index: int = -1, attempt: int = 1) -> str:
        """A task's log as text, one event a line, with the messages of errors behind it."""
        path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{attempt}"
        content = self.get(path, map_index=map_index, full_content=True)["content"]
        return "\n".join(_line(each) if isinstance(each, dict) else str(each) for each in content)

    def _call(self, method: str, path: str, root: str = "/api/v2", **more: Any) -> Any:
        if "Authorization" not in self._client.headers:
            answer = self._client.post("/auth/token", json=self._login)
            if not answer.is_success:
                raise AirflowCallError(f"user {self.user} may not log in: {answer.status_code} {answer.text[:300]}")
            self._client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        answer = self._client.request(method, f"{root}/{path}", **more)
        if not answer.is_success:
            raise AirflowCallError(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json() if answer.content else None


def _name(task: Mapping[str, Any]) -> str:
    index = task["map_index"]
    return str(task["task_id"]) if index < 0 else f"{task['task_id']}[{index}]"


def _line(logged: Mapping[str, Any]) -> str:
    errors = [f"{each['exc_type']}: {each['exc_value']}" for each in logged.get("error_detail") or []]
    return "; ".join([str(logged.get("event", logged)), *errors])
