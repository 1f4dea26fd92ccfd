"""Changes never tried on the brokers' version are not called, whatever was approved; each version is asked for once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lab.simulator import Answer, Fault, NamespaceSpec
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.apply.refusals import assert_stopped
from tests.apply.worksite import SKEWED, Worksite, a_worksite, said

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path


def a_site(folder: Path, *versions: str) -> AbstractContextManager[Worksite]:
    """Three brokers, the first of which run these versions, and the others 4.0.7."""
    return a_worksite(folder, replace(SKEWED, versions=versions))


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        (("2.10.4",) * 3, "version_tried: Pulsar 2.10.4 has no `destinationBroker`"),
        (("4.0.7", "no version"), "which version of Pulsar"),
    ],
)
def test_nothing_is_called_where_a_broker_lacks_it(tmp_path: Path, versions: tuple[str, ...], reason: str) -> None:
    with a_site(tmp_path, *versions) as site:
        outcomes = site.carry_out(site.approved(site.move(0), site.move(1)))
        assert said(outcomes) == ["refused", "refused"]
        assert reason in outcomes[0].reason
        assert site.untouched()


def test_brokers_that_do_not_tell_the_topics_of_a_bundle_are_refused_for_their_version(tmp_path: Path) -> None:
    with a_site(tmp_path, *(("2.10.4",) * 3)) as site:
        site.simulator.faults.add(Fault(Answer(404), "topicHashPositions", times=None))
        (outcome,) = site.carry_out(site.approved(site.move("0x00000000_0xffffffff", namespace="shop/orders")))
        assert "version_tried: Pulsar 2.10.4 has no `destinationBroker`" in outcome.reason


def test_a_broker_that_does_not_answer_for_its_version(tmp_path: Path) -> None:
    with a_site(tmp_path) as site:
        plan = site.approved(site.move(0))
        site.simulator.faults.add(Fault(Answer(500), path="/brokers/version", broker_id=site.brokers[2], times=None))
        assert_stopped(site, plan, "refused", f"/brokers/version at {site.brokers[2]}: 500")


ONE = "topic://shop/orders/one"


@pytest.mark.parametrize(
    ("versions", "scalable", "reason"),
    [
        (("5.0.1",) * 3, (), None),
        (("5.0.1",) * 3, (ONE,), f"shop/orders has 1 scalable topic, such as {ONE}"),
        (("4.0.7", "5.0.1"), (), "which scalable topics shop/orders has is not known"),
        (("4.0.7",) * 3, (ONE,), None),
    ],
)
def test_a_namespace_of_scalable_topics_keeps_its_limits(
    tmp_path: Path, versions: tuple[str, ...], scalable: tuple[str, ...], reason: str | None
) -> None:
    """Nobody knows what waits in segments; the call that lists scalable topics is new in 5.0."""
    spec = replace(SKEWED, versions=versions, namespaces=(NamespaceSpec("shop/orders", scalable=scalable),))
    change = ChangeSetting(
        namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=600), inherited=None
    )
    with a_worksite(tmp_path, spec) as site:
        plan = site.approved(change)
        if reason is None:
            assert said(site.carry_out(plan)) == ["done"]
        else:
            assert_stopped(site, plan, "refused", f"scalable_topics: {reason}")
        asked = [record for record in site.simulator.requests.all() if "/scalable/" in record.path]
        assert bool(asked) is ("5.0.1" in versions)


def test_each_broker_is_asked_once_for_a_batch(tmp_path: Path) -> None:
    with a_site(tmp_path) as site:
        plan = site.approved(site.move(0), site.move(1, 2))
        site.simulator.requests.clear()
        assert said(site.carry_out(plan)) == ["done", "done"]
        asked = [record.broker_id for record in site.simulator.requests.all() if record.path.endswith("/version")]
        assert sorted(asked) == sorted(site.brokers)
