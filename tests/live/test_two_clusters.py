"""Two real clusters behind one configuration store: each sees what is its own, and changes nothing of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.faults.real.ground import COMMON_SETTINGS
from lab.faults.real.operator import operator_of
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.setting import Retention, SettingName
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.tables import NAMESPACES
from tests.live.healing import Healer, found

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/apply/test_guards_before_calls.py", "tests/unit/guards/test_settings.py"),
]

EAST, WEST = "local", "west"
HERE, THERE, BOTH = "shared/here", "shared/there", "shared/both"


@pytest.fixture(scope="module")
def clusters(labs: LabPool) -> Iterator[dict[str, Lab]]:
    """A cluster of three brokers, one of two, and a tenant that both of them serve."""
    east = labs.lab(broker_settings=dict(COMMON_SETTINGS))
    with east.second_cluster(WEST, brokers=2, broker_settings=dict(COMMON_SETTINGS)) as west:
        admin = operator_of(east)
        admin.create_tenant("shared", EAST, WEST)
        for name, served_by in {HERE: [EAST], THERE: [WEST], BOTH: [EAST, WEST]}.items():
            admin.create_namespace(name, 4, replication_clusters=served_by)
        yield {EAST: east, WEST: west}
    labs.discard(east)


@pytest.mark.parametrize(("name", "own", "others"), [(EAST, HERE, THERE), (WEST, THERE, HERE)])
def test_of_a_namespace_of_the_other_cluster_a_snapshot_has_the_name(
    clusters: dict[str, Lab], name: str, own: str, others: str, tmp_path: Path
) -> None:
    with Healer.on(clusters[name], tmp_path, checks=("tc-skew",)) as healer:
        snapshot = healer.observe()
    assert not snapshot.meta().unread
    assert others in (snapshot.meta().served_elsewhere or ())
    names = snapshot.table(NAMESPACES, ["namespace"])["namespace"].to_pylist()
    assert sorted(each for each in names if each.startswith("shared/")) == sorted([own, BOTH])


def test_snapshots_tell_that_both_share_a_configuration_store(clusters: dict[str, Lab], tmp_path: Path) -> None:
    stores = set()
    for name, lab in clusters.items():
        with Healer.on(lab, tmp_path / name, checks=("tc-skew",)) as healer:
            stores.add(healer.observe().meta().configuration_store_id)
    assert len(stores) == 1
    assert None not in stores


@pytest.mark.parametrize("name", [EAST, WEST])
def test_settings_of_what_both_serve_stay(clusters: dict[str, Lab], name: str, tmp_path: Path) -> None:
    admin = operator_of(clusters[name])
    before, kept = admin.policies(BOTH), Retention(minutes=60, megabytes=-1)
    change = ChangeSetting(namespace=BOTH, name=SettingName.RETENTION, before=None, after=kept)
    with Healer.on(clusters[name], tmp_path, checks=("tc-skew",)) as healer:
        outcome, reason = healer.refusal_of(change)
    assert (outcome, reason.partition(":")[0]) == (Outcome.REFUSED, "one_cluster"), reason
    assert admin.policies(BOTH) == before


@pytest.mark.parametrize(("name", "other"), [(EAST, WEST), (WEST, EAST)])
def test_coordinators_are_spread_within_a_cluster(
    clusters: dict[str, Lab], name: str, other: str, tmp_path: Path
) -> None:
    clusters[name].pile_up_tcs()
    elsewhere = clusters[other].owned_bundles()
    with Healer.on(clusters[name], tmp_path, checks=("tc-skew",)) as healer:
        snapshot = healer.observe()
        assert ("tc-skew", healer.cluster) in found(snapshot)
        healer.heal(healer.plan(snapshot))
    counts = clusters[name].tc_placement()
    assert max(counts.values()) - min(counts.values()) <= 2, counts
    now = clusters[other].owned_bundles()
    assert all(set(bundles) <= set(now[broker]) for broker, bundles in elsewhere.items())
