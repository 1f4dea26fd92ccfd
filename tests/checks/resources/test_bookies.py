"""Disks of bookies that fill up, bookies that are read-only, and ensembles that take all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources.bookies import BOOKIE_DISK as CHECK
from pulsar_steward.checks.resources.bookies import DEFAULT, WRITABLE
from pulsar_steward.checks.resources.bookies import ENSEMBLE_TOO_LARGE as ENSEMBLE_CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import BOOKIE_STATUS
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows, minutes_ago, severity_of, told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows
    from tests.golden import Golden

CRITICAL, WARNING = Severity.CRITICAL, Severity.WARNING


def bookie(*percents: float, name: str = "k:1", writable: float | None = 1.0) -> list[dict[str, Any]]:
    """The samples of a bookie whose directories' disks are so full."""
    told = {f"bookie_ledger_dir__data_{number}_usage": percent for number, percent in enumerate(percents)}
    told |= {} if writable is None else {BOOKIE_STATUS: writable}
    told[WRITABLE] = float(len(percents))
    return [
        {"source": name, "source_kind": "bookie", "series": series, "labels_json": "{}", "value": value}
        for series, value in told.items()
    ]


def rows(*bookies: list[dict[str, Any]]) -> Rows:
    broker = {
        "source": "a:1",
        "source_kind": "broker",
        "series": "pulsar_lb_cpu_usage",
        "labels_json": "{}",
        "value": 99,
    }
    return {
        "brokers": [{"broker": "a:1", "read": True}],
        "metrics": [broker, *(row for each in bookies for row in each)],
    }


@pytest.mark.parametrize(
    ("percents", "found"),
    [((84.9,), None), ((85.0,), WARNING), ((91.9,), WARNING), ((92.0,), CRITICAL), ((10.0, 93.0), CRITICAL)],
)
def test_a_disk_is_judged_by_what_is_in_use(percents: tuple[float, ...], found: Severity | None) -> None:
    judgement = judge_rows(CHECK, rows(bookie(*percents), bookie(20.0, name="m:1")))
    assert {each.subject: each.severity for each in judgement.findings} == ({"k:1": found} if found else {})
    assert judgement.cannot_tell is None


@pytest.mark.parametrize(
    ("now", "earlier", "found"),
    [
        pytest.param(70.0, {60: 69.0}, WARNING, id="full in 25 h"),
        pytest.param(70.0, {60: 69.5}, None, id="full in 50 h"),
        pytest.param(70.0, {60: 65.0}, CRITICAL, id="full in 5 h"),
        pytest.param(59.0, {60: 50.0}, None, id="too much room for a forecast"),
        pytest.param(70.0, {29: 69.0}, None, id="too short a time"),
        pytest.param(70.0, {721: 30.0}, None, id="too long ago"),
        pytest.param(70.0, {10: 71.0, 60: 65.0}, None, id="compaction freed some lately"),
        pytest.param(70.0, {10: 69.0, 60: 70.0}, None, id="no fuller than an hour ago"),
        pytest.param(70.0, {60: 80.0}, None, id="emptier"),
        pytest.param(84.0, {0.5: 84.0, 300: 70.0}, CRITICAL, id="as full moments before, full in 4 h"),
    ],
)
def test_a_disk_is_judged_by_how_it_fills(now: float, earlier: dict[float, float], found: Severity | None) -> None:
    """A disk is judged by the time until the bookie stops writing to it, at the lower of two growth rates."""
    before = [minutes_ago(minutes, rows(bookie(percent))) for minutes, percent in earlier.items()]
    assert severity_of(judge_rows(CHECK, rows(bookie(now)), None, before)) is found


def test_what_it_says(golden: Golden) -> None:
    """Of a directory that fills from 90 to 91 % in two hours, 4 % are left to the 95 % at which a bookie stops: 8 h."""
    urls = ("bookie=http://k:1/metrics", "bookie=http://m:1/metrics", "zookeeper=http://z:1/metrics")
    named = a_policy(collect={"metrics_urls": urls})
    stricter = a_policy(bookie_disk={"warning_percent": 50, "critical_percent": 60, "full_percent": 70})
    well, read_only, unknown = bookie(20.0, name="m:1"), bookie(50.0, writable=0.0), bookie(writable=-1.0)
    filling = rows(bookie(80.0, 91.0, 10.0)), None, [minutes_ago(120, rows(bookie(78.0, 90.0, 10.0)))]
    cases: dict[str, tuple[Any, ...]] = {
        "the forecast is of the worst directory, and another one fills up": filling,
        "one of two is read-only": (rows(read_only, well),),
        "both are, so nobody takes writes": (rows(read_only, bookie(name="m:1", writable=0.0)),),
        "one of two is not registered": (rows(unknown, well),),
        "one is not registered, the other is read-only": (rows(unknown, bookie(name="m:1", writable=0.0)),),
        "a full disk that grows": (rows(bookie(97.0)), None, [minutes_ago(60, rows(bookie(90.0)))]),
        "a full disk that does not": (rows(bookie(97.0)), None, [minutes_ago(60, rows(bookie(97.0)))]),
        "one that the policy names was not read": (rows(bookie(20.0)), named),
        "none that the policy names was": (rows(), named),
        "all that it names were": (rows(bookie(20.0), well), named),
        "the one that was read is full": (rows(bookie(99.0)), named),
        "no bookie was read": (rows(),),
        "one does not tell its disks": (rows(bookie(20.0), bookie(name="m:1", writable=None)),),
        "all is well": (rows(bookie(20.0)),),
        "55 % under a threshold of 50": (rows(bookie(55.0)), stricter),
        "65 % under one of 60": (rows(bookie(65.0)), stricter),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))


INFO = Severity.INFO
OWN = "acme/orders"


def judged(
    bookies: int | None, own: object = None, default: tuple[str, ...] = ("2",), policy: Policy | None = None
) -> Judgement:
    about = {"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": [], "bookies": bookies}
    persistence = {} if own is None else {"persistence": {"bookkeeperEnsemble": own, "bookkeeperWriteQuorum": 1}}
    settings = [{"broker": f"b-{n}:8080", "key": DEFAULT, "value": value} for n, value in enumerate(default)]
    rows: Rows = {
        "snapshot": [about],
        "namespaces": [{"namespace": OWN, "policies_json": json.dumps(persistence)}],
        "configuration": settings,
    }
    return judge_rows(ENSEMBLE_CHECK, rows, policy)


@pytest.mark.parametrize(
    ("bookies", "own", "default", "found"),
    [
        pytest.param(5, None, ("2",), {}, id="the default fits"),
        pytest.param(3, 3, ("2",), {OWN: INFO}, id="a namespace takes all"),
        pytest.param(3, 4, ("2",), {OWN: CRITICAL}, id="a namespace takes more"),
        pytest.param(2, None, ("2",), {"lab": INFO}, id="the default takes all"),
        pytest.param(1, None, ("2",), {"lab": CRITICAL}, id="the default takes more"),
        pytest.param(1, 1, ("1",), {}, id="one bookie alone"),
        pytest.param(3, 4, ("4",), {OWN: CRITICAL, "lab": CRITICAL}, id="both"),
        pytest.param(3, None, ("2", "5"), {"lab": CRITICAL}, id="the largest of the brokers' counts"),
        pytest.param(3, "many", ("2",), {}, id="a document that makes no sense"),
        pytest.param(3, 4, (), {OWN: CRITICAL}, id="no default was read"),
    ],
)
def test_ensembles_are_held_against_the_bookies(
    bookies: int, own: object, default: tuple[str, ...], found: dict[str, Severity]
) -> None:
    """Each namespace's ensemble is judged by the number of bookies, and the default as a finding of the cluster."""
    judgement = judged(bookies, own, default)
    assert {each.subject: each.severity for each in judgement.findings} == found
    assert judgement.cannot_tell is None


def test_what_it_says_of_ensemble(golden: Golden) -> None:
    """An ensemble is information if fewer bookies are beyond it than the policy wants as spare."""
    spare = [a_policy(ensemble_too_large={"information_spare_bookies": number}) for number in range(3)]
    cases = {
        "the number of bookies is not known": judged(None),
        "no bookie is known": judged(0),
        "no default was read": judged(3, default=()),
        "a default that is no number": judged(3, default=("some",)),
        **{f"{number} spare ones of one": judged(3, policy=policy) for number, policy in enumerate(spare)},
        "a namespace takes more than there are": judged(3, 4),
        "a namespace takes all": judged(3, 3),
    }
    golden(told(cases))
