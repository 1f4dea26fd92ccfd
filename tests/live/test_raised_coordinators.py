"""Too few coordinators on real brokers: raised by a person in a real Airflow while transactions go on; one story."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.observing import settings_of
from lab.errors import NotReachedError
from lab.faults.clients.helper import HelperProcess
from lab.faults.clients.languages import java
from lab.faults.clients.work import Transacting
from lab.faults.real.ground import COMMON_SETTINGS
from lab.faults.real.operator import operator_of
from lab.placement import SYSTEM_NAMESPACE, coordinator_topic, owners
from lab.waiting import wait_until
from pulsar_steward.apply.applied import choose_applied
from pulsar_steward.apply.health import READY
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.rollback import rollback_plan
from pulsar_steward.errors import Refused
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.plan import TC_COUNT
from pulsar_steward.policy.schema import Policy
from tests.live.care import Care

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.airflow.server import Airflow
    from lab.cluster import Lab
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.extended("tests/apply/test_raise.py", "tests/unit/planners/test_tc_balance.py"),
]

CLUSTER, TOPIC = "raised", "persistent://public/raised/t"
FEW, MANY = 2, 6
POLICY = {"guards": {"most_coordinators": 100}, "tc_count_remedy": {"coordinators_per_broker": 2}}
AT_ONCE = 5
GOES_ON_WITHIN_S = 120.0


class Transactions(threading.Thread):
    """A client in Java that commits one transaction after the other, and notes how many, and what failed."""

    def __init__(self, client: HelperProcess) -> None:
        super().__init__(daemon=True)
        self.done = 0
        self.failed: list[str] = []
        self._client = client
        self._ended = threading.Event()

    def run(self) -> None:
        """Goes on until it is ended."""
        while not self._ended.is_set():
            try:
                self._client.do(Transacting(topic=TOPIC, count=AT_ONCE))
                self.done += AT_ONCE
            except NotReachedError as error:
                self.failed.append(str(error))

    def end(self) -> None:
        """Lets it finish what it does."""
        self._ended.set()
        self.join()

    def go_on(self) -> None:
        """Waits until some more are committed that began after this call."""
        before = self.done
        wait_until(lambda: self.done >= before + 2 * AT_ONCE, "transactions are committed", GOES_ON_WITHIN_S)


@dataclass(frozen=True)
class Story:
    """Observations, in this order."""

    system_before: dict[str, list[str]]
    question: dict[str, Any]
    state: str
    coordinators: int
    system_after: dict[str, list[str]]
    used_by_the_old_client: set[int]
    failed: list[str]
    used_by_a_new_client: set[int]


def client_on(lab: Lab, log: Path) -> HelperProcess:
    """A client in Java, in a process of its own."""
    assert lab.service_url is not None
    return HelperProcess([*java(), lab.service_url, lab.token or ""], log)


def system_bundles(lab: Lab) -> dict[str, list[str]]:
    """Bundles of `pulsar/system` by their owner."""
    return {
        broker: [name for name in names if name.startswith(f"{SYSTEM_NAMESPACE}/0x")]
        for broker, names in lab.owned_bundles().items()
    }


def used(lab: Lab) -> set[int]:
    """Coordinators that a client connected to, all of which have recovered; asked of their owners alone."""
    topics = [coordinator_topic(number) for number in range(operator_of(lab).coordinators())]
    placed = owners(topics, SYSTEM_NAMESPACE, lab.owned_bundles())
    found: set[int] = set()
    with LiveReader(settings_of(lab, Policy())) as reader:
        for broker in set(placed.values()):
            numbers = [number for number, topic in enumerate(topics) if placed.get(topic) == broker]
            states = reader.coordinator_states(broker, numbers)
            assert set(states.values()) <= {READY}, states
            found |= set(states)
    return found


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[Lab]:
    """Three brokers that share two coordinators; nobody else has use for it afterwards."""
    lab = labs.lab(auth="token", coordinators=FEW, broker_settings=dict(COMMON_SETTINGS))
    yield lab
    labs.discard(lab)


@pytest.fixture(scope="module")
def care(airflow: Airflow, lab: Lab) -> Iterator[Care]:
    """It under a name that Steward has never heard of."""
    with Care.taken(airflow, lab, CLUSTER) as care:
        care.write_policy(POLICY)
        yield care


@pytest.fixture(scope="module")
def story(care: Care, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Transactions begin; observed, approved and raised while they go on; a client starts anew; observed again."""
    lab, logs = care.lab, tmp_path_factory.mktemp("clients")
    lab.make_topic(TOPIC)
    with client_on(lab, logs / "old.log") as old:
        transactions = Transactions(old)
        transactions.start()
        transactions.go_on()
        before = system_bundles(lab)
        care.observe()
        (question,) = care.approvals(1)
        care.approve(question, comment="three brokers, two coordinators")
        state = care.ended(question)
        number, after = operator_of(lab).coordinators(), system_bundles(lab)
        transactions.go_on()
        by_old = used(lab)
        with client_on(lab, logs / "new.log") as new:
            new.do(Transacting(topic=TOPIC, count=2 * MANY))
            by_new = used(lab)
        transactions.end()
    care.observe()
    return Story(
        system_before=before,
        question=question,
        state=state,
        coordinators=number,
        system_after=after,
        used_by_the_old_client=by_old,
        failed=transactions.failed,
        used_by_a_new_client=by_new,
    )


def test_the_question_says_that_there_is_no_way_back(story: Story) -> None:
    body = story.question["body"].replace("\\", "")
    assert f"from {FEW} to {MANY}" in story.question["subject"] + body
    assert "cannot be undone" in body
    assert "medium risk" in story.question["subject"]


def test_their_number_is_raised_as_approved(story: Story, care: Care) -> None:
    assert (story.state, story.coordinators) == ("success", MANY)
    assert story.system_after == story.system_before
    (row,) = [each for each in care.ledger.plans(care.cluster) if _raises(care, each.plan_id)]
    (intent,) = care.ledger.intents(row.plan_id, "b1")
    assert intent.before == {"coordinators": FEW}
    assert [each.outcome for each in care.ledger.outcomes(row.plan_id, "b1")] == [Outcome.DONE]
    (proof,) = care.ledger.proofs(row.plan_id)
    assert proof.proved


def test_transactions_go_on(story: Story) -> None:
    assert story.failed == []
    assert story.used_by_the_old_client == set(range(FEW))
    assert story.used_by_a_new_client == set(range(MANY))


def test_it_is_not_taken_back(story: Story, care: Care) -> None:
    del story
    applied = choose_applied(care.ledger, care.cluster, None, None)
    with (
        LiveReader(settings_of(care.lab, Policy())) as look,
        pytest.raises(Refused, match=f"from {FEW} to {MANY} cannot be undone: brokers refuse a lower number"),
    ):
        rollback_plan(care.ledger, look, Policy(), applied, datetime.now(UTC))


def _raises(care: Care, plan_id: str) -> bool:
    return any(batch.kind == TC_COUNT for batch in care.ledger.plan(plan_id).batches)
