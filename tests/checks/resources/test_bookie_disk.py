"""Disks of bookies that fill up, and bookies that are read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources.bookies import BOOKIE_DISK as CHECK
from pulsar_steward.checks.resources.bookies import WRITABLE
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import BOOKIE_STATUS
from tests.builders import a_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.checks.conftest import JudgeRows, Rows

    MinutesAgo = Callable[[float, Rows], Rows]

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
    """A snapshot of a broker and bookies."""
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
def test_a_disk_is_judged_by_what_is_in_use(
    judged: JudgeRows, percents: tuple[float, ...], found: Severity | None
) -> None:
    """A bookie has at most one finding, by the fullest of its disks."""
    judgement = judged(CHECK, rows(bookie(*percents), bookie(20.0, name="m:1")))
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
def test_a_disk_is_judged_by_how_it_fills(
    judged: JudgeRows, minutes_ago: MinutesAgo, now: float, earlier: dict[float, float], found: Severity | None
) -> None:
    """A disk is judged by the time until the bookie stops writing to it, at the lower of two growth rates."""
    before = [minutes_ago(minutes, rows(bookie(percent))) for minutes, percent in earlier.items()]
    judgement = judged(CHECK, rows(bookie(now)), None, before)
    assert [each.severity for each in judgement.findings] == ([found] if found else [])


def test_the_forecast_can_be_worked_out_by_hand(judged: JudgeRows, minutes_ago: MinutesAgo) -> None:
    """The evidence has the forecast of the worst directory, and counts the others that fill up."""
    before = minutes_ago(120, rows(bookie(78.0, 90.0, 10.0)))
    (finding,) = judged(CHECK, rows(bookie(80.0, 91.0, 10.0)), None, [before]).findings
    assert finding.evidence == (
        "On bookie k:1, the disk of ledger directory _data_1 has 91.0 % in use, 0.50 % more each hour: the bookie stops"
        " writing to it in 8.0 h. Of its 3 directories, 1 other fills up as well."
    )
    assert finding.figures == {
        "fullest_percent": 91,
        "ledger_directories": 3,
        "read_only": 0,
        "seconds_until_full": 8 * 3600,
        "writable_directories": 3,
    }
    assert {type(each) for each in finding.figures.values()} == {int}


def test_a_read_only_bookie_is_found(judged: JudgeRows) -> None:
    """A read-only bookie is a warning, and critical if no other bookie takes writes; its disk is reported as well."""
    one = judged(CHECK, rows(bookie(50.0, writable=0.0), bookie(20.0, name="m:1"))).findings
    assert [(each.subject, each.severity) for each in one] == [("k:1", WARNING)]
    assert one[0].evidence == (
        "Bookie k:1 is read-only: all writes go to the others. On bookie k:1, the disk of ledger directory _data_0 has"
        " 50.0 % in use."
    )
    both = judged(CHECK, rows(bookie(50.0, writable=0.0), bookie(name="m:1", writable=0.0))).findings
    assert [(each.subject, each.severity) for each in both] == [("k:1", CRITICAL), ("m:1", CRITICAL)]
    assert both[1].evidence == "Bookie m:1 is read-only: no bookie that tells its state takes writes."


def test_a_bookie_that_is_not_registered_is_found(judged: JudgeRows) -> None:
    """A bookie that the metadata store does not know takes no writes, and the evidence does not call it read-only."""
    one = judged(CHECK, rows(bookie(name="k:1", writable=-1.0), bookie(20.0, name="m:1"))).findings
    assert [(each.subject, each.severity, each.evidence) for each in one] == [
        ("k:1", WARNING, "Bookie k:1 is not registered in the metadata store: all writes go to the others.")
    ]
    assert (one[0].figures["read_only"], one[0].figures["unregistered"]) == (0, 1)

    both = judged(CHECK, rows(bookie(name="k:1", writable=-1.0), bookie(name="m:1", writable=0.0))).findings
    assert [(each.subject, each.severity) for each in both] == [("k:1", CRITICAL), ("m:1", CRITICAL)]
    assert both[1].figures["read_only"] == 1


@pytest.mark.parametrize("growing", [True, False])
def test_a_full_disk_has_no_forecast(judged: JudgeRows, minutes_ago: MinutesAgo, growing: bool) -> None:
    """From `full_percent` on the evidence says that it is reached, whether the disk grows or not."""
    before = [minutes_ago(60, rows(bookie(90.0 if growing else 97.0)))]
    (finding,) = judged(CHECK, rows(bookie(97.0)), None, before).findings
    assert finding.evidence == (
        "On bookie k:1, the disk of ledger directory _data_0 has 97.0 % in use: it has come to the 95 % at which the"
        " bookie stops writing to it."
    )


def test_a_bookie_that_the_policy_names_has_to_be_read(judged: JudgeRows) -> None:
    """The check cannot tell if a named bookie is not in the snapshot, unless another one has a finding."""
    urls = ("bookie=http://k:1/metrics", "bookie=http://m:1/metrics", "zookeeper=http://z:1/metrics")
    policy = a_policy(collect={"metrics_urls": urls})
    lacking = "The snapshot lacks metrics of m:1, named in collect.metrics_urls."
    assert judged(CHECK, rows(bookie(20.0)), policy).cannot_tell == lacking
    assert judged(CHECK, rows(), policy).cannot_tell == lacking.replace("m:1", "k:1, m:1")
    assert judged(CHECK, rows(bookie(20.0), bookie(20.0, name="m:1")), policy).cannot_tell is None
    found = judged(CHECK, rows(bookie(99.0)), policy)
    assert ([each.subject for each in found.findings], found.cannot_tell) == (["k:1"], None)


def test_what_was_not_read_is_said(judged: JudgeRows) -> None:
    """The check cannot tell without any bookie's metrics, or if one bookie does not report its disks."""
    assert judged(CHECK, rows()).cannot_tell == (
        "No bookie's metrics were read: collect.metrics_urls has to name them (bookie=http://HOST:PORT/metrics)."
    )
    silent = judged(CHECK, rows(bookie(20.0), bookie(name="m:1", writable=None)))
    assert silent.cannot_tell == "The disks of m:1 are not in the metrics."
    assert judged(CHECK, rows(bookie(20.0))).quiet == "Of 1 bookie, the fullest disk has 20 % in use."


def test_the_thresholds_are_the_policys(judged: JudgeRows) -> None:
    """With thresholds of 50 and 60 % a disk with 55 % in use is a warning, and one with 65 % critical."""
    policy = a_policy(bookie_disk={"warning_percent": 50, "critical_percent": 60, "full_percent": 70})
    assert [each.severity for each in judged(CHECK, rows(bookie(55.0)), policy).findings] == [WARNING]
    assert [each.severity for each in judged(CHECK, rows(bookie(65.0)), policy).findings] == [CRITICAL]
