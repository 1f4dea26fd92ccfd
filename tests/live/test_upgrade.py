"""A real cluster of 4.0.7 is upgraded to 5.0.1 broker by broker, with producers: what was foretold, what happened."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from lab.bookie import ADMIN_API, METRICS, metrics_urls
from lab.faults.clients.publishing import publish
from lab.faults.real.ground import COMMON_SETTINGS, SHOWN_WITHIN_S
from lab.faults.real.operator import shown_topics
from lab.waiting import wait_until
from pulsar_steward.planners.restarts.facts import restart_facts
from pulsar_steward.planners.restarts.judge import restart_verdict
from pulsar_steward.planners.restarts.model import State
from pulsar_steward.planners.upgrade.compose import upgrade_report
from pulsar_steward.planners.upgrade.facts import upgrade_facts
from pulsar_steward.planners.upgrade.model import Part
from pulsar_steward.planners.upgrade.settings import EFFECTS
from tests.live.healing import Healer
from tests.live.plots import plot
from tests.live.test_drain import a_topic_in_each_bundle, all_send, by_owner, longest_ms, sending
from tests.live.test_guard_harm import every_other, holes_of, place_of, what_comes
from tests.live.test_restarts import BUSY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool
    from pulsar_steward.snapshots.read import Snapshot

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/unit/cli/test_upgrade.py", "tests/unit/planners/upgrade/test_settings.py"),
]

TO = "5.0.1"
BUNDLES = 6
MESSAGES = 400
WRITTEN = re.compile(r"^\s*(\w+)\s*=", re.MULTILINE)


@pytest.fixture
def lab(labs: LabPool) -> Iterator[Lab]:
    lab = labs.lab(broker_settings=dict(COMMON_SETTINGS), bookie_settings=ADMIN_API | METRICS)
    yield lab
    labs.discard(lab)


def in_force(snapshot: Snapshot, keys: list[str]) -> dict[str, set[str | None]]:
    """Values of settings on all brokers."""
    found: dict[str, set[str | None]] = {key: set() for key in keys}
    for row in snapshot.configuration(keys):
        found[row.key].add(row.value)
    return found


def same(value: str | None, other: str | None) -> bool:
    try:
        return float(value or "") == float(other or "")
    except ValueError:
        return (value or "") == (other or "")


def test_a_cluster_is_upgraded_broker_by_broker(lab: Lab, tmp_path: Path) -> None:
    """No broker is restarted without a yes; nothing acknowledged comes again; defaults change as the report said."""
    told: dict[str, Any] = {}
    policy = {"collect": {"metrics_urls": metrics_urls(lab)}, **BUSY}
    with plot(lab, "upgraded", BUNDLES) as here, Healer.on(lab, tmp_path, policy, checks=()) as healer:
        consumer = here.shared(here.topic("held"))
        publish(here.producer(here.topic("held"), batched=False), MESSAGES, 20)
        acknowledged = {place_of(each) for each in every_other(consumer, MESSAGES)}
        topics = a_topic_in_each_bundle(here)
        with sending(lab, topics) as senders:
            wait_until(lambda: set(topics) <= shown_topics(lab).keys(), "all topics are shown", SHOWN_WITHIN_S, 0.5)
            here.until(here.topic("held"), lambda shown: holes_of(shown) >= len(acknowledged) - 1, "half is read")
            consumer.close()
            all_send(senders)
            before = healer.observe()
            report = upgrade_report(upgrade_facts(before))
            told["blocks"] = [f"{each.state.value} {each.subject}: {each.words}" for each in report.lines
                              if each.part is Part.BLOCKS and each.state is not State.NOTE]  # fmt: skip
            assert {each.subject for each in report.lines if each.state is State.STOP} <= {
                each.subject for each in report.lines if each.subject.startswith("Java ")
            }, told

            leaders = {each.broker for each in before.brokers() if each.leader}
            for broker in sorted(lab.active_brokers(), key=lambda each: (each in leaders, each)):
                snapshot = healer.observe()
                verdict = restart_verdict(restart_facts(snapshot), broker, healer.policy)
                assert verdict.state is State.NOTE, verdict
                theirs, began = by_owner(here, topics)[broker], time.monotonic()
                lab.stop_broker(broker)
                lab.start_broker(broker, TO)
                all_send(senders)
                foretold = [each.words for each in verdict.reasons if each.subject == "time"]
                gaps = longest_ms(senders, began, theirs)
                told[broker] = {"foretold": foretold, "topics": len(theirs), "longest_gaps_ms": gaps}
            assert [each.failed for each in senders if each.failed] == []

        after = healer.observe()
        assert {each.pulsar_version for each in after.brokers()} == {TO}
        again = acknowledged & {place_of(each) for each in what_comes(here.shared(here.topic("held")))}
        told["acknowledged"], told["came again"] = len(acknowledged), len(again)
        assert not again

        changes = {each.subject: each for each in report.lines if each.part in {Part.CHANGES, Part.NEW}}
        changes = {key: each for key, each in changes.items() if each.state is State.NOTE}
        written = set(WRITTEN.findall((lab.home / "conf" / "broker-1.conf").read_text(encoding="utf-8")))
        now = in_force(after, list(changes))
        as_told = {key for key, each in changes.items() if all(same(value, each.after) for value in now[key])}
        told["as foretold"], told["written in broker.conf"] = sorted(as_told), sorted(changes.keys() - as_told)
        told["not as foretold"] = {
            key: [changes[key].after, *map(str, now[key])] for key in changes.keys() - as_told - written
        }
        (tmp_path / "upgrade.json").write_text(json.dumps(told, indent=1), encoding="utf-8")  # for the document
        assert told["not as foretold"] == {}, told
        assert len(as_told) > len(EFFECTS) // 2
