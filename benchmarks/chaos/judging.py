"""Judges if the contracts held in one run: by the brokers' request logs, what the cluster shows, and the ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never
from urllib.parse import parse_qsl, urlencode, urlsplit

from benchmarks.chaos.holdings import LOSING
from lab.request_log import essence
from pulsar_steward.apply.execute import MAX_ATTEMPTS
from pulsar_steward.changes import kind_of
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.model.isolation import policy_in_words
from pulsar_steward.model.step import (
    AddPartitions,
    ChangeSetting,
    DeleteSubscription,
    RaiseCoordinators,
    SetIsolation,
    SplitBundle,
    UnloadBundle,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Engine

    from benchmarks.chaos.faults import Scenario
    from benchmarks.chaos.ground import State
    from benchmarks.chaos.running import ChaosRun
    from benchmarks.chaos.worker import Report
    from pulsar_steward.ledger.rows import Intent, StepOutcome
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Change


@dataclass(frozen=True)
class Judged:
    """Result of a run.

    Attributes:
        scenario: What was to happen.
        happened: Whether the fault came to pass.
        steps: Operations of the steps, and what each came to, in order.
        calls: Changing calls that brokers answered themselves.
        violations: Contracts that did not hold, in words; empty: all held.
        told: What each worker said, for whoever looks into it.
        seconds: How long it took.
    """

    scenario: Scenario
    happened: bool
    steps: tuple[tuple[str, str], ...]
    calls: tuple[str, ...]
    violations: tuple[str, ...]
    told: tuple[str, ...]
    seconds: float = 0

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Outcomes of the steps, in order."""
        return tuple(outcome for _, outcome in self.steps)


def judged(run: ChaosRun, engine: Engine, plans: Sequence[Plan], before: State, proof: Report | None) -> Judged:
    """Holds a run to account, once the cluster is whole again.

    Args:
        run: The run.
        engine: Its ledger.
        plans: The plan that was answered, and the same by another name of the cluster if there was one.
        before: State before the run.
        proof: Report of the worker that read the cluster back.
    """
    ledger, batch_id = LedgerReader(engine), plans[0].batches[0].batch_id
    found = [(plan, ledger.intents(plan.plan_id, batch_id), ledger.outcomes(plan.plan_id, batch_id)) for plan in plans]
    intents = [intent for _, of_plan, _ in found for intent in of_plan]
    calls, after = run.ground.logs.changing_calls(), run.ground.state()
    disturbed = run.scenario.fault.kind == "cluster" and run.happened
    violations = [
        *_calls(calls, intents),
        *(words for plan, tried, ended in found for words in _steps(run.scenario, plan, tried, ended)),
        *_names(found),
        *_settings(before, after, intents),
        *unintended_bundles(before, after, intents, disturbed=disturbed),
        *unintended(before, after, intents),
        *_identities(run.scenario, intents),
        *_losses(intents),
        *(words for plan, _, ended in found for words in _shown(after, plan, ended, disturbed=disturbed)),
        *_ledger(run.scenario, engine),
        *_workers(run.reports, proof),
        *_observation(run),
    ]
    return Judged(
        scenario=run.scenario,
        happened=run.happened,
        steps=tuple((_operation(plan, row), row.outcome.value) for plan, _, ended in found for row in ended),
        calls=tuple(calls),
        violations=tuple(violations),
        told=tuple(_told(report) for report in [*run.reports, proof]),
    )


def _operation(plan: Plan, outcome: StepOutcome) -> str:
    return str(kind_of(plan.batches[0].step(outcome.step_id).change).operation)


def _told(report: Report | None) -> str:
    return "killed" if report is None else f"{report.error or 'ended'}: {' | '.join(report.said)}"


def call_for(change: Change) -> str:
    """The call that makes a change, without what brokers add or leave out when they redirect it."""
    call = kind_of(change).call()
    query = f"?{urlencode(call.query)}" if call.query else ""
    return essence(f"{call.method} {call.path}{query}")


def _calls(calls: Sequence[str], intents: Sequence[Intent]) -> Iterator[str]:
    """Every changing call has exactly one intent, and so one approved step, behind it."""
    intended = Counter(call_for(intent.change) for intent in intents)
    for call, count in Counter(essence(call) for call in calls).items():
        if count > intended[call]:
            yield f"{call} was sent {count} times, and intended {intended[call]} times"
    targets = {intent.change.target for intent in intents if isinstance(intent.change, UnloadBundle)}
    for call in calls:
        named = dict(parse_qsl(urlsplit(call.partition(" ")[2]).query)).get("destinationBroker")
        if named not in {None, *targets}:
            yield f"{call} names a broker that nobody intended"


def _steps(scenario: Scenario, plan: Plan, intents: Sequence[Intent], outcomes: Sequence[StepOutcome]) -> Iterator[str]:
    """A step that was not permitted never ran, and one that was ran once."""
    if intents and not scenario.permits:
        yield f"{len(intents)} calls were intended, though the answer was {scenario.answer}"
    approved = {step.step_id for step in plan.batches[0].steps}
    for step_id, tries in Counter(intent.step_id for intent in intents).items():
        if step_id not in approved:
            yield f"{step_id} was tried, and is no step of the plan"
        if tries > MAX_ATTEMPTS:
            yield f"{step_id} was tried {tries} times"
    for step_id, times in Counter(row.step_id for row in outcomes if row.outcome is Outcome.DONE).items():
        if times > 1:
            yield f"{step_id} was done {times} times"
    done_at = {row.step_id: row.intent_id or 0 for row in outcomes if row.outcome is Outcome.DONE}
    for intent in intents:
        if intent.intent_id > done_at.get(intent.step_id, intent.intent_id):
            yield f"{intent.step_id} was tried again after it was done"


def _names(found: Sequence[tuple[Plan, Sequence[Intent], Sequence[StepOutcome]]]) -> Iterator[str]:
    """No step is done twice because its cluster has two names."""
    done = Counter(row.step_id for _, _, ended in found for row in ended if row.outcome is Outcome.DONE)
    yield from (f"{step_id} was done by {times} names" for step_id, times in done.items() if times > 1)


def _settings(before: State, after: State, intents: Sequence[Intent]) -> Iterator[str]:
    """No setting has a value that nobody intended."""
    intended = [intent.change for intent in intents if isinstance(intent.change, ChangeSetting)]
    for namespace in before.settings:
        was, is_now = before.settings[namespace], after.settings[namespace]
        for name in {*was, *is_now}:
            expected = [each.after for each in intended if (each.namespace, each.name) == (namespace, name)]
            if was.get(name) != is_now.get(name) and is_now.get(name) not in expected:
                yield f"{name} of {namespace} is {is_now.get(name)}, which nobody intended"


def unintended_bundles(before: State, after: State, intents: Sequence[Intent], *, disturbed: bool) -> Iterator[str]:
    """No bundle was split or moved that nobody intended; brokers that come and go move them by themselves."""
    splits = [intent.change for intent in intents if isinstance(intent.change, SplitBundle)]
    halves = {f"{each.namespace}/{half}" for each in splits for half in each.halves}
    moves = [intent.change for intent in intents if isinstance(intent.change, UnloadBundle)]
    moved = {f"{each.namespace}/{each.bundle}" for each in moves}
    if new := after.ranges - before.ranges - halves:
        yield f"{', '.join(sorted(new))} came about, which nobody intended"
    for bundle, owner in after.owners.items():
        if not disturbed and before.owners.get(bundle, owner) != owner and bundle not in moved:
            yield f"{bundle} is on {owner} now, which nobody intended"


def unintended(before: State, after: State, intents: Sequence[Intent]) -> Iterator[str]:
    """Other changes that nobody intended: of coordinators, groups of brokers, subscriptions, of what topics hold.

    Args:
        before: State before the run.
        after: State after it.
        intents: All of the run.
    """
    raised = {intent.change.after for intent in intents if isinstance(intent.change, RaiseCoordinators)}
    if after.coordinators not in {before.coordinators, *raised}:
        yield f"there are {after.coordinators} coordinators, which nobody intended"
    wanted = {(each.policy, each.after) for each in (it.change for it in intents) if isinstance(each, SetIsolation)}
    for name in sorted({*before.isolation, *after.isolation}):
        if (now := after.isolation.get(name)) != before.isolation.get(name) and (name, now) not in wanted:
            yield f"isolation policy {name} is {policy_in_words(now)}, which nobody intended"
    deletions = [intent.change for intent in intents if isinstance(intent.change, DeleteSubscription)]
    intended = {(each.topic, each.subscription) for each in deletions}
    for topic, name in sorted({*before.entries, *after.entries}):
        was, is_now = before.entries.get((topic, name)), after.entries.get((topic, name))
        if was != is_now and not (is_now is None and (topic, name) in intended):
            yield f"subscription {name} of {topic} has {is_now} entries after {was}, which nobody intended"
    for topic, held in before.held.items():
        if after.held[topic] < held:
            yield f"{topic} holds {after.held[topic]} after {held}, and nobody may delete any of it"


def _identities(scenario: Scenario, intents: Sequence[Intent]) -> Iterator[str]:
    """Nothing is to be deleted that is another one than was planned."""
    for intent in intents if scenario.fault.kind == "identity" else ():
        if isinstance(intent.change, DeleteSubscription):
            yield f"{intent.step_id} was to delete another subscription than the one that was planned"


def _losses(intents: Sequence[Intent]) -> Iterator[str]:
    """Nothing is to be deleted of an archive or for a replicator."""
    for intent in intents:
        if intent.change in LOSING.values():
            yield f"{intent.step_id} was to delete what nobody may"


def _shown(after: State, plan: Plan, outcomes: Sequence[StepOutcome], *, disturbed: bool) -> Iterator[str]:
    """A step that is recorded as done is what the cluster shows; read here once more, and not as `apply` reads it."""
    for row in outcomes:
        if row.outcome is Outcome.DONE and not _is_shown(plan.batches[0].step(row.step_id).change, after, disturbed):
            yield f"{row.step_id} is recorded as done, and does not show"


def _is_shown(change: Change, after: State, disturbed: bool) -> bool:  # noqa: PLR0911 - a kind of change each
    match change:
        case ChangeSetting(namespace=namespace, name=name, after=value):
            return after.settings[namespace].get(name) == value
        case SplitBundle(namespace=namespace, halves=halves):
            return {f"{namespace}/{half}" for half in halves} <= after.ranges
        case UnloadBundle(namespace=namespace, bundle=bundle, target=target):
            return disturbed or after.owners.get(f"{namespace}/{bundle}") == target
        case RaiseCoordinators(after=number):
            return after.coordinators == number
        case SetIsolation(policy=name, after=policy):
            return after.isolation.get(name) == policy
        case DeleteSubscription(topic=topic, subscription=name):
            return (topic, name) not in after.entries
        case AddPartitions():
            return False  # `Ground` makes none
        case unknown:
            assert_never(unknown)


def _ledger(scenario: Scenario, engine: Engine) -> Iterator[str]:
    """The ledger verifies, unless somebody tampered with it, and then it says so."""
    found = verify_ledger(engine).tampered
    if scenario.fault.kind == "tampering" and not found:
        yield "the ledger verifies, though it was tampered with"
    if scenario.fault.kind != "tampering":
        yield from (f"the ledger does not verify: {each.words}" for each in found)


def _workers(reports: Sequence[Report | None], proof: Report | None) -> Iterator[str]:
    """A worker ends in an outcome or an error of Steward's own, within its time."""
    for report in [*reports, proof]:
        if report is not None and report.error in {"Defect", "Hung"}:
            yield f"a worker came to {report.error}: {report.said}"
    if proof is None:
        yield "the batch could not be read back"


def _observation(run: ChaosRun) -> Iterator[str]:
    """The next look at the cluster works."""
    if not run.ground.observe():
        yield "the next observation saw nothing"
