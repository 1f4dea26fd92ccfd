"""Versions of Pulsar, and defaults of its brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.versions import markdown, written
from lab.model import VERSIONS
from pulsar_steward.model import pulsar_versions
from pulsar_steward.model.broker_defaults import KEYS, BrokerDefaults, broker_defaults
from pulsar_steward.model.pulsar_versions import (
    EVERY,
    INTRODUCED,
    OF_NAMESPACES,
    OF_TOPICS,
    TRIED,
    Operation,
    drops_unsent,
    objection_to,
    tried_as,
)
from pulsar_steward.model.setting import (
    BacklogQuota,
    DelayedDelivery,
    Persistence,
    QuotaPolicy,
    Retention,
    SettingName,
    TimeToLive,
)
from pulsar_steward.pulsar.own_settings import defaults_in
from tests.cases import row_by_row

DOCUMENT = Path(__file__).parents[3] / "docs" / "versions.md"
HELD_BY_TESTS = {"4.0.7", "4.2.4"}
"""Releases that `tests/live` and `tests/contract` were written on; the document need not have a column of them."""
MOVE, TTL = Operation.MOVE_BUNDLE, Operation.NAMESPACE_TTL


def test_every_release_that_was_tried_can_be_started() -> None:
    assert set(TRIED) == set(VERSIONS)


def test_every_setting_is_an_operation() -> None:
    assert set(OF_NAMESPACES) == set(OF_TOPICS) == set(SettingName)
    assert {*OF_NAMESPACES.values(), *OF_TOPICS.values()} < EVERY


def test_the_document_says_what_the_table_says() -> None:
    """The document says `done` exactly for the releases and operations that the table of tried ones has."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    releases = rows[0][1:]
    told = {row[0]: dict(zip(releases, row[1:], strict=True)) for row in rows}
    assert set(releases) | HELD_BY_TESTS >= set(TRIED) >= set(releases)
    for operation in Operation:
        done = {release for release, result in told[operation].items() if result == "done"}
        assert done == {release for release in releases if operation in TRIED[release]}, operation


@pytest.mark.parametrize("version", [*TRIED, "4.0.0", "4.0.15", "4.2.9", "3.0.17", "3.3.9"])
def test_a_release_of_a_line_that_was_tried(version: str) -> None:
    """A patch release counts as the tried release of its line, and the words name that release."""
    assert objection_to(Operation.TOPIC_TTL, version) is None
    line = version.rpartition(".")[0]
    tried = next(each for each in TRIED if each.startswith(f"{line}."))
    assert tried_as(version) == (
        f"Pulsar {version}" if version in TRIED else f"Pulsar {tried}, of the same line as {version}"
    )


@pytest.mark.parametrize("version", ["2.8.1", "2.10.0", "2.10.6", "2.11.4", "2.10.4-acme", "2.11.0.3"])
@pytest.mark.parametrize("vouched", [(), ("2.8", "2.10", "2.11", "2.10.4-acme", "2.11.0.3")])
def test_what_brokers_lack_is_refused_whoever_vouches_for_it(version: str, vouched: tuple[str, ...]) -> None:
    reason = objection_to(MOVE, version, vouched)
    assert reason is not None
    assert reason.startswith(f"Pulsar {version} has no `destinationBroker`")
    assert INTRODUCED[MOVE].source in reason


@row_by_row(
    "version, has",
    ("3.0.6", False),
    ("3.0.7", True),
    ("3.0.17", True),
    ("3.0", False),
    ("3.1.9", False),
    ("3.3.1", False),
    ("3.3.2", True),
    ("4.0.0", True),
    ("3.0.6-acme", False),
    ("3.0.7-acme", True),
)
def test_what_came_with_a_patch_release_is_told_by_it(version: str, has: bool) -> None:
    """The scope that unloads nothing came with patch releases of old lines: before them a step would unload all."""
    reason = objection_to(Operation.SET_ISOLATION, version, ("3.0", "3.1", "3.0.7-acme", version))
    assert (reason is None) is has
    assert has or "that came with 3.0.7, 3.3.2, 4.0 (PIP-369" in str(reason)


@row_by_row(
    "version, words",
    ("4.3.0", "Pulsar 4.3.0 was never tried ("),
    ("5.1.0", "was never tried: it is newer than 5.0.1, the newest that was ("),
    ("10.0.0", "was never tried: it is newer than 5.0.1, the newest that was ("),
    ("4.1.2", "Pulsar 4.1.2 was never tried ("),
    ("4.0.7-acme", "was never tried: it is no release of Apache Pulsar ("),
    ("4.0.7.3", "was never tried: it is no release of Apache Pulsar ("),
    ("4.0.8-SNAPSHOT", "was never tried: it is no release of Apache Pulsar ("),
    ("4.0", "was never tried: it is no release of Apache Pulsar ("),
    ("\u0664.\u0660.\u0667", "was never tried: it is no release of Apache Pulsar ("),
    ("4.0.7\n", "was never tried: it is no release of Apache Pulsar ("),
)
def test_what_was_never_tried_is_refused(version: str, words: str) -> None:
    """A version that was never tried is refused for every operation, and the reason names the policy key."""
    for operation in Operation:
        reason = objection_to(operation, version)
        assert reason is not None
        assert words in reason
        assert reason.endswith("(docs/versions.md; policy key guards.versions_tried_here)")


@row_by_row(
    "version, vouched, passes",
    ("4.3.1", ("4.3",), True),
    ("4.3.1", ("4.3.1",), True),
    ("4.3.2", ("4.3.1",), False),
    ("4.31.0", ("4.3",), False),
    ("4.3.1-acme", ("4.3",), False),
    ("4.3.1-acme", ("4.3.1-acme",), True),
)
def test_the_operator_vouches_for_a_line_or_for_a_version(version: str, vouched: tuple[str, ...], passes: bool) -> None:
    assert (objection_to(MOVE, version, vouched) is None) is passes
    if passes:
        assert tried_as(version).endswith("as the policy says (policy key guards.versions_tried_here)")


def test_the_policy_takes_nothing_away() -> None:
    """A tried version stays permitted when the policy names other versions only."""
    assert objection_to(MOVE, "4.0.7", ("4.3",)) is None


def test_one_operation_may_be_untried_on_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single untried operation is refused on a release until the policy vouches for it; the others pass."""
    operation = Operation.NAMESPACE_DELAYED_DELIVERY
    all_but_one = {**pulsar_versions.TRIED, "4.2.4": EVERY - {operation}}
    monkeypatch.setattr(pulsar_versions, "TRIED", all_but_one)
    reason = objection_to(operation, "4.2.4")
    assert reason is not None
    assert reason.startswith("longest delay of a namespace: it was never tried on Pulsar 4.2.4 (docs/versions.md;")
    assert objection_to(operation, "4.2.4", ("4.2",)) is objection_to(TTL, "4.2.4") is None
    assert "came with 3.3" in (objection_to(operation, "3.0.7", ("3.0",)) or "")


@row_by_row(
    "version, drops",
    ("3.0.5", True),
    ("3.0.6", False),
    ("3.0.5-acme", True),
    ("3.0.6-acme", False),
    ("3.0-acme", True),
    ("acme-3.0.4", True),
    ("v3.0.4", True),
    ("v4.0.7", True),
    ("", True),
)
def test_a_version_that_cannot_be_read_may_drop_what_was_not_sent(version: str, drops: bool) -> None:
    assert drops_unsent(version) is drops


def test_columns_of_other_versions_stay_as_they_are() -> None:
    """What the command writes it reads back whole, notes of several lines included."""
    assert markdown(written(DOCUMENT)) == DOCUMENT.read_text(encoding="utf-8")


TOLD = {
    "backlogQuotaDefaultLimitGB": "2.5",
    "backlogQuotaDefaultLimitBytes": "700",
    "backlogQuotaDefaultLimitSecond": "60",
    "backlogQuotaDefaultRetentionPolicy": "producer_exception",
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "10",
    "ttlDurationDefaultInSeconds": " 3600 ",
    "delayedDeliveryEnabled": "true",
    "delayedDeliveryTickTimeMillis": "1000",
    "delayedDeliveryMaxDelayInMillis": "60000",
    "brokerServiceCompactionThresholdInBytes": "4096",
    "managedLedgerDefaultEnsembleSize": "3",
    "managedLedgerDefaultWriteQuorum": "2",
    "managedLedgerDefaultAckQuorum": "2",
    "managedLedgerDefaultMarkDeleteRateLimit": "0.1",
}


def test_what_is_told() -> None:
    """All defaults are read, and a size in gigabytes above 0 takes precedence over the one in bytes."""
    assert set(TOLD) == set(KEYS)
    assert broker_defaults(TOLD) == BrokerDefaults(
        limit_bytes=5 << 29,
        limit_seconds=60,
        policy="producer_exception",
        retention_minutes=-1,
        retention_megabytes=10,
        ttl_seconds=3600,
        delays_messages=True,
        delay_tick_milliseconds=1000,
        longest_delay_milliseconds=60_000,
        compaction_bytes=4096,
        ensemble=3,
        write_quorum=2,
        ack_quorum=2,
        cursor_writes_per_second=0.1,
    )
    assert broker_defaults({**TOLD, "backlogQuotaDefaultLimitGB": "0"}).limit_bytes == 700


@pytest.mark.parametrize("value", ["", "much", "nan", "inf", "1e300", str(1 << 63)])
def test_what_is_no_number_is_not_known(value: str) -> None:
    """A default that is not a usable number is read as if the broker did not report it."""
    numbers = [key for key in KEYS if key != "backlogQuotaDefaultRetentionPolicy"]
    assert broker_defaults(dict.fromkeys(numbers, value)) == BrokerDefaults() == broker_defaults({})


def test_as_settings() -> None:
    """Brokers' defaults are returned as settings, and those that mean no limit are left out."""
    policy = QuotaPolicy.REFUSE
    assert defaults_in(TOLD) == {
        SettingName.SIZE_QUOTA: BacklogQuota(limit_bytes=5 << 29, policy=policy),
        SettingName.AGE_QUOTA: BacklogQuota(limit_seconds=60, policy=policy),
        SettingName.RETENTION: Retention(minutes=-1, megabytes=10),
        SettingName.TTL: TimeToLive(seconds=3600),
        SettingName.DELAYED_DELIVERY: DelayedDelivery(active=True, tick_milliseconds=1000, longest_milliseconds=60_000),
        SettingName.PERSISTENCE: Persistence.of((3, 2, 2), 0.1),
    }
    assert defaults_in({**dict.fromkeys(KEYS, "0"), "backlogQuotaDefaultRetentionPolicy": policy}) == {}
