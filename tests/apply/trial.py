"""One cluster, its ledger and all that happened to them: what the state machine's rules are made of."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lab.simulator import NamespaceSpec, running_simulator
from pulsar_steward.apply.halting import never
from pulsar_steward.errors import LeaseLost, LedgerError, Refused
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.publishing import QuestionChanges
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.question_form import APPROVE, LEFT_OUT, LOSS, QUESTION, STEPS
from tests.apply.forging import forgeries
from tests.apply.happenings import happenings
from tests.apply.machine import RETURNS, SHOP, Proposal, Truth, Word, steps_for
from tests.apply.witness import Crash, Witness
from tests.apply.worksite import SKEWED, Worksite, a_question, quick_policy
from tests.builders import ASKED_DIGEST, NAMED, a_batch, a_plan
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lab.simulator import Fault
    from pulsar_steward.ledger.rows import Answer
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.schema import Policy
    from tests.apply.machine import Wish

TWO_SHOPS = replace(SKEWED, namespaces=(*SKEWED.namespaces, NamespaceSpec(RETURNS)))

TWO_PEOPLE = "bundle_split"
"""The kind of batch that two people have to approve."""


def impatient_policy() -> Policy:
    """Policy under which little is waited for, and no guard makes a bundle rest after a change."""
    policy = quick_policy(
        apply={"lease_wait_seconds": 0, "proof_wait_seconds": 0},
        approval={"two_people_for": [TWO_PEOPLE]},
        guards={"circle_minutes": 0, "most_coordinators": 10_000, "coordinators_rest_minutes": 0},
        tc_skew={"cooldown_minutes": 0},
        health={"return_seconds": 1},
        admin={"read_timeout_seconds": 2},
    )
    return policy.model_copy(update={"apply": policy.apply.model_copy(update={"proof_timeout_seconds": 0.4})})


class Trial:
    """Events in the system and in what is known beside it, always both.

    Attributes:
        known: Every plan, oldest first.
        down: Brokers that ended.
        faults: What must not have happened, in words.
        seen: How often what happened.
    """

    def __init__(self, site: Worksite) -> None:
        self.site = site
        self.truth = Truth(site)
        self.known: list[Proposal] = []
        self.down: set[str] = set()
        self.faults: list[str] = []
        self.seen: Counter[str] = Counter()
        self._halts: set[str] = set()
        self._forged: set[tuple[str, str, str]] = set()

    # -- plans and answers

    def recorded(self, wishes: Iterable[Wish], *, two: bool = False, supersede: tuple[str, ...] = ()) -> Proposal:
        """A plan for the cluster as it is, which one or two people have to approve."""
        steps = steps_for(self.truth, self.site.brokers, wishes)
        batch = a_batch(*steps, kind=TWO_PEOPLE if two else "tc_balance", **_parts(steps))
        plan = a_plan(batch, taken_at=self.site.clock())
        # A question that somebody removed cannot be written again either, nor any in its place.
        removed = any((how, table) == ("removed", "questions") for how, table, _ in self._forged)
        asked = QuestionChanges() if removed else QuestionChanges(asked=(a_question(plan),))
        plan = self.site.record(plan, supersede=supersede, questions=asked)
        self.known.append(Proposal(plan, voices=2 if two else 1, forged=self._forged))
        return self.known[-1]

    def superseded(self, older: Proposal, wishes: Iterable[Wish]) -> Proposal:
        """A newer plan, which takes the older one's place."""
        # A supersession that somebody removed cannot be written again, as the chain knows its row.
        untouched = not older.forged
        newer = self.recorded(wishes, supersede=(older.plan.plan_id,) if untouched else ())
        older.superseded = older.superseded or untouched
        return newer

    def ended(self, proposal: Proposal) -> None:
        """A later observation no longer proposes it."""
        if not proposal.forged:
            self.site.end(proposal.plan)
            proposal.ended = True

    def confirmed(self, proposal: Proposal) -> None:
        """A later observation proposes the same, which permits nothing."""
        if not proposal.forged:
            self.site.confirm(proposal.plan)

    def answered(
        self, proposal: Proposal, run: str, steps: Iterable[str], *, permits: bool = True, **fields: Any
    ) -> None:
        """Records one person's answer; `fields` are those of `Answer`."""
        self._answers(proposal, self.site.approval(proposal.plan, *steps, run=run, **fields), permits=permits)

    def approved_but_for_the_first_namespace(self, proposal: Proposal, run: str) -> None:
        """A person ticks every step, and leaves a namespace out where there are several."""
        plan, now = proposal.plan, self.site.clock()
        steps = plan.batches[0].steps
        left_out = [steps[0].change.namespace] if proposal.is_group else []
        event = {
            "chosen_options": [APPROVE],
            "params_input": {STEPS: list(proposal.step_ids), LEFT_OUT: left_out, LOSS: True, QUESTION: ASKED_DIGEST},
            "responded_at": now,
            "responded_by_user": {"id": "operator", "name": "operator"},
        }
        asked = ApprovalQuestion(plan=plan, batch_id="b1", run=run, asked_digest=ASKED_DIGEST)
        answer = interpret(event, asked, self.site.policy.approval, now)
        if answer.step_ids != tuple(step.step_id for step in steps if step.change.namespace not in left_out):
            self.faults.append(f"all but {left_out} was taken for {answer.step_ids}: {answer.reason}")
        self._answers(proposal, answer, permits=True)

    def _answers(self, proposal: Proposal, answer: Answer, *, permits: bool) -> None:
        run = answer.run
        self.site.ask(proposal.plan, run, voice=answer.voice)
        answer_id = self.site.writes.record_answer(answer)
        until = answer.expires_at if permits else None
        word = Word(answer_id, answer.answered_by, frozenset(answer.step_ids), answer.answered_at, until)
        proposal.words.setdefault(run, {})[answer.voice] = word
        proposal.asked[answer_id] = run

    def said(self, name: str, *, halted: bool) -> None:
        """Somebody says stop, or go on."""
        say(self.site.engine, Halt(cluster=name, at=self.site.clock(), halted=halted, said_by="bob", reason="made up"))
        (self._halts.add if halted else self._halts.discard)(name)

    def forged(self, proposal: Proposal, how: str, run: str) -> None:
        """Somebody changes a row of a plan in the database, once."""
        if proposal.forged:
            return
        with self.site.engine.begin() as connection:
            forged = forgeries(run)[how](connection, proposal.plan)
        if forged is not None:
            proposal.forged.add(forged)
            self.seen[f"forged: {how}"] += 1

    def taken_by_another(self, proposal: Proposal, run: str) -> None:
        """Another run claims a run's answers, which it can as long as that one does not act on them."""
        for word in () if proposal.forged else proposal.words.get(run, {}).values():
            if self.site.writes.use_answer(word.answer_id, "another/run/0", self.site.clock()):
                if word.answer_id in proposal.tried_under:
                    self.faults.append("two runs act on one answer")
                proposal.taken[word.answer_id] = "another/run/0"

    # -- whatever else

    def happens(self, proposal: Proposal, name: str) -> None:
        """Has one thing happen to a plan, or to the cluster."""
        happenings(self, proposal)[name]()
        self.seen[name] += 1

    def a_good_day(self) -> None:
        """All brokers are there, nobody says stop, and no dead worker holds the cluster any more."""
        for name in sorted(self._halts):
            self.said(name, halted=False)
        for broker in sorted(self.down):
            self.returns(broker)
        self.truth.clients_come(TC_NAMESPACE, SHOP)
        self.site.clock.outlive_a_crash()

    @property
    def living(self) -> str:
        """A broker that is there."""
        return max(broker for broker in self.site.brokers if broker not in self.down)

    def ends(self, broker: str, *, killed: bool) -> None:
        """A broker ends; one is always left."""
        if broker not in self.down and len(self.down) < len(self.site.brokers) - 1:
            (self.site.simulator.kill_broker if killed else self.site.simulator.stop_broker)(broker)
            self.down.add(broker)

    def returns(self, broker: str) -> None:
        """It is there again."""
        self.site.simulator.start_broker(broker)
        self.down.remove(broker)

    # -- carrying out

    def carried_out(
        self,
        proposal: Proposal,
        run: str,
        *,
        crash: str = "never",
        trouble: Fault | None = None,
        midway: str = "nothing",
    ) -> None:
        """A run acts on a plan; what it does is judged as it does it, and how it ends afterwards."""
        site = self.site
        happens = happenings(self, proposal)[midway]
        witness = Witness(site, proposal, run, halted=lambda: bool(self._halts), crash=crash, midway=happens)
        opens = proposal.permitted(run, site.clock()) if not self._halts else frozenset()
        lease = site.ledger.lease(NAMED)
        free = lease is None or lease.expires_at <= site.clock()
        site.simulator.requests.clear()
        if trouble is not None:
            site.simulator.faults.add(trouble)
        ended = self._end_of(proposal, run, witness)
        site.simulator.faults.clear()
        if ended is Crash:
            self._leave_the_lease(run)
        witness.reached(site.simulator.requests.writes())
        self.faults += [*witness.faults, *_wrong_end(ended, opens=bool(opens), free=free, calm=midway == "nothing")]
        self.seen += witness.seen
        self.seen["opened" if opens else "shut"] += 1
        self.seen[f"ended: {ended.__name__ if ended else 'returned'}"] += 1

    def _end_of(self, proposal: Proposal, run: str, witness: Witness) -> type[BaseException] | None:
        """Returns the type of the error that ended the run, or None if the run returned outcomes."""
        self.site.switch = witness.switch
        around = {"before": witness.before, "after": witness.after, "listener": witness.told}
        try:
            self.site.carry_out(proposal.plan, run, **around)
        except (Crash, Refused, LedgerError, LeaseLost) as end:
            return type(end)
        finally:
            self.site.switch = never
        return None

    def _leave_the_lease(self, run: str) -> None:
        """A process that was killed gives nothing back: it holds the cluster until its lease runs out."""
        with suppress(LeaseLost):
            self.site.writes.take_lease(NAMED, f"{run}#dead", self.site.policy.apply.lease_seconds, self.site.clock())


def _parts(steps: Sequence[Step]) -> dict[str, Any]:
    """Number of steps of each namespace, of a batch about several; of any other nothing."""
    namespaces = [step.change.namespace for step in steps]
    if len(set(namespaces)) == 1 or not all(isinstance(step.change, ChangeSetting) for step in steps):
        return {}
    return {"parts": tuple(Counter(namespaces).values())}


def _wrong_end(ended: type[BaseException] | None, *, opens: bool, free: bool, calm: bool) -> list[str]:
    """Fault of an end, in words.

    Args:
        ended: None where outcomes were returned.
        opens: Whether anything was permitted.
        free: Whether nobody held the cluster.
        calm: Whether nothing happened on the way.
    """
    if not opens:
        shut = ended is not None and issubclass(ended, (Refused, LedgerError, Crash))
        waited = ended is LeaseLost and not free  # some refusals come only once it holds the cluster
        return [] if shut or waited else [f"nothing was permitted, and it ended with {ended}"]
    if not free:
        return [] if ended in {LeaseLost, Crash} else [f"somebody else held the cluster, and it ended with {ended}"]
    if calm and ended not in {None, Crash}:
        return [f"it was permitted, and it ended with {ended}"]
    return []


@contextmanager
def a_trial(policy: Policy) -> Iterator[Trial]:
    """A cluster and an empty ledger of its own."""
    with tempfile.TemporaryDirectory() as folder, running_simulator(TWO_SHOPS, session_s=3600) as simulator:
        engine = ledger_at(f"sqlite:///{folder}/ledger.db")
        try:
            yield Trial(Worksite(simulator, engine, policy=policy))
        finally:
            engine.dispose()
