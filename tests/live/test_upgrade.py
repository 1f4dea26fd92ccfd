"""A real cluster of 4.0.7 with clients is upgraded to 5.0.1 broker by broker: the report beside its outcome."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from lab.faults.real.ground import COMMON_SETTINGS, SHOWN_WITHIN_S
from lab.faults.real.operator import operator_of, shown_topics
from lab.testing import need_lab
from lab.waiting import wait_until
from pulsar_steward.model.broker_defaults import same_value
from pulsar_steward.planners.restarts.facts import restart_facts
from pulsar_steward.planners.restarts.judge import RISKS, restart_verdict
from pulsar_steward.planners.restarts.model import State
from pulsar_steward.planners.upgrade.compose import upgrade_report
from pulsar_steward.planners.upgrade.facts import upgrade_facts
from pulsar_steward.planners.upgrade.model import Part
from tests.live.healing import Healer
from tests.live.plots import plot
from tests.live.test_drain import a_topic_in_each_bundle, all_send, by_owner, longest_ms, sending
from tests.live.test_guard_harm import place_of, what_comes
from tests.live.test_restarts import POLICY, with_holes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool
    from pulsar_steward.planners.upgrade.model import UpgradeReport

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/unit/cli/test_upgrade.py", "tests/unit/planners/upgrade/test_settings.py"),
]

TO = "5.0.1"
BUNDLES = 6
MESSAGES = 400
ONE_MORE = {"schemaRegistryCompatibilityCheckers"}
"""A list that names one class more in 5.0."""

FORETOLD = (Part.CHANGES, Part.NEW, Part.GONE)


@pytest.fixture
def lab(labs: LabPool) -> Iterator[Lab]:
    need_lab(TO)
    lab = labs.lab(hosts="distinct", broker_settings=dict(COMMON_SETTINGS))
    yield lab
    labs.discard(lab)


def running_settings(lab: Lab) -> dict[str, str]:
    """Settings in force on the first broker."""
    url = f"{lab.brokers[0].admin_url}/admin/v2/brokers/configuration/runtime"
    settings: dict[str, str] = httpx.get(url, timeout=10, trust_env=False).json()
    return settings


def settings_foretold(report: UpgradeReport) -> dict[str, str | None]:
    """Settings of which the report says that their values change, with the new ones."""
    return {
        each.subject: each.after
        for each in report.lines
        if each.part in FORETOLD and each.state is not State.UNKNOWN and (each.before or each.after)
    }


def test_a_cluster_is_upgraded_broker_by_broker(lab: Lab, tmp_path: Path) -> None:
    """No broker is restarted without a yes, no message comes again, and settings change as the report said."""
    told: dict[str, Any] = {}
    with plot(lab, "upgraded", BUNDLES) as here, Healer.on(lab, tmp_path, POLICY, checks=tuple(RISKS)) as healer:
        healer.observe()
        acknowledged = with_holes(here, MESSAGES)
        topics = a_topic_in_each_bundle(here)
        with sending(lab, topics) as senders:
            wait_until(lambda: set(topics) <= shown_topics(lab).keys(), "all topics are shown", SHOWN_WITHIN_S, 0.5)
            all_send(senders)
            before, settings = healer.observe(), running_settings(lab)
            report = upgrade_report(upgrade_facts(before))
            told["lines"] = [
                f"{each.part.name} {each.state.value} {each.subject}: {each.words}" for each in report.lines
            ]

            leaders = {each.broker for each in before.brokers() if each.leader}
            for broker in sorted(lab.active_brokers(), key=lambda each: (each in leaders, each)):
                verdict = restart_verdict(restart_facts(healer.observe()), broker, healer.policy)
                assert verdict.state is State.NOTE, verdict
                theirs, began = by_owner(here, topics)[broker], time.monotonic()
                lab.stop_broker(broker)
                lab.start_broker(broker, TO)
                all_send(senders)
                away = [each.words for each in verdict.reasons if each.subject == "time"]
                told[broker] = {"foretold": away, "longest_gaps_ms": longest_ms(senders, began, theirs)}
            assert [each.failed for each in senders if each.failed] == []

        assert {each.pulsar_version for each in healer.observe().brokers()} == {TO}
        again = acknowledged & {place_of(each) for each in what_comes(here.shared(here.topic()))}
        assert not again
        after, foretold = running_settings(lab), settings_foretold(report)
        admin = operator_of(lab)
        admin.create_namespace("public/new", 0)
        assert str(len(admin.bundles("public/new"))) == foretold["defaultNumberOfNamespaceBundles"]
        changed = {key for key in settings.keys() & after.keys() if not same_value(after[key], settings[key])}
        told["not foretold"] = {key: [settings[key], after[key]] for key in changed - foretold.keys()}
        told["otherwise"] = {
            key: [value, after.get(key)]
            for key, value in foretold.items()
            if not same_value(after.get(key, ""), value or "")
        }
        (tmp_path / "upgrade.json").write_text(json.dumps(told, indent=1), encoding="utf-8")  # for the document
        assert told["otherwise"] == {}, told
        assert told["not foretold"].keys() <= ONE_MORE, told
