"""Settings in which brokers of one cluster differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator.brokers import default_configuration
from pulsar_steward.checks.resources.broker_settings_differ import CHECK, KINDS
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.setting import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.checks.conftest import JudgeRows, Rows

    MinutesAgo = Callable[[float, Rows], Rows]

CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
TTL = "ttlDurationDefaultInSeconds"


def brokers(*values: str | None, key: str = TTL, versions: tuple[str, ...] = ()) -> Rows:
    """A broker for each value of a setting, a:1, b:1 and so on; None: it does not tell it."""
    names = [f"{letter}:1" for letter in "abcdefghijklmnop"[: len(values)]]
    told = [{"broker": name, "key": key, "value": value} for name, value in zip(names, values, strict=True) if value]
    given = versions or ("4.0.7",) * len(names)
    rows = [{"broker": name, "read": True, "pulsar_version": each} for name, each in zip(names, given, strict=True)]
    others = [{"broker": name, "key": "maxMessageSize", "value": "5242880"} for name in names]
    return {"brokers": rows, "configuration": told + others}


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("loadManagerClassName", CRITICAL),
        ("topicLevelPoliciesEnabled", CRITICAL),
        ("authenticationEnabled", None),
        (TTL, WARNING),
        ("loadBalancerSheddingEnabled", WARNING),
        ("numIOThreads", INFO),
        ("advertisedListeners", None),
        ("brokerClientTlsKeyStorePassword", None),
    ],
)
def test_how_bad_it_is_goes_by_what_the_setting_decides(judged: JudgeRows, key: str, found: Severity | None) -> None:
    """The severity of a difference depends on the setting; settings of a single broker and secrets are left out."""
    judgement = judged(CHECK, brokers("one", "one", "two", key=key))
    assert {each.subject: each.severity for each in judgement.findings} == ({key: found} if found else {})
    assert judgement.cannot_tell is None


def test_who_differs_is_said(judged: JudgeRows) -> None:
    """The evidence starts with the most usual value, and counts the brokers and values that it does not name."""
    (finding,) = judged(CHECK, brokers("86400", "0", "86400")).findings
    assert finding.evidence == (
        f"{TTL} is 86400 on 2 brokers, 0 on b:1: what a topic gets changes as it moves to another broker."
    )
    assert finding.figures == {"brokers": 3, "brokers_with_another_value": 1, "values": 2}
    assert {type(each) for each in finding.figures.values()} == {int}

    (many,) = judged(CHECK, brokers(*["1"] * 8, *["2"] * 7)).findings
    assert "1 on 8 brokers, 2 on i:1, j:1, k:1, l:1, m:1 and 2 more:" in many.evidence
    (spread,) = judged(CHECK, brokers("1", "1", "2", "3", "4", "5")).findings
    assert ", 4 on e:1, and 1 further value:" in spread.evidence


def test_a_broker_that_does_not_tell_a_setting_is_not_compared(judged: JudgeRows) -> None:
    """A broker that does not report a setting is not compared by it, and spaces around a value are ignored."""
    judgement = judged(CHECK, brokers("1", None, " 1 "))
    assert (judgement.findings, judgement.cannot_tell) == ((), None)
    assert judgement.quiet == f"3 brokers tell the same of {len(SHARED)} settings."


def test_a_change_that_is_under_way_is_information(judged: JudgeRows, minutes_ago: MinutesAgo) -> None:
    """A difference is information when all values were equal in a snapshot of the window, and else a warning."""
    now, equal, differing = brokers("1", "1", "2"), brokers("1", "1", "1"), brokers("1", "1", "2")
    (under_way,) = judged(CHECK, now, None, [minutes_ago(10, equal)]).findings
    assert under_way.severity is INFO
    assert under_way.evidence.endswith(
        "all had the same in the snapshot of 2026-03-01 11:50 UTC, so a change may be under way."
    )
    for earlier in (minutes_ago(10, differing), minutes_ago(61, equal)):
        assert [each.severity for each in judged(CHECK, now, None, [earlier]).findings] == [WARNING]


@pytest.mark.parametrize(
    ("then", "now", "found"),
    [
        pytest.param(("1", "1", None), ("1", "1", "2"), WARNING, id="the odd one was not told"),
        pytest.param((None, None, "2"), ("1", "1", "2"), WARNING, id="only the odd one was told"),
        pytest.param(("1", None, "1"), ("1", "1", "2"), INFO, id="one that has the same value still was not told"),
        pytest.param((None, "1", "1"), ("2", "2", "1"), WARNING, id="one of those that have changed was not told"),
        pytest.param(("1", "1", "1"), ("2", "2", "1"), INFO, id="most have changed"),
        pytest.param(("2", None), ("2", "1"), WARNING, id="one of two was not told"),
        pytest.param(("3", "3", "3"), ("1", "1", "2"), INFO, id="all have changed"),
    ],
)
def test_a_change_is_told_by_brokers_that_had_another_value(
    judged: JudgeRows, minutes_ago: MinutesAgo, then: tuple[str | None, ...], now: tuple[str, ...], found: Severity
) -> None:
    """A change is under way only if each broker that has another value now was told with the old one."""
    earlier = minutes_ago(30, brokers(*then))
    (finding,) = judged(CHECK, brokers(*now), None, [earlier]).findings
    assert finding.severity is found
    assert ("all had the same" in finding.evidence) is (found is INFO)


@pytest.mark.parametrize(
    ("values", "found"), [(("1", "1", "2"), INFO), (("1", "2", "2"), WARNING), (("2", "1", "1"), WARNING)]
)
def test_versions_may_have_other_defaults(judged: JudgeRows, values: tuple[str, ...], found: Severity) -> None:
    """A difference is information when all brokers of each Pulsar version agree, and else a warning."""
    (finding,) = judged(CHECK, brokers(*values, versions=("4.0.7", "4.0.7", "4.2.4"))).findings
    assert finding.severity is found


def test_what_was_not_read_is_said(judged: JudgeRows) -> None:
    """The check cannot tell if the settings of one broker or of all brokers were not read."""
    rows = brokers("1", "1")
    rows["brokers"].append({"broker": "z:1", "read": True})
    assert judged(CHECK, rows).cannot_tell == "The settings of z:1 were not read."
    assert judged(CHECK, {}).cannot_tell == "No settings were read of any broker."


def test_each_setting_is_of_one_kind_and_of_a_real_broker() -> None:
    """Each compared setting has one kind, and all but one are among the defaults of Pulsar 4.0.7."""
    kinds = [key for keys, _, _ in KINDS for key in keys]
    assert sorted(kinds) == sorted(set(kinds)) == sorted(SHARED)
    assert set(SHARED) - default_configuration().keys() == {"loadBalancerSheddingExcludedNamespaces"}
