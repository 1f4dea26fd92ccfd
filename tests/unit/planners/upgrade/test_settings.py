"""Settings whose defaults change, with the effect on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator.brokers import default_configuration
from pulsar_steward.model.broker_defaults import BEFORE_5, DEFAULTS, LINES, SHEDDER, default_in
from pulsar_steward.model.pulsar_versions import numbers_of
from pulsar_steward.planners.restarts.model import State
from pulsar_steward.planners.upgrade.facts import upgrade_facts
from pulsar_steward.planners.upgrade.model import Part, UpgradeLine
from pulsar_steward.planners.upgrade.settings import EFFECTS, GONE, lines_of_settings
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import broker
from tests.cases import row_by_row
from tests.unit.planners.upgrade.clusters import a_bundle, a_subscription, write_cluster

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

HOLES = "managedLedgerMaxUnackedRangesToPersist"
IMPL = "org.apache.pulsar.broker.loadbalance.impl"


def lines_of(folder: Path, key: str, **changed: Any) -> list[UpgradeLine]:
    """Lines on one setting."""
    facts = upgrade_facts(open_snapshot(write_cluster(folder / "s", **changed)))
    return [each for each in lines_of_settings(facts) if each.subject == key]


def test_the_table_is_that_of_a_real_broker() -> None:
    """The defaults of 4.0 are the values of a 4.0.7 broker of the lab, which checks quotas more often."""
    real = {key: value for key, value in default_configuration().items() if key in DEFAULTS}
    assert {key: default_in(key, "4.0") for key in real} == real | {"backlogQuotaCheckIntervalInSeconds": "60"}


@row_by_row(
    "line, default",
    ("2.9", None),
    ("3.0", "false"),
    ("4.0", "false"),
    ("4.1", None),  # the change came with 4.1 or with 4.2
    ("4.2", "true"),
    ("4.3", "true"),
    ("5.1", "true"),
)
def test_a_default_by_line(line: str, default: str | None) -> None:
    assert default_in("acknowledgmentAtBatchIndexLevelEnabled", line) == default


def test_every_difference_to_5_has_an_effect_or_is_gone() -> None:
    """From each line of 3.0 on; and each row tells of a difference."""
    lines = [each for each in LINES if (3, 0) <= numbers_of(each) < (5, 0)]
    differing = {key for key in DEFAULTS for each in lines if default_in(key, each) != default_in(key, "5.0")}
    later = {key for key in differing if key in BEFORE_5 and len(DEFAULTS[key]) == 1}  # than 3.0, and the same since
    assert differing - (later - EFFECTS.keys()) == EFFECTS.keys() | GONE.keys()


def test_the_old_default_changes(tmp_path: Path) -> None:
    (line,) = lines_of(tmp_path, HOLES, subscriptions=[a_subscription("a", ack_holes=12_345), a_subscription("b")])
    assert (line.part, line.before, line.after) == (Part.CHANGES, "10000", "200000")
    assert line.words == "1 cursor has too many ack holes to keep all at a restart today, 12,345 at most."


def test_what_is_set_stays(tmp_path: Path) -> None:
    (line,) = lines_of(tmp_path, HOLES, settings={HOLES: "50000"})
    assert (line.part, line.before, line.after, line.words) == (Part.KEPT, "50000", "200000", "")


@pytest.mark.parametrize("value", ["200000", "200000.0"])
def test_the_new_default_changes_nothing(tmp_path: Path, value: str) -> None:
    assert lines_of(tmp_path, HOLES, settings={HOLES: value}) == []


def test_a_value_that_is_not_told_is_not_judged(tmp_path: Path) -> None:
    (line,) = lines_of(tmp_path, HOLES, settings={HOLES: None})
    assert (line.state, line.before) == (State.UNKNOWN, None)


def test_brokers_that_differ_are_named(tmp_path: Path) -> None:
    """Each by the default of its own version; one of 5.0 is done already."""
    lines = lines_of(tmp_path, "acknowledgmentAtBatchIndexLevelEnabled", versions=("4.0.7", "4.2.4", "5.0.1"))
    assert [(each.part, each.words.split()[1]) for each in lines] == [
        (Part.CHANGES, f"{broker(0)}:"),
        (Part.KEPT, f"{broker(1)}:"),
    ]


@row_by_row(
    "key, value, state",
    ("sslFactoryPlugin", "org.acme.Factory", State.STOP),
    ("subscriptionSharedUseClassicPersistentImplementation", "true", State.STOP),
    ("managedLedgerUnackedRangesOpenCacheSetEnabled", "false", State.NOTE),
)
def test_a_setting_that_is_gone(tmp_path: Path, key: str, value: str, state: State) -> None:
    assert lines_of(tmp_path, key) == []
    (line,) = lines_of(tmp_path / "set", key, settings={key: value})
    assert (line.part, line.state, line.before, line.after) == (Part.GONE, state, value, None)


def owned(*rates: float) -> list[dict[str, Any]]:
    return [a_bundle(number, rate) for number, rate in enumerate(rates)]


@row_by_row(
    "settings, tables, words",
    (
        {},  # it moves half of the 11,800 messages/s that the two differ by
        {"bundles": owned(6000, 3000, 3000, 100)},
        "2 bundles from broker-00:8080 (71 %) to broker-02:8080 (12 %) within 2 rounds of shedding, acme/orders/0x0000",
    ),
    ({"maxUnloadPercentage": "0.6"}, {"bundles": owned(6000)}, "move 1 bundle from broker-00"),
    ({"loadBalancerAvgShedderHighThreshold": "60"}, {"bundles": owned(10)}, "to broker-02:8080 (12 %) within 8 rounds"),
    ({}, {"bundles": owned(6000)}, "Nothing by the figures of now: no bundle is small enough"),
    ({"minUnloadMessage": "few"}, {}, "Not told: by which thresholds"),
    ({"loadBalancerAvgShedderLowThreshold": "60"}, {}, "Nothing by the usages of now, 12 to 71 %"),
    ({"loadBalancerSheddingEnabled": "false"}, {}, "Nothing here, while shedding is off."),
    ({"loadBalancerSheddingEnabled": None}, {}, "Not told: whether the brokers' own shedding is on"),
    ({}, {"metrics": []}, "Not told: the usage"),
    ({"loadManagerClassName": f"{IMPL}.ExtensibleLoadManagerImpl"}, {}, "Nothing here: ExtensibleLoadManagerImpl"),
)
def test_another_shedder(tmp_path: Path, settings: dict[str, str], tables: dict[str, Any], words: str) -> None:
    """AvgShedder pairs the fullest with the emptiest broker."""
    (line,) = lines_of(tmp_path, SHEDDER, settings=settings, **tables)
    assert words in line.words


@pytest.mark.parametrize(
    ("value", "words"),
    [("true", "are refused"), ("false", "Nothing here"), (None, "Whether authenticationEnabled is on is not told")],
)
def test_a_default_that_matters_only_with_another_setting(tmp_path: Path, value: str | None, words: str) -> None:
    (line,) = lines_of(tmp_path, "authenticateOriginalAuthData", settings={"authenticationEnabled": value})
    assert words in line.words
