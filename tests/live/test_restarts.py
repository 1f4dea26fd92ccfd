"""Restarts of real brokers, a harmless and a harmful one: each verdict beside its outcome."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from lab.faults.clients.publishing import publish
from lab.faults.real.delayed import IN_MEMORY, delay
from lab.faults.real.ground import COMMON_SETTINGS, SHOWN_WITHIN_S, Ground
from lab.faults.real.operator import EXCEPTION, SIZE, Operator, operator_of, shown_topics
from lab.faults.real.quotas import UNCHECKED
from lab.waiting import wait_until
from pulsar_steward.planners.restarts.facts import restart_facts
from pulsar_steward.planners.restarts.judge import RISKS, restart_verdict
from pulsar_steward.planners.restarts.model import RestartVerdict, State
from tests.live.hands import put_on
from tests.live.healing import Healer
from tests.live.producers import CONNECTED, QUOTA_BYTES, REFUSED, SENT, filled, newcomer, send_by
from tests.live.test_drain import all_send, longest_ms, sending
from tests.live.test_guard_harm import every_other, holes_of, indexed_by, place_of, what_comes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pulsar

    from lab.model import Broker
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/unit/planners/restarts/test_judge.py", "tests/unit/cli/test_may_restart.py"),
]

KEPT_HOLES = 100
MOST_CONSUMERS = 2
MUCH_DELAYED = 1_000
BACK_WITHIN_S = 120.0
WHOLE = f"0x{0:08x}_0x{0xFFFFFFFF:08x}"
POLICY: dict[str, Any] = {
    # Brokers on one machine each report all of its processors.
    "cluster_placement": {"warning_cpu_percent_after_loss": 1000, "critical_cpu_percent_after_loss": 1000},
    "cpu_busy": {"warning_percent": 100, "critical_percent": 100},
    "delayed_index_memory": {"warning_messages_in_memory": MUCH_DELAYED},
}


@dataclass(frozen=True, kw_only=True)
class Farm(Healer):
    """A lab whose brokers are judged and restarted; namespaces end with it.

    Attributes:
        grounds: Closes the clients.
    """

    grounds: ExitStack

    def ground(self, name: str, broker: Broker) -> Ground:
        """A namespace of one bundle, which is on this broker."""
        admin = operator_of(self.lab)
        admin.create_namespace(f"public/{name}", 1)
        here = Ground(self.lab, f"public/{name}", None, admin)
        self.grounds.callback(here.close)
        put_on(here, WHOLE, broker.broker_id)
        return here

    def verdicts(self) -> dict[str, RestartVerdict]:
        """The verdict on each broker, of this moment."""
        facts = restart_facts(self.observe())
        return {each: restart_verdict(facts, each, self.policy) for each in facts.brokers}

    @contextmanager
    def away(self, broker: Broker) -> Iterator[None]:
        """A broker that is shut down as an operator does it, for the length of a block; then it is back."""
        self.lab.stop_broker(broker.broker_id)
        try:
            yield
        finally:
            self.lab.start_broker(broker.broker_id)

    def note(self, name: str, verdict: RestartVerdict, **happened: Any) -> None:
        """Keeps the forecast beside the outcome, for the document."""
        foretold = [f"{each.state.value} {each.subject}: {each.words}" for each in verdict.reasons]
        told = {"foretold": foretold} | happened
        (self.home / f"{name}.json").write_text(json.dumps(told, indent=1), encoding="utf-8")


@pytest.fixture(scope="module")
def farm(labs: LabPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """Brokers on hosts of their own, which check no quota, keep few ack holes and index delayed messages in memory."""
    few = ("managedLedgerMaxUnackedRangesToPersist", str(KEPT_HOLES))
    lab = labs.lab(hosts="distinct", broker_settings=dict((*COMMON_SETTINGS, *UNCHECKED, *IN_MEMORY, few)))
    home = tmp_path_factory.mktemp("restarts")
    with ExitStack() as grounds, Farm.on(lab, home, POLICY, checks=tuple(RISKS), grounds=grounds) as farm:
        farm.observe()  # the brokers that are listed later are compared with it
        yield farm
    labs.discard(lab)


def against(verdict: RestartVerdict) -> set[str]:
    """Subjects of the reasons that stop it, or are not told."""
    return {each.subject for each in verdict.reasons if each.state in {State.STOP, State.UNKNOWN}}


def with_holes(here: Ground, messages: int) -> set[tuple[int, int]]:
    """Has every other message of a topic acknowledged, and returns which; nobody is connected any more."""
    consumer = here.shared(here.topic())
    publish(here.producer(here.topic(), batched=False), messages, 20)
    acknowledged = {place_of(each) for each in every_other(consumer, messages)}
    here.until(here.topic(), lambda shown: holes_of(shown) >= len(acknowledged) - 1, "every other is acknowledged")
    consumer.close()
    return acknowledged


def crowd(here: Ground, consumers: int) -> None:
    """Consumers of one subscription, for which the namespace then allows `MOST_CONSUMERS`."""
    for _ in range(consumers):
        here.shared(here.topic())
    here.admin.set_policy(here.namespace, "maxConsumersPerSubscription", MOST_CONSUMERS)
    here.until(here.topic(), lambda shown: connected_to(shown) == consumers, "its consumers are told of")


def connected_to(shown: dict[str, Any]) -> int:
    """Number of consumers of the subscription of a topic."""
    return len(shown["subscriptions"]["s"]["consumers"])


def limited(here: Ground, share: float) -> pulsar.Producer:
    """A producer that has brought a topic to this share of a quota."""
    with filled(here, share) as producer:
        here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, EXCEPTION)
    return producer


def served(here: Ground, *results: str) -> str:
    """Result of a new producer, once it is one of these."""
    last: list[str] = []

    def known() -> bool:
        last.append(newcomer(here))
        return last[-1] in results

    wait_until(known, f"{here.topic()} is served", BACK_WITHIN_S, 0.5)
    return last[-1]


def test_all_comes_back_where_nothing_is_against_a_restart(farm: Farm) -> None:
    """Producers, consumers' positions and delayed messages; what takes over is the load that was foretold."""
    lab, broker = farm.lab, farm.lab.brokers[0]
    holes, half, full, later, steady = (
        farm.ground(f"calm-{name}", broker) for name in ("holes", "quota", "limit", "later", "flow")
    )
    acknowledged, producer = with_holes(holes, KEPT_HOLES), limited(half, 0.5)
    crowd(full, MOST_CONSUMERS)
    delay(later, MUCH_DELAYED // 10)
    with sending(lab, [steady.topic()]) as senders:
        wait_until(lambda: steady.topic() in shown_topics(lab), "it is shown", SHOWN_WITHIN_S, 0.5)
        all_send(senders)
        verdict = farm.verdicts()[broker.broker_id]
        assert (verdict.state, against(verdict)) == (State.NOTE, set()), verdict
        began = time.monotonic()
        with farm.away(broker):
            all_send(senders)
            gaps = longest_ms(senders, began, [steady.topic()])
            assert served(half, CONNECTED) == CONNECTED
            assert send_by(producer) == SENT
            full.until(full.topic(), lambda shown: connected_to(shown) == MOST_CONSUMERS, "all its consumers are back")
            again = acknowledged & {place_of(each) for each in what_comes(holes.shared(holes.topic()))}
            taken = {each.broker_id: len(dict(Operator(each.admin_url, None).topics())) for each in lab.brokers[1:]}
        assert [each.failed for each in senders if each.failed] == []
    farm.note("calm", verdict, again=len(again), gaps_ms=gaps, topics_of_the_others=taken)
    assert not again


def test_each_reason_against_a_restart_comes_true(farm: Farm) -> None:
    lab, broker, others = farm.lab, farm.lab.brokers[1], (farm.lab.brokers[0], farm.lab.brokers[2])
    holes, over, crowded, later, alone = (
        farm.ground(f"harm-{name}", broker) for name in ("holes", "quota", "limit", "later", "alone")
    )
    acknowledged, producer = with_holes(holes, 5 * KEPT_HOLES), limited(over, 1.3)
    crowd(crowded, 2 * MOST_CONSUMERS)
    delay(later, 2 * MUCH_DELAYED)
    tied = alone.producer(alone.topic())
    operator_of(lab).set_isolation("alone", alone.namespace, broker.host.replace(".", r"\."))
    for each in (over, alone):
        each.until(each.topic(), lambda shown: bool(shown["publishers"]), "its producer is told of")
    assert {send_by(each) for each in (producer, tied)} == {SENT}

    verdicts = farm.verdicts()
    verdict = verdicts.pop(broker.broker_id)
    stopping = {"ack-holes", "producer-hold-restart-risk", "delayed-index-memory", "limit-reached", "room"}
    assert against(verdict) == stopping, verdict
    assert {each.state for each in verdicts.values()} == {State.NOTE}, verdicts

    with farm.away(broker):
        refused = served(over, REFUSED[EXCEPTION], CONNECTED)
        sent = send_by(producer)
        again = acknowledged & {place_of(each) for each in what_comes(holes.shared(holes.topic()))}
        meanwhile = newcomer(alone)
        there = [Operator(each.admin_url, None) for each in others]
        wait_until(
            lambda: sum(indexed_by(each, later) for each in there) == 2 * MUCH_DELAYED, "all are read again", 60.0, 0.5
        )
        crowded.until(crowded.topic(), lambda shown: connected_to(shown) == MOST_CONSUMERS, "as many as are allowed")
        wait_until(lambda: broker.broker_id not in lab.active_brokers(), "it is listed no more", BACK_WITHIN_S, 0.5)
        assert all("others" in against(each) for each in farm.verdicts().values())
    back = served(alone, CONNECTED)
    farm.note("harm", verdict, again=len(again), refused=refused, sent=sent, meanwhile=meanwhile, back=back)
    assert len(acknowledged) - KEPT_HOLES - 1 <= len(again)
    assert (refused, sent != SENT) == (REFUSED[EXCEPTION], True)
    assert meanwhile != CONNECTED
