"""A made-up cluster with a skew, a ledger beside it, and short ways to plan, approve and carry out."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import select

from lab.simulator import ClusterSpec, NamespaceSpec, Simulator, SubscriptionSpec, TopicSpec, running_simulator
from pulsar_steward.apply.context import ApplyContext, LedgerContext
from pulsar_steward.apply.execute import carry_out
from pulsar_steward.apply.halting import StopSwitch, never
from pulsar_steward.apply.journal import Journal, Listener
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.verify import verify
from pulsar_steward.apply.whole_look import WholeLook
from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Answer, Decision, EndReason, Origin
from pulsar_steward.ledger.tables import ANSWER_USES, QUESTIONS
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, halves_by_topic_count, position_of, tc_topic
from pulsar_steward.model.plan import approval_digest, content_digest, goal_of
from pulsar_steward.model.step import SetIsolation, SplitBundle, Step, UnloadBundle
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.pulsar.writer import Writer
from tests.builders import ASKED_DIGEST, CLUSTER, a_batch, a_plan, a_policy, a_step
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pydantic import SecretStr
    from sqlalchemy import Engine

    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.isolation import Reach
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Change
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.pulsar.calls import Call

RUN = "pulsar_remediate/manual/0"


def permitted() -> None:
    """Clearance that lets every call leave."""


def at_once(_seconds: float) -> None:
    """A rest that takes no time."""


COORDINATORS = 16

SKEWED = ClusterSpec(
    system_bundles=4,
    coordinators=COORDINATORS,
    tc_owner=0,
    namespaces=(
        NamespaceSpec(
            "shop/orders",
            bundles=1,
            owner=0,
            topics=(TopicSpec("t", partitions=2, producers=2, subscriptions=(SubscriptionSpec("s", consumers=3),)),),
        ),
    ),
)
"""All coordinators on the first broker in four bundles, and ten clients of `shop/orders` in its only bundle."""


def quick_policy(**sections: dict[str, Any]) -> Policy:
    """The default policy, with so little patience that a test need not wait."""
    quick = {
        "admin": {"read_attempts": 1, "read_timeout_seconds": 15},
        "apply": {"proof_timeout_seconds": 1, "lease_seconds": 15, "lease_wait_seconds": 60},
    }
    return a_policy(**{name: {**quick.get(name, {}), **sections.get(name, {})} for name in {*quick, *sections}})


@dataclass
class Clock:
    """The present, or a chosen while later."""

    ahead: timedelta = timedelta()

    def __call__(self) -> datetime:
        """Time that the ledger is told, UTC."""
        return datetime.now(UTC) + self.ahead

    def outlive_a_crash(self) -> None:
        """Until a dead writer's lease has run out, and its call can no longer take effect."""
        self.advance(seconds=40)

    def advance(self, **by: float) -> None:
        """Lets so many ``minutes=`` or ``seconds=`` pass at once."""
        self.ahead += timedelta(**by)


class Hand(Writer):
    """The real writer, with something to be done right before and right after each call."""

    def __init__(
        self, settings: AdminSettings, before: Callable[[Call], None] | None, after: Callable[[Call], None] | None
    ) -> None:
        super().__init__(settings)
        self._before = before
        self._after = after

    def send(self, call: Call, may_leave: Callable[[], None] = permitted) -> None:
        """Sends a call as the writer does."""
        if self._before:
            self._before(call)
        super().send(call, may_leave)
        if self._after:
            self._after(call)


@dataclass
class Worksite:
    """One cluster and all that is needed to change it."""

    simulator: Simulator
    engine: Engine
    policy: Policy = field(default_factory=quick_policy)
    clock: Clock = field(default_factory=Clock)
    token: SecretStr | None = None
    switch: Callable[[str], str | None] = never
    cluster: str = CLUSTER
    broker: int | None = None
    """The only broker whose address the connection names; None: it names all."""
    rest: Callable[[float], None] = at_once
    """Waits between two looks at the effect of a call; what is waited counts as if it had passed."""

    @property
    def ledger(self) -> LedgerReader:
        """Reader of the ledger."""
        return LedgerReader(self.engine)

    @property
    def writes(self) -> LedgerWriter:
        """Writes it down."""
        return LedgerWriter(self.engine)

    @property
    def settings(self) -> AdminSettings:
        """Settings for reaching the cluster."""
        urls = self.simulator.admin_urls if self.broker is None else self.simulator.admin_urls[self.broker :][:1]
        return AdminSettings(urls=urls, limits=self.policy.admin, token=self.token)

    @property
    def brokers(self) -> tuple[str, ...]:
        """Broker ids in order of starting; the first leads and owns everything."""
        return tuple(url.partition("://")[2] for url in self.simulator.admin_urls)

    @property
    def tc_bundles(self) -> tuple[str, ...]:
        """The four ranges of `pulsar/system`."""
        return ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff")

    # -- what to do

    def move(self, bundle: int | str, target: int = 1, *, namespace: str = TC_NAMESPACE) -> UnloadBundle:
        """A bundle's move from the first broker to another."""
        name = self.tc_bundles[bundle] if isinstance(bundle, int) else bundle
        return UnloadBundle(namespace=namespace, bundle=name, source=self.brokers[0], target=self.brokers[target])

    def split(self, bundle: int) -> SplitBundle:
        """A bundle's split into the halves that its coordinators give."""
        whole = BundleRange.parse(self.tc_bundles[bundle])
        halves = halves_by_topic_count(whole, [place for place in _tc_positions() if place in whole])
        assert halves is not None
        return SplitBundle(
            namespace=TC_NAMESPACE,
            bundle=str(whole),
            owner=self.brokers[0],
            algorithm="topic_count_equally_divide",
            halves=(str(halves[0]), str(halves[1])),
        )

    def plan(self, *steps: Change | Step) -> Plan:
        """Records a plan of one batch, ``b1``, of these steps."""
        return self.record(self.proposed(*steps))

    def asked(self, *steps: Change | Step) -> Plan:
        """Records a plan whose only batch, ``b1``, is a question that stands by itself, and its approval."""
        return self.approve(self.asked_without_answer(*steps))

    def asked_without_answer(self, *steps: Change | Step) -> Plan:
        """Records a plan whose only batch, ``b1``, is a question that stands by itself."""
        plan = self.proposed(*steps)
        return self.record(plan, questions=QuestionChanges(asked=(a_question(plan),)))

    def confirm(self, plan: Plan, **fields: Any) -> None:
        """Records that a later observation proposed the same; `fields` are those of its plan."""
        later = msgspec.structs.replace(plan, **{"snapshot_id": "later", "taken_at": self.clock(), **fields})
        self.writes.record_confirmations(later, [self.question_of(plan)], self.clock())

    def end(self, plan: Plan) -> None:
        """Records an observation that proposes something else: the question of a plan ends."""
        other = self.proposed(self.move(3))
        ending = Ending(question_id=self.question_of(plan), reason=EndReason.CHANGED, words="it was seen otherwise")
        changes = QuestionChanges(asked=(a_question(other),), ended=(ending,))
        self.record(msgspec.structs.replace(other, snapshot_id="other"), questions=changes)

    def question_of(self, plan: Plan) -> int:
        """Id of the question about the plan's only batch, ended or not."""
        of_plan = select(QUESTIONS.c.question_id).where(QUESTIONS.c.plan_id == plan.plan_id)
        with self.engine.connect() as connection:
            number: int = connection.execute(of_plan).scalar_one()
        return number

    def proposed(self, *steps: Change | Step) -> Plan:
        """A plan of one batch, ``b1``, of these steps, which is not recorded."""
        numbered = [
            self._step_of(step, f"b1.s{number:02d}") if not isinstance(step, Step) else step
            for number, step in enumerate(steps, start=1)
        ]
        return a_plan(a_batch(*numbered), cluster=self.cluster, taken_at=self.clock())

    def _step_of(self, change: Change, step_id: str) -> Step:
        """A step that makes a change of the cluster as it is now."""
        if not isinstance(change, SetIsolation):
            return a_step(change, step_id=step_id)
        return a_step(change, step_id=step_id, reach=self.reach(change))

    def reach(self, change: SetIsolation) -> Reach:
        """What the change of an isolation policy is about now."""
        with self.context() as context:
            return WholeLook(context.reader, self.policy).isolation().reach(change)

    def record(self, plan: Plan, **options: Any) -> Plan:
        """Records a plan as one for this cluster, under the policy in force; returns it as it is recorded."""
        policy = self.recorded_policy
        mine = msgspec.structs.replace(plan, pulsar_cluster=self.identity, policy_digest=policy.digest)
        self.writes.record_plan(mine, self.clock(), policy=policy, brokers=self.brokers, **options)
        return mine

    @property
    def recorded_policy(self) -> Policy:
        """The policy as it is recorded: in whole seconds, which no test has to wait for."""
        whole = {"proof_timeout_seconds": max(1, round(self.policy.apply.proof_timeout_seconds))}
        return self.policy.model_copy(update={"apply": self.policy.apply.model_copy(update=whole)})

    @property
    def identity(self) -> ClusterIdentity:
        """The cluster as its brokers tell it."""
        with LiveReader(self.settings) as look:
            return look.identity()

    def proved(self, plan: Plan, run: str = RUN) -> Plan:
        """Records what the brokers show of a batch that was carried out; returns the plan."""
        with self.context(run) as context:
            assert verify(context, plan.plan_id, "b1").proved
        return plan

    def split_and_moves(self) -> Plan:
        """A plan that splits the first bundle and moves both halves."""
        split = self.split(0)
        moves = [
            a_step(self.move(half, target), step_id=f"b1.s0{target + 1}", after=("b1.s01",))
            for target, half in enumerate(split.halves, start=1)
        ]
        return self.plan(a_step(split, step_id="b1.s01"), *moves)

    def approval(self, plan: Plan, *step_ids: str, **fields: Any) -> Answer:
        """An approval of these steps, or of all; `fields` are those of `Answer`."""
        chosen = step_ids or tuple(step.step_id for step in plan.batches[0].steps)
        now = self.clock()
        usual = Answer(
            plan_id=plan.plan_id,
            batch_id="b1",
            run=RUN,
            decision=Decision.APPROVED,
            answered_by="operator",
            answered_at=now,
            reason="made up",
            step_ids=chosen,
            digest=approval_digest(plan, "b1", chosen),
            expires_at=now + timedelta(minutes=60),
            asked_digest=ASKED_DIGEST,
        )
        return msgspec.structs.replace(usual, **fields)

    def approve(self, plan: Plan, *step_ids: str, asked: dict[str, Any] | None = None, **fields: Any) -> Plan:
        """Records that somebody was asked (`asked` is how, where not as usual), and an approval; returns the plan."""
        answer = self.approval(plan, *step_ids, **fields)
        self.ask(plan, answer.run, voice=answer.voice, **asked or {})
        self.writes.record_answer(answer)
        return plan

    def ask(self, plan: Plan, run: str = RUN, **asked: Any) -> None:
        """Records that somebody is asked about the plan's only batch, on a schedule."""
        options = {"origin": Origin.SCHEDULE, "policy": self.recorded_policy, "asked_digest": ASKED_DIGEST, **asked}
        self.writes.record_request(plan, "b1", run, self.clock(), **options)

    def approved(self, *steps: Change | Step) -> Plan:
        """Records a plan and the approval of all its steps."""
        return self.approve(self.plan(*steps))

    # -- doing it

    @contextmanager
    def context(
        self,
        run: str = RUN,
        *,
        before: Callable[[Call], None] | None = None,
        after: Callable[[Call], None] | None = None,
        listener: Listener | None = None,
    ) -> Iterator[ApplyContext]:
        """Everything at hand, with something done around each call."""
        with (
            LedgerContext(
                cluster=self.cluster,
                run=run,
                ledger=self.ledger,
                ledger_writer=self.writes,
                journal=Journal(self.writes, self.cluster, listener),
                policy=self.policy,
                clock=self.clock,
            ).applying(self.settings, StopSwitch(self.ledger, self.cluster, self.switch)) as context,
            Hand(self.settings, before, after) as hand,
        ):
            yield replace(context, writer=hand, rest=self.rest)

    def carry_out(self, plan: Plan, run: str = RUN, **around: Any) -> tuple[StepOutcome, ...]:
        """Carries the plan's only batch out."""
        with self.context(run, **around) as context:
            return carry_out(context, plan.plan_id, "b1")

    # -- what happened

    def changes(self) -> list[str]:
        """The calls that change something, in order of arrival: ``unload <bundle>``, ``split <bundle>``."""
        parts = [record.path.split("/") for record in self.simulator.requests.writes()]
        return [f"{path[-1]} {path[-2]}" for path in parts]

    def lookups(self) -> list[str]:
        """The topics that were looked up, which loads their bundles."""
        paths = [record.path for record in self.simulator.requests.all()]
        return [path for path in paths if path.startswith("/lookup/") and not path.endswith("/bundle")]

    def untouched(self) -> bool:
        """Whether no call was made that changes or loads anything."""
        return not self.changes() and not self.lookups()

    def owner(self, bundle: str, namespace: str = TC_NAMESPACE) -> str | None:
        """Returns the broker that owns a bundle, as the simulator knows it."""
        owned = self.simulator.owned_bundles().items()
        return next((broker for broker, bundles in owned if f"{namespace}/{bundle}" in bundles), None)

    def user_of(self, answer_id: int) -> str | None:
        """The run that acts on an answer; None while none does."""
        uses = select(ANSWER_USES.c.run).where(ANSWER_USES.c.answer_id == answer_id)
        with self.engine.connect() as connection:
            user: str | None = connection.execute(uses).scalar()
        return user

    def recorded(self, plan: Plan) -> list[tuple[str, str]]:
        """Step and outcome, as the ledger holds them, oldest first."""
        return [(row.step_id, row.outcome.value) for row in self.ledger.outcomes(plan.plan_id, "b1")]


@contextmanager
def a_worksite(
    folder: Path, spec: ClusterSpec = SKEWED, token: SecretStr | None = None, **fields: Any
) -> Iterator[Worksite]:
    """Made-up brokers, by default three with all coordinators on the first, and an empty ledger in a folder.

    A killed broker stays listed for an hour: a busy machine may take longer to ask than a session lasts. `fields` are
    others of `Worksite`, such as the policy; with a token brokers answer nobody else.
    """
    with running_simulator(spec, session_s=3600, token=token.get_secret_value() if token else None) as simulator:
        engine = ledger_at(f"sqlite:///{folder / 'ledger.db'}")
        try:
            yield Worksite(simulator, engine, token=token, **fields)
        finally:
            engine.dispose()


def said(outcomes: tuple[StepOutcome, ...]) -> list[str]:
    return [row.outcome.value for row in outcomes]


def a_question(plan: Plan) -> NewQuestion:
    batch = plan.batches[0]
    return NewQuestion(batch_id="b1", content_digest=content_digest(plan, batch), goal=goal_of(batch))


def _tc_positions() -> list[int]:
    return [position_of(tc_topic(number)) for number in range(COORDINATORS)]
