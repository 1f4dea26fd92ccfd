"""Restarts of real brokers, harmless and harmful ones: each verdict beside what really happened."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.observing import observe
from lab.bookie import ADMIN_API, METRICS, metrics_urls
from lab.faults.clients.publishing import publish, steady
from lab.faults.real.ground import COMMON_SETTINGS, SHOWN_WITHIN_S
from lab.faults.real.operator import EXCEPTION, operator_of, shown_topics
from lab.faults.real.quotas import UNCHECKED
from lab.waiting import wait_until
from pulsar_steward.planners.restarts.facts import restart_facts
from pulsar_steward.planners.restarts.judge import RISKS, restart_verdicts
from pulsar_steward.planners.restarts.model import RestartVerdict, State
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import a_policy
from tests.live.hands import move_of
from tests.live.plots import plot
from tests.live.producers import CONNECTED, QUOTA_BYTES, REFUSED, SENT, filled, newcomer, over_quota, send_by
from tests.live.test_guard_harm import every_other, holes_of, place_of, what_comes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/unit/planners/restarts/test_judge.py", "tests/unit/cli/test_may_restart.py"),
]

KEPT_HOLES = 100
BACK_WITHIN_S = 120.0
FIRST = r"127\.0\.0\.1"
# Brokers on one machine each report all of its processors.
BUSY = {"cluster_placement": {"warning_cpu_percent_after_loss": 1000, "critical_cpu_percent_after_loss": 1000}}
BUSY |= {"cpu_busy": {"warning_percent": 100, "critical_percent": 100}}


@dataclass
class Restarts:
    """A lab whose brokers are judged and restarted.

    Attributes:
        lab: Brokers on hosts of their own, which check no quota and keep few ack holes.
        home: A folder for snapshots.
        told: What was foretold beside what happened, for the document.
    """

    lab: Lab
    home: Path
    told: dict[str, Any] = field(default_factory=dict)

    def foretold(self) -> dict[str, RestartVerdict]:
        """The verdict on each broker, of this moment."""
        policy = a_policy(collect={"metrics_urls": metrics_urls(self.lab)}, **BUSY)
        uri = observe(self.lab, policy, cluster="restarts", out=self.home, taken_at=datetime.now(UTC), checks=RISKS)
        return {each.broker: each for each in restart_verdicts(restart_facts(open_snapshot(uri)), policy)}

    @contextmanager
    def away(self, broker: str) -> Iterator[None]:
        """A broker that is shut down as an operator does it, for the length of a block; then it is back."""
        self.lab.stop_broker(broker)
        try:
            yield
        finally:
            self.lab.start_broker(broker)

    def note(self, name: str, verdict: RestartVerdict, **happened: Any) -> None:
        """Keeps what was foretold and what happened."""
        against = [f"{each.subject}: {each.words}" for each in verdict.reasons if each.state is State.STOP]
        foretold = {"state": verdict.state.value, "against": against}
        self.told[name] = foretold | {"time": words_on(verdict, "time")} | happened
        (self.home / "restarts.json").write_text(json.dumps(self.told, indent=1), encoding="utf-8")


def words_on(verdict: RestartVerdict, subject: str) -> str:
    return " ".join(each.words for each in verdict.reasons if each.subject == subject)


def stopped_by(verdict: RestartVerdict) -> set[str]:
    return {each.subject for each in verdict.of(State.STOP)}


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[Lab]:
    settings = dict((*COMMON_SETTINGS, *UNCHECKED, ("managedLedgerMaxUnackedRangesToPersist", str(KEPT_HOLES))))
    lab = labs.lab(hosts="distinct", broker_settings=settings, bookie_settings=ADMIN_API | METRICS)
    yield lab
    labs.discard(lab)


@pytest.fixture
def restarts(lab: Lab, tmp_path: Path) -> Restarts:
    return Restarts(lab, tmp_path)


def owner_of(here: Ground) -> str:
    """The broker that serves a ground's topic."""
    return move_of(here).source


def back_after_s(here: Ground, began: float) -> float:
    """Seconds from then until a new producer of a ground's topic is connected."""
    wait_until(lambda: newcomer(here) == CONNECTED, f"{here.topic()} is served", BACK_WITHIN_S, 0.1)
    return round(time.monotonic() - began, 1)


@pytest.mark.parametrize(("messages", "state"), [(150, State.NOTE), (1_000, State.STOP)], ids=["few", "many"])
def test_acknowledged_messages_come_again_only_where_it_was_foretold(
    restarts: Restarts, messages: int, state: State
) -> None:
    """Up to the holes that brokers keep nothing comes again; the other brokers may be restarted either way."""
    with plot(restarts.lab, f"holes-{messages}") as here:
        consumer = here.shared(here.topic())
        publish(here.producer(here.topic(), batched=False), messages, 20)
        acknowledged = {place_of(each) for each in every_other(consumer, messages)}
        here.until(here.topic(), lambda shown: holes_of(shown) >= len(acknowledged) - 1, "every other is acknowledged")
        broker = owner_of(here)
        verdicts = restarts.foretold()
        assert {name: each.state for name, each in verdicts.items()} == {
            name: state if name == broker else State.NOTE for name in verdicts
        }, verdicts
        assert stopped_by(verdicts[broker]) == ({"ack-holes"} if state is State.STOP else set())

        consumer.close()
        began = time.monotonic()
        with restarts.away(broker):
            seconds = back_after_s(here, began)
            again = acknowledged & {place_of(each) for each in what_comes(here.shared(here.topic()))}
        restarts.note(f"holes-{messages}", verdicts[broker], again=len(again), back_after_seconds=seconds)
        if state is State.STOP:
            assert len(acknowledged) - KEPT_HOLES - 1 <= len(again)
        else:
            assert not again


@pytest.mark.parametrize(("share", "state"), [(0.5, State.NOTE), (1.3, State.STOP)], ids=["half", "over"])
def test_producers_stay_away_only_where_it_was_foretold(restarts: Restarts, share: float, state: State) -> None:
    """Brokers that check no quota let a connected producer go on over it; after a restart it is refused."""
    with (
        plot(restarts.lab, f"quota-{int(10 * share)}") as here,
        over_quota(here, EXCEPTION) if share > 1 else filled(here, share) as producer,
    ):
        here.admin.set_quota(here.namespace, "destination_storage", QUOTA_BYTES, EXCEPTION)
        assert send_by(producer) == SENT
        here.until(here.topic(), lambda shown: bool(shown["publishers"]), "its producer is told of")
        broker = owner_of(here)
        verdict = restarts.foretold()[broker]
        assert (verdict.state, stopped_by(verdict)) == (
            state, {"producer-hold-restart-risk"} if state is State.STOP else set()
        ), verdict  # fmt: skip

        with restarts.away(broker):
            served = {CONNECTED, REFUSED[EXCEPTION]}
            wait_until(lambda: newcomer(here) in served, "the topic is served", BACK_WITHIN_S, 0.5)
            after = send_by(producer), newcomer(here)
        restarts.note(f"quota-{share}", verdict, producer=after[0], new_producer=after[1])
        if state is State.STOP:
            assert after[0] != SENT
            assert after[1] == REFUSED[EXCEPTION]
        else:
            assert after == (SENT, CONNECTED)


def test_a_namespace_that_only_one_broker_may_have_is_gone_meanwhile(restarts: Restarts) -> None:
    """And while that one is away, no other broker is to be restarted."""
    lab = restarts.lab
    first, *others = (broker.broker_id for broker in lab.brokers)
    with plot(lab, "alone") as here:
        operator_of(lab).set_isolation("alone", here.namespace, FIRST)
        try:
            producer = here.producer(here.topic(), batched=False)
            with steady([producer], rate=5, size=100):
                wait_until(lambda: here.topic() in shown_topics(lab), "it is shown", SHOWN_WITHIN_S, 0.5)
                verdicts = restarts.foretold()
                assert stopped_by(verdicts[first]) == {"room"}, verdicts[first]
                assert f"{here.namespace} may be on no other broker" in words_on(verdicts[first], "room")
            producer.close()
            with restarts.away(first):
                meanwhile = newcomer(here)
                assert meanwhile != CONNECTED
                wait_until(lambda: first not in lab.active_brokers(), "it is listed no more", BACK_WITHIN_S, 0.5)
                assert "others" in stopped_by(restarts.foretold()[others[0]])
            seconds = back_after_s(here, time.monotonic())
            restarts.note("alone", verdicts[first], new_producer_meanwhile=meanwhile, back_seconds_after_start=seconds)
        finally:
            operator_of(lab).drop_isolation("alone")
