"""For that cluster, and bounded: an isolation policy of another cluster, and a group that holds no broker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.apply.groups import FIRST_TWO, GROUP, SPEC, policies, replace_primary, setting, wanting
from tests.apply.worksite import a_worksite
from tests.builders import a_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.model.step import SetIsolation, Step
    from tests.apply.worksite import Worksite


@pytest.fixture
def grouped(tmp_path: Path) -> Iterator[Worksite]:
    """Four brokers on hosts of their own, under a policy that wants a group of two."""
    with a_worksite(tmp_path, SPEC, policy=wanting(FIRST_TWO)) as site:
        yield site


def assert_nothing_set(site: Worksite, change: SetIsolation | Step, outcome: str, words: str) -> None:
    """Asserts that an approved policy comes to this, for this reason, with nothing called."""
    (row,) = site.carry_out(site.approved(change))
    assert (row.outcome, site.untouched(), policies(site)) == (outcome, True, {})
    assert words in row.reason


def test_a_policy_approved_for_another_cluster_is_not_set(grouped: Worksite) -> None:
    """Brokers keep policies of other clusters too: a step that names another one than answers is drifted."""
    words = "isolation_as_planned: it is a policy of the Pulsar cluster prod, and local answers"
    assert_nothing_set(grouped, setting(pulsar_cluster="prod"), "drifted", words)


@pytest.mark.parametrize("pattern", ["nobody", r"127\.0\.0\.9", "127.0.0.1:8080"])
def test_a_group_that_holds_no_broker_is_not_set(grouped: Worksite, pattern: str) -> None:
    """A group of nobody would shut its namespaces out at their next load, whoever wants and approves it."""
    grouped.policy = wanting({**FIRST_TWO, "primary": [pattern]})
    words = "group_brokers: the group holds no running broker, of 2 at least"
    assert_nothing_set(grouped, setting(replace_primary(pattern)), "refused", words)


@pytest.mark.parametrize("listed", [True, False], ids=["still listed", "no longer listed"])
@pytest.mark.parametrize(
    ("approved", "outcome", "words"),
    [
        ("before", "drifted", "isolation_as_planned: since this was planned, 2 brokers match no more"),
        ("after", "refused", "group_brokers: the group holds no running broker, of 2 at least"),
    ],
)
def test_a_group_whose_brokers_died_is_not_set(
    grouped: Worksite, approved: str, outcome: str, words: str, *, listed: bool
) -> None:
    """Brokers that are gone when a group is to be set are none of it, whether it was approved before that or after."""
    site = replace(grouped, broker=3)
    plan = site.approved(setting(GROUP)) if approved == "before" else None
    for broker in site.brokers[:2]:
        site.simulator.kill_broker(broker)
        if not listed:
            site.simulator.expire_session(broker)
    (row,) = site.carry_out(plan or site.approved(setting(GROUP)))
    assert (row.outcome, site.changes(), policies(site)) == (outcome, [], {})
    assert words in row.reason


@pytest.mark.parametrize("wanted", [(), ({"name": "other"},), ({"min_available_brokers": 1},)], ids=str)
def test_a_group_that_the_policy_does_not_want_so_is_not_set(grouped: Worksite, wanted: tuple[Any, ...]) -> None:
    """No policy is no permission: what was approved is not set where the policy in force wants none, or another."""
    grouped.policy = wanting(*({**FIRST_TWO, **other} for other in wanted))
    assert_nothing_set(grouped, setting(GROUP), "refused", "group_wanted: the group shop is")


def test_a_policy_is_not_set_unless_it_is_recorded_what_it_matched(grouped: Worksite) -> None:
    """A plan that does not say which namespaces and brokers were approved approves none."""
    words = "2 more namespaces match: shop/carts, shop/orders; 2 more brokers match: 127.0.0.1"
    assert_nothing_set(grouped, a_step(setting(GROUP)), "drifted", words)
