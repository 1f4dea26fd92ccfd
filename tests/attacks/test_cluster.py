"""For that cluster: nothing that was approved for one is carried out in another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest

from lab.simulator import running_simulator
from pulsar_steward.apply.applied import what_was_done
from pulsar_steward.apply.execute import carry_out
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.rollback import rollback_plan
from pulsar_steward.errors import ConfigurationError, Refused
from pulsar_steward.model.cluster import ClusterIdentity, identity_of
from pulsar_steward.model.plan import Plan, approval_digest
from pulsar_steward.orchestration import batches
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.pulsar.reader import Reader
from tests.apply.worksite import RUN, SKEWED, said
from tests.builders import CLUSTER, IDENTITY, a_plan, a_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.simulator import Simulator
    from tests.apply.worksite import Worksite
    from tests.attacks.conftest import Connect


@pytest.fixture(params=["another name", "the same name"])
def other(request: pytest.FixtureRequest) -> Iterator[Simulator]:
    """Another cluster; where it has the same name, its metadata store is another one."""
    same = request.param == "the same name"
    elsewhere = {"metadataStoreUrl": "zk:elsewhere:2181"} if same else {}
    spec = replace(SKEWED, cluster="local" if same else "prod", configuration=elsewhere)
    with running_simulator(spec) as simulator:
        yield simulator


@pytest.mark.usefixtures("home")
def test_what_tasks_hand_on_does_not_choose_the_cluster(site: Worksite, other: Simulator, connect: Connect) -> None:
    """A batch is carried out in its plan's cluster, even if the data that tasks hand on names another one."""
    connect(site.simulator, no_policy_file=True)
    connect(other, "prod", no_policy_file=True)
    site.policy = type(site.policy)()
    plan = site.approved(site.move(0))
    handed_on = {"cluster": "prod", "plan_id": plan.plan_id, "batch_id": "b1", "label": "prod b1"}
    (outcome,) = batches.apply_batch(BatchRef.read(handed_on), RUN)
    assert outcome.outcome == "done"
    assert not other.requests.writes()
    assert site.owner(site.tc_bundles[0]) == site.brokers[1]


@pytest.mark.parametrize("handed_on", [{}, {"plan_id": 7, "batch_id": "b1", "label": ""}, {"plan_id": ["p"]}])
def test_what_tasks_hand_on_is_refused_where_it_names_no_batch(handed_on: dict[str, str]) -> None:
    """Data that tasks hand on is refused with a configuration error if it names no batch."""
    with pytest.raises(ConfigurationError, match="no valid name of a batch"):
        BatchRef.read(handed_on)


def test_a_plan_is_carried_out_under_its_own_cluster_only(site: Worksite) -> None:
    """A plan for one cluster is refused if it is carried out under the name of another cluster."""
    plan = site.approved(site.move(0))
    with site.context() as context, pytest.raises(Refused, match="is for cluster 'east', not 'prod'"):
        carry_out(replace(context, cluster="prod"), plan.plan_id, "b1")
    assert site.untouched()


@pytest.mark.parametrize("answer", ["none", "that of the other cluster"])
def test_an_approval_of_the_same_text_permits_nothing_in_another_cluster(
    site: Worksite, other: Simulator, answer: str
) -> None:
    """Of two clusters with one plan text, only that one is changed whose plan was approved."""
    step = a_step(site.move(0))
    approved = site.approved(step)
    prod = replace(site, simulator=other, cluster="prod")
    plan = prod.record(msgspec.structs.replace(prod.proposed(step), taken_at=approved.taken_at))
    assert plan.batches == approved.batches
    if answer != "none":
        prod.approve(plan, digest=approval_digest(approved, "b1", ["b1.s01"]))
    with pytest.raises(Refused, match=r"no answer to batch b1|the approval's digest is not that of the plan"):
        prod.carry_out(plan)
    assert not other.requests.writes()
    assert said(site.carry_out(approved)) == ["done"]


def test_a_connection_that_was_pointed_elsewhere_is_found_out(site: Worksite, other: Simulator) -> None:
    """A step drifts if the connection leads to a cluster with another Pulsar name or another metadata store."""
    (outcome,) = replace(site, simulator=other).carry_out(site.approved(site.move(0)))
    assert outcome.outcome == "drifted"
    assert "and the plan is for local (metadata" in outcome.reason
    assert not other.requests.writes()


def test_a_connection_that_is_pointed_elsewhere_meanwhile_is_found_out(
    site: Worksite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step drifts if another cluster answers since the step before it."""
    plan = site.approved(site.move(0), site.move(1))

    def point_elsewhere(_: object) -> None:
        told = {**LiveReader(site.settings).configuration(site.brokers[0]), "clusterName": "prod"}
        monkeypatch.setattr(Reader, "runtime_configuration", lambda _: told)

    outcomes = site.carry_out(plan, after=point_elsewhere)
    assert said(outcomes) == ["done", "drifted"]
    assert "same_cluster: Pulsar cluster prod" in outcomes[1].reason


def test_a_plan_that_names_no_pulsar_cluster_permits_nothing() -> None:
    """A plan that does not say which Pulsar cluster it is for cannot be read, so it permits nothing."""
    named = a_plan().encoded()
    document = msgspec.json.decode(named)
    assert Plan.decoded(named).pulsar_cluster == IDENTITY
    del document["pulsar_cluster"]
    with pytest.raises(msgspec.ValidationError, match="missing required field `pulsar_cluster`"):
        Plan.decoded(msgspec.json.encode(document))


def test_a_way_back_leads_into_the_same_cluster(site: Worksite, other: Simulator) -> None:
    """A rollback is refused if the connection leads to another cluster than the one that was changed."""
    plan = site.approved(site.move(0))
    assert said(site.carry_out(plan)) == ["done"]
    applied = what_was_done(site.ledger, plan.plan_id, "b1")
    with (
        LiveReader(replace(site, simulator=other).settings) as look,
        pytest.raises(Refused, match="was carried out in local"),
    ):
        rollback_plan(site.ledger, look, site.policy, applied, site.clock())


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ({"metadataStoreUrl": "zk:a:2181,b:2181/p"}, {"metadataStoreUrl": "zk:B:2181,a:2181/p"}, True),
        ({"metadataStoreUrl": "zk:a:2181"}, {"zookeeperServers": "a:2181"}, True),
        ({"metadataStoreUrl": "zk:a:2181/p"}, {"metadataStoreUrl": "zk:a:2181/q"}, False),
        ({"metadataStoreUrl": "zk:a:2181"}, {}, True),
    ],
)
def test_one_cluster_is_one_however_its_brokers_write_it(
    one: dict[str, str], two: dict[str, str], *, same: bool
) -> None:
    """Clusters of one name are the same if their metadata addresses differ in writing only, or one has none."""
    first, second = (identity_of({"clusterName": "local", **each}) for each in (one, two))
    assert first.is_same(second) is same
    assert not first.is_same(msgspec.structs.replace(second, name="other"))


def test_no_address_of_the_metadata_store_is_recorded(site: Worksite) -> None:
    """A plan records a hash of the metadata store's address, as the address may hold a password."""
    plan = site.plan(site.move(0))
    assert plan.pulsar_cluster == ClusterIdentity(name="local", metadata_id=site.identity.metadata_id)
    assert b"metadata:2181" not in plan.encoded()
    assert plan.cluster == CLUSTER
