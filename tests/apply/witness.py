"""Stands beside a carrying out: judges every call as it is made, and ends the worker where it is told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pulsar_steward.apply.execute import MAX_ATTEMPTS
from pulsar_steward.model.step import (
    AddPartitions,
    ChangeSetting,
    DeleteSubscription,
    RaiseCoordinators,
    SetIsolation,
    SplitBundle,
    UnloadBundle,
)
from tests.apply.machine import Truth
from tests.builders import NAMED

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.simulator import RequestRecord
    from pulsar_steward.ledger.rows import Intent
    from pulsar_steward.model.notice import Event
    from pulsar_steward.model.step import Change
    from pulsar_steward.pulsar.calls import Call
    from tests.apply.machine import Proposal
    from tests.apply.worksite import Worksite

OUTCOMES = {"done", "refused", "drifted", "failed", "unknown"}


class Crash(BaseException):
    """The worker's end: nothing catches it."""


class Witness:
    """Stands beside one carrying out: checks each call as it is made, and ends the worker where it is told.

    Args:
        site: The worksite.
        proposal: What is carried out.
        run: By which run.
        halted: Whether somebody said stop.
        crash: Where the worker ends: ``before PUT``, ``after PUT``, ``before GET``, ``after GET``, ``outcome``,
            ``switch <n>`` (when the stop switch is asked that often), or ``never``.
        midway: Done once, right after the first change.

    Attributes:
        faults: What must not have happened, in words.
        seen: How often what happened.
    """

    def __init__(
        self,
        site: Worksite,
        proposal: Proposal,
        run: str,
        *,
        halted: Callable[[], bool],
        crash: str = "never",
        midway: Callable[[], object] | None = None,
    ) -> None:
        self.faults: list[str] = []
        self.seen: Counter[str] = Counter()
        self.crashed = False
        self._site = site
        self._truth = Truth(site)
        self._proposal = proposal
        self._run = run
        self._halted = halted
        self._crash = crash
        self._midway = midway
        self._asked = 0
        self._known = {intent.intent_id for intent in self._intents()}
        tried = {intent.step_id for intent in self._intents() if proposal.asked.get(intent.answer_id) == run}
        self._interrupted = {step for step in tried if (run, step) not in proposal.came_to}
        self._sent: list[Call] = []

    # -- what the worker meets

    def switch(self, _name: str) -> None:
        """Asked before every change and while waiting."""
        self._asked += 1
        self._end_at(f"switch {self._asked}")

    def before(self, call: Call) -> None:
        """Right before a call."""
        kind = "GET" if call.method == "GET" else "PUT"
        if kind == "PUT":
            self._judge(call)
        elif not self._intents():
            self.faults.append(f"{call} without an intent")
        self._end_at(f"before {kind}")
        if kind == "PUT":
            self._sent.append(call)

    def after(self, call: Call) -> None:
        """Right after a call that did not fail."""
        kind = "GET" if call.method == "GET" else "PUT"
        if kind == "PUT" and self._midway is not None:
            midway, self._midway = self._midway, None
            midway()
        self._end_at(f"after {kind}")

    def told(self, event: Event) -> None:
        """After an outcome is in the ledger."""
        if event.event != "outcome" or event.step_id is None:
            return
        self.seen[str(event.result)] += 1
        if event.result not in OUTCOMES:
            self.faults.append(f"{event.step_id} came to {event.result}")
        if event.result == "done":
            self._judge_done(event.step_id)
        elif event.step_id in self._interrupted and event.result in {"refused", "drifted"}:
            self._judge_forgotten(event.step_id)
        if (self._run, event.step_id) in self._proposal.came_to:
            self.faults.append(f"{event.step_id} came to {event.result}, and to something else before")
        self._proposal.came_to[self._run, event.step_id] = event.result
        self._end_at("outcome")

    # -- what is made of it

    def _intents(self) -> tuple[Intent, ...]:
        return self._site.ledger.intents(self._proposal.plan.plan_id, "b1")

    def _judge(self, call: Call) -> None:
        new = [intent for intent in self._intents() if intent.intent_id not in self._known]
        if len(new) != 1:
            self.faults.append(f"{call}: {len(new)} new intents before it")
            return
        (intent,) = new
        self._known.add(intent.intent_id)
        self._proposal.tried_under.add(intent.answer_id)
        self.seen["calls"] += 1
        self.faults += [f"{call}: {wrong}" for wrong in self._wrongs(call, intent)]

    def _wrongs(self, call: Call, intent: Intent) -> list[str]:
        proposal, step_id = self._proposal, intent.step_id
        # A clock that is set back counts as late as what is in the ledger: what was approved before is not yet to come.
        now = max(self._site.clock(), *(each.at for each in self._intents()))
        batch = proposal.plan.batches[0]
        approved = proposal.permitted(self._run, now)
        earlier = [step.step_id for step in batch.steps if step.step_id < step_id and step.step_id in approved]
        lease = self._site.ledger.lease(NAMED)
        wrongs = {
            "not the call of its intent": not _is_call_of(intent.change, call),
            "not the change that was approved": not _leads_to(intent.change, batch.step(step_id).change),
            "not approved": step_id not in approved,
            "halted": self._halted(),
            "done or given up before": (self._run, step_id) in proposal.came_to,
            "something before it is not done": any(proposal.came_to.get((self._run, n)) != "done" for n in earlier),
            "not what has to be done first": not set(batch.step(step_id).after) <= {*earlier},
            "tried too often": sum(each.step_id == step_id for each in self._intents()) > MAX_ATTEMPTS,
            "other values before it": not self._truth.matches(intent),
            "without the lease": lease is None or not lease.holder.startswith(self._run) or lease.expires_at <= now,
        }
        return [words for words, wrong in wrongs.items() if wrong]

    def _judge_done(self, step_id: str) -> None:
        change = self._proposal.plan.batches[0].step(step_id).change
        if not self._truth.shows(change):
            self.faults.append(f"{step_id} is said to be done, and the cluster does not show it")
        if not any(intent.step_id == step_id for intent in self._intents()):
            self.faults.append(f"{step_id} is said to be done without an intent")
        if "done" in {what for (_, step), what in self._proposal.came_to.items() if step == step_id}:
            self.faults.append(f"{step_id} is done twice")

    def _judge_forgotten(self, step_id: str) -> None:
        if self._truth.shows(self._proposal.plan.batches[0].step(step_id).change):
            self.faults.append(f"{step_id} was interrupted and is there, and is not said to be done")

    def reached(self, records: tuple[RequestRecord, ...]) -> None:
        """Compares the changing requests that reached the brokers with the calls: redirects apart, one each."""
        left, tail = list(self._sent), ""
        for record in records:
            # A broker that sends its caller on says so in the query.
            if "authoritative=" not in record.query:
                while left and _tail(left[0].path) != _tail(record.path):
                    left.pop(0)  # which reached nobody
                tail = _tail(left.pop(0).path) if left else ""
            if _tail(record.path) != tail:
                self.faults.append(f"{record.method} {record.path} reached {record.broker_id}, and nobody called it")

    def _end_at(self, point: str) -> None:
        if point == self._crash and not self.crashed:
            self.crashed = True
            self.seen[f"crash {point}"] += 1
            raise Crash


def _tail(path: str) -> str:
    return path.partition("/namespaces/")[2] or path


def _is_call_of(change: Change, call: Call) -> bool:  # noqa: PLR0911 - one for each kind
    match change:
        case UnloadBundle():
            same = call.query == {"destinationBroker": change.target}
            return same and call.path.endswith(f"{change.namespace}/{change.bundle}/unload")
        case SplitBundle():
            return call.path.endswith(f"{change.namespace}/{change.bundle}/split")
        case ChangeSetting():
            return change.namespace in call.path and (call.method == "DELETE") == (change.after is None)
        case RaiseCoordinators():
            return call.path.endswith("/transactionCoordinator/replicas") and call.body == change.after
        case AddPartitions():
            return call.path.endswith("/partitions") and call.body == change.after
        case SetIsolation():
            return call.path.endswith(f"/{change.policy}") and (call.method == "DELETE") == (change.after is None)
        case DeleteSubscription():
            return call.method == "DELETE" and call.path.endswith(f"/subscription/{change.subscription}")


def _leads_to(change: Change, approved: Change) -> bool:
    """Whether it is the approved change, or the same bundle's move to the same target from where it landed."""
    if isinstance(change, UnloadBundle) and isinstance(approved, UnloadBundle):
        return (change.namespace, change.bundle, change.target) == (
            approved.namespace,
            approved.bundle,
            approved.target,
        )
    return change == approved
