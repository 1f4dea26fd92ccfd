"""Settings in which brokers of one cluster differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator.brokers import default_configuration
from pulsar_steward.checks.resources.broker_settings_differ import CHECK, KINDS
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.setting import SHARED
from tests.checks.conftest import judge_rows, minutes_ago, told

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden


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
def test_how_bad_it_is_goes_by_what_the_setting_decides(key: str, found: Severity | None) -> None:
    """The severity of a difference depends on the setting; settings of a single broker and secrets are left out."""
    judgement = judge_rows(CHECK, brokers("one", "one", "two", key=key))
    assert {each.subject: each.severity for each in judgement.findings} == ({key: found} if found else {})
    assert judgement.cannot_tell is None


def test_what_it_says(golden: Golden) -> None:
    """A difference is information while a change is under way: all had the same in a snapshot of the window."""
    now, equal, unread = brokers("1", "1", "2"), brokers("1", "1", "1"), brokers("1", "1")
    unread["brokers"].append({"broker": "z:1", "read": True})
    cases: dict[str, tuple[Any, ...]] = {
        "the most usual value comes first": (brokers("86400", "0", "86400"),),
        "many brokers are counted": (brokers(*["1"] * 8, *["2"] * 7),),
        "many values are": (brokers("1", "1", "2", "3", "4", "5"),),
        "who does not tell is not compared, and spaces are nothing": (brokers("1", None, " 1 "),),
        "a change is under way": (now, None, [minutes_ago(10, equal)]),
        "they differed before": (now, None, [minutes_ago(10, now)]),
        "they were equal too long ago": (now, None, [minutes_ago(61, equal)]),
        "the settings of one were not read": (unread,),
        "those of none were": ({},),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))


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
    then: tuple[str | None, ...], now: tuple[str, ...], found: Severity
) -> None:
    """A change is under way only if each broker that has another value now was told with the old one."""
    (finding,) = judge_rows(CHECK, brokers(*now), None, [minutes_ago(30, brokers(*then))]).findings
    assert finding.severity is found
    assert ("all had the same" in finding.evidence) is (found is INFO)


@pytest.mark.parametrize(
    ("values", "found"), [(("1", "1", "2"), INFO), (("1", "2", "2"), WARNING), (("2", "1", "1"), WARNING)]
)
def test_versions_may_have_other_defaults(values: tuple[str, ...], found: Severity) -> None:
    """A difference is information when all brokers of each Pulsar version agree, and else a warning."""
    (finding,) = judge_rows(CHECK, brokers(*values, versions=("4.0.7", "4.0.7", "4.2.4"))).findings
    assert finding.severity is found


def test_each_setting_is_of_one_kind_and_of_a_real_broker() -> None:
    """Each compared setting has one kind, and all but one are among the defaults of Pulsar 4.0.7."""
    kinds = [key for keys, _, _ in KINDS for key in keys]
    assert sorted(kinds) == sorted(set(kinds)) == sorted(SHARED)
    assert set(SHARED) - default_configuration().keys() == {"loadBalancerSheddingExcludedNamespaces"}
