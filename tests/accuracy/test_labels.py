"""The labels themselves hold up: names, checks and policies that exist."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from benchmarks.accuracy.settling import SETTLED_WITHIN_S, STATISTICS_S, statistics_apart_s, wait_for_quick_writes
from lab.faults.fault import MadeUpFault, RealFault, RealKafkaFault, SimulatedFault, SimulatedKafkaFault
from lab.faults.registry import FAULTS
from pulsar_steward.checks.registry import BY_ID, checks_of
from pulsar_steward.model.system import System
from pulsar_steward.policy.load import parse_policy

if TYPE_CHECKING:
    from lab.faults.registry import AnyFault


def test_names_are_unique() -> None:
    assert {name: count for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1} == {}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_labels_are_of_checks_and_of_policies_that_exist(fault: AnyFault) -> None:
    assert {expected.check_id for expected in fault.expected} | fault.allowed.keys() <= BY_ID.keys()
    for expected in fault.expected:
        re.compile(expected.subject)
        re.compile(expected.evidence)
    parse_policy(fault.policy, name=fault.name)


def test_what_is_expected_is_not_called_allowed_as_well() -> None:
    both = [fault.name for fault in FAULTS if any(each.check_id in fault.allowed for each in fault.expected)]
    assert both == []


def test_simulated_faults_say_why_they_are_not_made_for_real() -> None:
    assert [fault.name for fault in FAULTS if isinstance(fault, MadeUpFault) and not fault.why] == []


def test_healthy_clusters_are_among_all_kinds() -> None:
    healthy = [type(fault) for fault in FAULTS if not fault.expected]
    assert {RealFault, SimulatedFault, RealKafkaFault, SimulatedKafkaFault} == set(healthy)


def test_each_check_of_kafka_has_a_fault() -> None:
    assert {each.check_id for fault in FAULTS for each in fault.expected} >= checks_of(System.KAFKA).keys()


def test_twins_are_healthy_and_of_troubles_that_exist() -> None:
    troubles = {fault.name for fault in FAULTS if fault.expected}
    twins = [fault for fault in FAULTS if fault.twin_of]
    assert [fault.name for fault in twins if fault.expected or not set(fault.twin_of) <= troubles] == []


def test_every_trouble_that_is_made_has_a_twin() -> None:
    twins = {name for fault in FAULTS for name in fault.twin_of}
    own = [fault for fault in FAULTS if fault.report is None]
    assert [fault.name for fault in own if fault.expected and fault.name not in twins] == []


def test_there_are_enough_of_them() -> None:
    real = [fault for fault in FAULTS if isinstance(fault, RealFault)]
    assert (len(FAULTS) >= 150, len(real) >= 100) == (True, True)
    assert {fault.client for fault in real} == {"python", "java", "go", None}
    assert {fault.batches for fault in real} == {True, False, None}


def test_what_is_expected_in_a_namespace_is_expected_in_its_own() -> None:
    named = [
        (fault.name, expected.subject)
        for fault in FAULTS
        if isinstance(fault, RealFault)
        for expected in fault.expected
        if "public/" in expected.subject and fault.namespace not in expected.subject
    ]
    assert named == []


class Brokers:
    """Tell of the last whole minute: the burst just before is in their statistics only from the next one on."""

    def __init__(self, slow_until: float) -> None:
        self.now = 0.0
        self.slow_until = slow_until
        self.looks: list[float] = []

    def sleep(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds

    def slow(self) -> bool:
        """Whether this look finds slow writes."""
        self.looks.append(self.now)
        return STATISTICS_S <= self.now < self.slow_until

    def waited_for(self) -> list[float]:
        """Seconds at which they were looked at."""
        wait_for_quick_writes(self.slow, STATISTICS_S, sleep=self.sleep, clock=lambda: self.now)
        return self.looks


def test_statistics_of_before_the_burst_end_no_waiting() -> None:
    looks = Brokers(slow_until=100).waited_for()
    assert looks[0] >= STATISTICS_S
    assert looks[-1] >= 100


def test_quick_writes_are_looked_at_once() -> None:
    assert Brokers(slow_until=0).waited_for() == [STATISTICS_S]


def test_a_machine_that_stays_busy_is_looked_at_all_the_same() -> None:
    assert Brokers(slow_until=1e9).waited_for()[-1] == STATISTICS_S + SETTLED_WITHIN_S


def test_brokers_say_how_often_they_have_statistics() -> None:
    """The interval of statistics is that of the broker's settings, or the default if they have none."""
    assert statistics_apart_s({}) == STATISTICS_S
    assert statistics_apart_s({"statsUpdateFrequencyInSecs": "2"}) == 2
