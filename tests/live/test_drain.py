"""Four real brokers with producers: one is drained and shut down, another one is shut down as it is."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pulsar
import pytest

from lab import placement
from lab.faults.real.ground import COMMON_SETTINGS, SHOWN_WITHIN_S, connected
from lab.faults.real.operator import shown_topics
from lab.waiting import wait_until
from pulsar_steward.model.finding import Severity
from tests.live.healing import Healer
from tests.live.plots import owners, plot
from tests.live.test_load_managers import put

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground
    from lab.pool import LabPool

pytestmark = [pytest.mark.live, pytest.mark.extended("tests/apply/test_drain.py")]

BROKERS, BUNDLES = 4, 16
PAUSE_S = 0.02
SETTLED_WITHIN_S = 120.0
POLICY = {
    # Brokers on one machine each report all of its CPU; clients of a busy one take their time to come back.
    "broker_drain_remedy": {"most_usage_percent": 1000},
    "health": {"most_publish_milliseconds": 60_000},
}


@pytest.fixture
def four_brokers(labs: LabPool) -> Iterator[Lab]:
    """A lab that ends with the test, as nobody else has use for so many."""
    lab = labs.lab(brokers=BROKERS, broker_settings=dict(COMMON_SETTINGS))
    yield lab
    labs.discard(lab)


class Sender(threading.Thread):
    """A producer of one topic that sends one message after the other, and notes how long each took."""

    def __init__(self, client: pulsar.Client, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.sent: list[tuple[float, float]] = []
        self.failed: list[str] = []
        self._ended = threading.Event()
        self._producer = client.create_producer(topic, batching_enabled=False, send_timeout_millis=0)

    def run(self) -> None:
        """Sends until it is ended."""
        while not self._ended.wait(PAUSE_S):
            began = time.monotonic()
            try:
                self._producer.send(b"x" * 100)
            except pulsar.PulsarException as error:
                self.failed.append(type(error).__name__)
            self.sent.append((began, time.monotonic()))

    def end(self) -> None:
        """Lets it finish its message."""
        self._ended.set()
        self.join()

    def gap_s(self, since: float) -> float:
        """The longest that a message took which was acknowledged since then."""
        return max((done - began for began, done in self.sent if done >= since), default=0.0)


@contextmanager
def sending(lab: Lab, topics: list[str]) -> Iterator[list[Sender]]:
    """A producer of each topic, all of them sending."""
    client = connected(lab, operation_timeout_seconds=60)
    senders = [Sender(client, topic) for topic in topics]
    try:
        for each in senders:
            each.start()
        yield senders
    finally:
        for each in senders:
            each.end()
        client.close()


def a_topic_in_each_bundle(here: Ground) -> list[str]:
    """A topic in each bundle, the bundles dealt out to the brokers one by one."""
    by_bundle: dict[str, str] = {}
    bundles, number = here.admin.bundles(here.namespace), 0
    while len(by_bundle) < len(bundles):
        topic = here.topic(f"t{number}")
        by_bundle.setdefault(str(placement.bundle_of(topic, bundles)), topic)
        number += 1
    for place, bundle in enumerate(bundles):
        put(here, bundle, by_bundle[bundle], here.lab.brokers[place % len(here.lab.brokers)].broker_id)
    return [by_bundle[bundle] for bundle in bundles]


def by_owner(here: Ground, topics: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    held, bundles = owners(here), here.admin.bundles(here.namespace)
    for topic in topics:
        found[held[str(placement.bundle_of(topic, bundles))]].append(topic)
    return found


def all_send(senders: list[Sender]) -> None:
    """Waits until each sent a message that began after this call."""
    now = time.monotonic()
    wait_until(
        lambda: all(each.sent and each.sent[-1][0] > now for each in senders), "all producers send", SETTLED_WITHIN_S
    )


def longest_ms(senders: list[Sender], since: float, topics: list[str]) -> list[int]:
    """The longest gap of the producer of each of these topics, in milliseconds, the longest first."""
    return sorted((round(1000 * each.gap_s(since)) for each in senders if each.topic in topics), reverse=True)


def test_a_drained_broker_is_not_missed(four_brokers: Lab, tmp_path: Path) -> None:
    lab = four_brokers
    drained, stopped = lab.brokers[1].broker_id, lab.brokers[2].broker_id
    policy = POLICY | {"brokers": {"draining": [drained]}}
    with plot(lab, "harvest", BUNDLES) as here, Healer.on(lab, tmp_path, policy, checks=("broker-draining",)) as healer:
        topics = a_topic_in_each_bundle(here)
        with sending(lab, topics) as senders:
            wait_until(lambda: set(topics) <= shown_topics(lab).keys(), "all topics are shown", SHOWN_WITHIN_S, 0.5)
            all_send(senders)
            theirs = by_owner(here, topics)[drained]
            assert len(theirs) == BUNDLES // BROKERS

            began = time.monotonic()
            plan = healer.plan(healer.observe())
            (batch,) = plan.batches
            assert [step.touched.coordinators > 0 for step in batch.steps] == sorted(
                (step.touched.coordinators > 0 for step in batch.steps), reverse=True
            )
            healer.heal(plan)
            all_send(senders)
            while_draining = longest_ms(senders, began, theirs)
            assert drained not in by_owner(here, topics)
            assert lab.tc_placement()[drained] == 0
            wait_until(lambda: is_drained(healer, drained), f"{drained} is found drained", SHOWN_WITHIN_S, 2.0)

            began = time.monotonic()
            lab.stop_broker(drained)
            all_send(senders)
            at_its_shutdown = longest_ms(senders, began, topics)

            theirs = by_owner(here, topics)[stopped]
            began = time.monotonic()
            lab.stop_broker(stopped)
            all_send(senders)
            at_a_plain_one = longest_ms(senders, began, theirs)
            assert [each.failed for each in senders if each.failed] == []
        figures = {
            "longest gaps of its producers while it was drained, ms": while_draining,
            "longest gaps of any producer at its shutdown, ms": at_its_shutdown[:BUNDLES],
            "longest gaps of its producers at a plain SIGTERM, ms": at_a_plain_one,
        }
        (tmp_path / "gaps.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")  # for the document
        assert at_its_shutdown[0] < at_a_plain_one[0], figures


def is_drained(healer: Healer, broker: str) -> bool:
    """True if a snapshot shows that the broker owns nothing that anybody uses."""
    found = [each for each in healer.observe().findings() if each.subject == broker]
    return [each.severity for each in found] == [Severity.INFO]
