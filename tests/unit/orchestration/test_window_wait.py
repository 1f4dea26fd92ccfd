"""What a run waits for: a maintenance window, and the variable that halts all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException, TaskDeferred
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse

from pulsar_steward.errors import LedgerError
from pulsar_steward.ledger.rows import BatchKey, Decision
from pulsar_steward.notify.variable import VariableHalt
from pulsar_steward.orchestration import batches, halt_variable, question_trigger
from pulsar_steward.orchestration.applying import OPENED, ApplyBatch, WindowTrigger
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.orchestration.halt_variable import HALT, SEEN, halted_by_variable, halts_seen
from pulsar_steward.orchestration.question_trigger import END, is_end
from tests.apply.worksite import RUN, Worksite
from tests.builders import CLUSTER, NOW, a_policy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pulsar_steward.model.plan import Plan


@pytest.fixture
def opens(site: Worksite, tmp_path: Path) -> datetime:
    """When the only window of the policy in force opens: some hours from now."""
    opens = (datetime.now(UTC) + timedelta(hours=5)).replace(minute=0, second=0, microsecond=0)
    guards = {"windows": [{"opens": f"0 {opens.hour} {opens.day} {opens.month} *", "minutes": 60}]}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump({"guards": guards}), encoding="utf-8")
    site.policy = a_policy(guards=guards)
    return opens


def approved_until(site: Worksite, until: datetime) -> Plan:
    """A question, and its approval."""
    return site.approve(site.asked_without_answer(site.move(0)), expires_at=until)


def a_task(plan: Plan) -> ApplyBatch:
    """The task that carries the plan's only batch out."""
    return ApplyBatch(task_id="apply", batch=msgspec.to_builtins(BatchRef.of(plan, plan.batches[0])))


def a_context() -> Any:
    """Context as Airflow hands it to a task, as far as ours look at it; its run is the worksite's."""
    dag_id, run_id, map_index = RUN.split("/")
    return {"ti": SimpleNamespace(dag_id=dag_id, run_id=run_id, map_index=int(map_index))}


def test_an_approved_batch_waits_for_its_window(site: Worksite, opens: datetime) -> None:
    """An approved batch is deferred until its window opens, and nothing is recorded, claimed or called."""
    plan = approved_until(site, opens + timedelta(minutes=60))
    with pytest.raises(TaskDeferred) as deferred:
        a_task(plan).execute(a_context())
    trigger = deferred.value.trigger
    assert isinstance(trigger, WindowTrigger)
    assert (trigger.plan_id, trigger.batch_id, trigger.opens_at) == (plan.plan_id, "b1", opens)
    assert deferred.value.method_name == "execute_in_window"
    assert site.ledger.outcomes(plan.plan_id, "b1") == ()
    assert site.user_of(1) is None
    assert site.untouched()


def test_a_batch_without_an_approval_does_not_wait(site: Worksite, opens: datetime) -> None:
    """A batch that was rejected, or that has no answer, is skipped at once, and does not wait for the window."""
    plan = site.asked_without_answer(site.move(0))
    assert opens > site.clock()
    with pytest.raises(AirflowSkipException, match="holds no answer"):
        a_task(plan).execute(a_context())
    site.approve(plan, decision=Decision.REJECTED, step_ids=(), digest=None, expires_at=None)
    with pytest.raises(AirflowSkipException, match="reject"):
        a_task(plan).execute(a_context())


def test_a_question_that_ends_meanwhile_leaves_nothing_behind(site: Worksite, opens: datetime) -> None:
    """A question that ends while its batch waits for the window skips the task, and the report has no trouble."""
    plan = approved_until(site, opens + timedelta(minutes=60))
    site.end(plan)
    with pytest.raises(AirflowSkipException, match=r"nothing was changed: .*it was seen otherwise"):
        a_task(plan).execute_in_window(a_context(), {END: "whatever the trigger says"})
    assert site.ledger.outcomes(plan.plan_id, "b1") == ()
    ref = BatchRef.of(plan, plan.batches[0])
    assert "it was seen otherwise" in (batches.ended_unbegun(ref, RUN) or "")
    told, troubles = batches.tell([ref], RUN.rpartition("/")[0])
    assert (troubles, "It waited, and nothing was changed" in told) == ((), True)


@pytest.mark.parametrize("event", [{END: "made up"}, {OPENED: "whenever"}, {}])
def test_what_the_trigger_says_decides_nothing(site: Worksite, opens: datetime, event: dict[str, Any]) -> None:
    """For any event of the trigger the batch waits for the same window while its question stands and that is shut."""
    plan = approved_until(site, opens + timedelta(minutes=60))
    with pytest.raises(TaskDeferred) as deferred:
        a_task(plan).execute_in_window(a_context(), event)
    assert isinstance(deferred.value.trigger, WindowTrigger)
    assert (deferred.value.trigger.opens_at, deferred.value.method_name) == (opens, "execute_in_window")
    assert site.untouched()


def test_an_approval_that_is_over_by_then_does_not_wait(site: Worksite, opens: datetime) -> None:
    """A batch whose approval expires before the window opens is refused at once, and nothing is called."""
    plan = approved_until(site, opens - timedelta(minutes=1))
    with pytest.raises(AirflowFailException, match="no maintenance window is open"):
        a_task(plan).execute(a_context())
    assert site.untouched()


# -- the trigger


def a_trigger(opens_at: datetime) -> WindowTrigger:
    """A trigger that looks into the ledger again and again."""
    return WindowTrigger(plan_id="p", batch_id="b1", opens_at=opens_at, look_every_seconds=0.01)


def fired(trigger: WindowTrigger) -> list[Any]:
    """Event of the trigger, in at most some seconds."""

    async def events() -> list[Any]:
        return [event.payload async for event in trigger.run()]

    return asyncio.run(asyncio.wait_for(events(), timeout=60))


def ledger_says(monkeypatch: pytest.MonkeyPatch, *words: str | Exception | None) -> None:
    """Has the ledger give these answers in turn, the last one for ever."""
    said = list(words)

    def read_over(batches: Collection[BatchKey]) -> dict[BatchKey, str]:
        now = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(now, Exception):
            raise now
        return {} if now is None else dict.fromkeys(batches, now)

    monkeypatch.setattr(question_trigger, "read_over", read_over)


def test_the_opening_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trigger ends when the window opens, also if the ledger could not be read meanwhile."""
    ledger_says(monkeypatch, None, LedgerError("gone"), None)
    opens = datetime.now(UTC) + timedelta(seconds=0.3)
    (event,) = fired(a_trigger(opens))
    assert event == {OPENED: opens.isoformat()}
    assert datetime.now(UTC) >= opens
    assert not is_end(event)


def test_the_end_of_the_question_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trigger ends with the reason as soon as the question ends, hours before the window opens."""
    ledger_says(monkeypatch, None, LedgerError("gone"), "it was seen otherwise")
    (event,) = fired(a_trigger(datetime.now(UTC) + timedelta(hours=5)))
    assert event == {END: "it was seen otherwise"}


def test_a_trigger_that_is_started_anew_waits_for_the_same() -> None:
    """A window trigger that is made anew from its serialized form equals the first one."""
    first = a_trigger(datetime.now(UTC))
    name, arguments = first.serialize()
    assert name == f"{WindowTrigger.__module__}.{WindowTrigger.__name__}"
    assert WindowTrigger(**arguments).serialize() == first.serialize()


class Variables:
    """Airflow's variables, as far as they are used.

    Attributes:
        unwritable: True: none can be set.
    """

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.unwritable = False

    def get(self, name: str, default: Any) -> Any:
        """A variable's value."""
        return self.values.get(name, default)

    def set(self, name: str, value: str, description: str) -> None:
        """Sets a variable."""
        if self.unwritable:
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.GENERIC_ERROR, detail={"why": description}))
        self.values[name] = value


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Variables:
    """No variable is set."""
    made = Variables()
    monkeypatch.setattr(halt_variable, "Variable", made)
    return made


def known() -> frozenset[str]:
    """Returns the clusters that the ledger knows."""
    return frozenset({CLUSTER, "west"})


def seen(minutes: int) -> Mapping[str, tuple[bool, int]]:
    """State of two clusters, so many minutes from now: whether it halts, and since which minute."""
    found = halts_seen([CLUSTER, "north"], NOW + timedelta(minutes=minutes), known)
    return {name: (each.halted, (each.at - NOW) // timedelta(minutes=1)) for name, each in found.items()}


@pytest.mark.parametrize(("value", "halts"), [("", False), ("west", False), ("west, east ", True), ("*", True)])
def test_it_halts_the_clusters_that_it_names(variables: Variables, value: str, *, halts: bool) -> None:
    variables.values[HALT] = value
    assert (halted_by_variable(CLUSTER, known) is not None) == halts


def test_each_change_has_the_time_at_which_it_was_seen_first(variables: Variables) -> None:
    assert (seen(0), SEEN in variables.values) == ({}, False)
    variables.values[HALT] = "east"
    assert [seen(1), seen(2)] == [{CLUSTER: (True, 1)}] * 2
    del variables.values[HALT]
    assert [seen(3), seen(4)] == [{CLUSTER: (False, 3)}] * 2
    variables.values[HALT] = "*"
    assert seen(5) == {CLUSTER: (True, 5), "north": (True, 5)}


def test_nobody_is_told_of_what_cannot_be_kept(variables: Variables) -> None:
    """A halt by the variable is reported only by the first look that can also store it."""
    variables.values[HALT] = "east"
    variables.unwritable = True
    assert seen(1) == {}
    variables.unwritable = False
    assert seen(2) == {CLUSTER: (True, 2)}


def test_what_somebody_wrote_into_its_memory_is_written_anew(variables: Variables) -> None:
    """A stored state of the variable that cannot be read is written anew, and the halt counts from then on."""
    variables.values |= {HALT: "east", SEEN: "[not json"}
    assert seen(1) == {CLUSTER: (True, 1)}
    kept = halts_seen([CLUSTER], NOW, known)[CLUSTER]
    assert kept == VariableHalt(
        halted=True, at=NOW + timedelta(minutes=1), value="east", way_out="take east out of it to go on"
    )
