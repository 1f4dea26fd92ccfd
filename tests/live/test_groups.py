"""Six real brokers with producers: a namespace gets a group of two, by Steward and by hand; gaps side by side."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import TYPE_CHECKING

import pytest

from lab import placement
from lab.faults.real.ground import COMMON_SETTINGS, SHOWN_WITHIN_S
from lab.faults.real.operator import operator_of, shown_topics
from lab.waiting import wait_until
from pulsar_steward.model.step import SetIsolation, UnloadBundle
from tests.live.healing import Healer, found
from tests.live.plots import owners, plot
from tests.live.test_drain import POLICY, Sender, a_topic_in_each_bundle, all_send, by_owner, longest_ms, sending
from tests.live.test_load_managers import put

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground
    from lab.pool import LabPool

pytestmark = [pytest.mark.live, pytest.mark.extended("tests/apply/test_groups.py")]

BUNDLES, BROKERS = 12, 6
TWO = r"127\.0\.0\.[56]"
FOUND = ("broker-groups", "harvest")
# Brokers on one machine each report all of its CPU.
ROOM = {"cluster_placement": {"warning_cpu_percent_after_loss": 1000, "critical_cpu_percent_after_loss": 1000}}


@pytest.fixture
def apart(labs: LabPool) -> Iterator[Lab]:
    """Brokers on hosts of their own, which end with the test."""
    lab = labs.lab(brokers=BROKERS, hosts="distinct", broker_settings=dict(COMMON_SETTINGS))
    yield lab
    labs.discard(lab)


def inside(here: Ground) -> set[str]:
    """Topics' brokers of the namespace, by the brokers' own word."""
    return set(owners(here).values())


def put_back(here: Ground, placed: dict[str, list[str]]) -> None:
    """Has the bundles of these topics on their brokers again."""
    bundles = here.admin.bundles(here.namespace)
    for broker, topics in placed.items():
        for topic in topics:
            put(here, str(placement.bundle_of(topic, bundles)), topic, broker)


def gaps(senders: list[Sender], since: float, topics: list[str]) -> list[int]:
    """Longest gap of each producer since then, the longest first, in milliseconds."""
    all_send(senders)
    return longest_ms(senders, since, topics)


def test_a_group_is_made_without_an_outage(apart: Lab, tmp_path: Path) -> None:
    """Producers within the group notice nothing of Steward's way; set by hand, the policy cuts off all of them."""
    lab = apart
    *outside, second_last, last = (broker.broker_id for broker in lab.brokers)
    group = {second_last, last}
    with plot(lab, "harvest", BUNDLES) as here:
        wanted = {"name": "harvest", "namespaces": [here.namespace], "primary": [TWO], "min_available_brokers": 2}
        policy = POLICY | ROOM | {"brokers": {"groups": [wanted]}}
        with Healer.on(lab, tmp_path, policy, checks=("broker-groups",)) as healer:
            topics = a_topic_in_each_bundle(here)
            with sending(lab, topics) as senders:
                wait_until(lambda: set(topics) <= shown_topics(lab).keys(), "all topics are shown", SHOWN_WITHIN_S, 0.5)
                all_send(senders)
                placed = by_owner(here, topics)
                moving = [each for broker in outside for each in placed[broker]]
                staying = [each for broker in group for each in placed[broker]]
                assert (len(moving), len(staying)) == (8, 4)

                began = time.monotonic()
                plan = healer.plan(healer.observe())
                (batch,) = plan.batches
                first, *moves = (step.change for step in batch.steps)
                assert isinstance(first, SetIsolation)
                assert all(isinstance(each, UnloadBundle) and each.source in outside for each in moves)
                assert len(moves) == len(moving)
                healer.heal(plan)
                by_steward = {"moving": gaps(senders, began, moving), "staying": gaps(senders, began, staying)}
                assert inside(here) == group
                wait_until(lambda: FOUND not in found(healer.observe()), "it is found no more", SHOWN_WITHIN_S, 2.0)

                owned = owners(here)
                healer.heal(healer.rollback_plan(plan, batch))
                assert owners(here) == owned
                put_back(here, {broker: placed[broker] for broker in outside})
                all_send(senders)

                began = time.monotonic()
                operator_of(lab).set_isolation("harvest", here.namespace, TWO)
                by_hand = {"moving": gaps(senders, began, moving), "staying": gaps(senders, began, staying)}
                operator_of(lab).drop_isolation("harvest")
                assert [each.failed for each in senders if each.failed] == []
    figures = {"longest gaps by Steward, ms": by_steward, "set by hand, ms": by_hand}
    (tmp_path / "gaps.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")  # for the document
    # A busy machine may hold up one producer; the policy set by hand cuts off every one.
    assert median(by_steward["staying"]) < min(by_hand["staying"]), figures
