"""Looking before and between changes: what is of the whole cluster is asked for once, what a change rests on anew."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lab.simulator import NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.apply.kept import AGES, Age
from pulsar_steward.apply.live_cluster import LiveCluster
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.changes.kind import Drifted
from pulsar_steward.model.bundles import BundleRange, halves_by_topic_count, position_of
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.apply.worksite import SKEWED, Worksite, a_worksite, quick_policy, said
from tests.builders import a_plan, a_step, equal_ranges

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from lab.simulator import RequestRecord
    from pulsar_steward.model.notice import Event
    from pulsar_steward.model.step import Change, Step
    from pulsar_steward.pulsar.calls import Call

BUNDLES = 8
OF_THE_WHOLE = ("/admin/v2/brokers", "/configuration/runtime", "/ownedNamespaces", "/namespaceIsolationPolicies")
"""How the paths end that tell of the whole cluster: who is listed, who answers, who owns what, and who may."""


def a_site(folder: Path, brokers: int, namespaces: int = 1) -> AbstractContextManager[Worksite]:
    """Some brokers, the first of which owns eight bundles with coordinators; and namespaces with a bundle each."""
    spec = replace(
        SKEWED,
        brokers=brokers,
        system_bundles=BUNDLES,
        coordinators=8 * BUNDLES,
        namespaces=tuple(
            NamespaceSpec(f"shop/n{number}", bundles=1, owner=0, topics=(TopicSpec("t"),))
            for number in range(namespaces)
        ),
    )
    policy = quick_policy(apply={"bundle_moves_per_minute": 1000, "reconnecting_clients_per_minute": 100_000})
    return a_worksite(folder, spec, policy=policy)


def looked_at(site: Worksite, *changes: Change) -> list[RequestRecord]:
    """Requests to brokers before the first and between the changes of a batch that is carried out whole."""
    requests, windows = site.simulator.requests, [[0]]

    def ends(call: Call) -> None:
        if call.method != "GET":
            windows[-1].append(len(requests.all()))

    def begins(event: Event) -> None:
        if event.event == "outcome":
            windows.append([len(requests.all())])

    plan = site.approved(*changes)
    requests.clear()
    assert set(said(site.carry_out(plan, before=ends, listener=begins))) == {"done"}
    records = requests.all()
    return [record for start, *end in windows if end for record in records[start : end[0]]]


@pytest.mark.parametrize(("brokers", "changes"), [(3, 1), (3, 2), (3, 5), (9, 1), (9, 4)])
def test_looking_at_moves_costs_a_call_a_broker_and_three_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brokers: int, changes: int
) -> None:
    monkeypatch.setitem(AGES, "listed", Age(60, 60, outlives_calls=False))  # however slow the machine is
    with a_site(tmp_path, brokers) as site:
        moves = [site.move(str(bundle), 1 + number % 2) for number, bundle in enumerate(equal_ranges(BUNDLES))]
        asked = [each for each in looked_at(site, *moves[:changes]) if each.path.endswith(OF_THE_WHOLE)]
        of_owner = [each for each in asked if f"/{site.brokers[0]}/" in each.path]
        assert len(of_owner) == 1 + changes
        assert len(asked) - changes <= brokers + 3 * changes
        assert sum(each.path.endswith("Policies") for each in asked) == 1
        for broker in site.brokers[3:]:
            assert sum(f"/{broker}/" in each.path for each in asked) == 1, broker


@pytest.mark.parametrize(("brokers", "changes"), [(3, 1), (3, 4), (9, 4)])
def test_looking_at_settings_costs_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brokers: int, changes: int
) -> None:
    monkeypatch.setitem(AGES, "listed", Age(60, 60, outlives_calls=False))
    with a_site(tmp_path, brokers, changes) as site:
        kept = Retention(minutes=60, megabytes=-1)
        settings = [
            ChangeSetting(namespace=f"shop/n{number}", name=SettingName.RETENTION, before=None, after=kept)
            for number in range(changes)
        ]
        asked = [each for each in looked_at(site, *settings) if each.path.endswith(OF_THE_WHOLE)]
        assert len(asked) <= brokers + 3 * changes
        assert not [each for each in asked if each.path.endswith("Policies")]


def test_right_before_a_quota_is_set_the_owners_of_its_namespace_are_asked_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AGES, "whole", Age(3600, 3600, outlives_calls=True))  # however slow the machine is
    with a_site(tmp_path, 6, 3) as site:
        after = BacklogQuota(limit_bytes=10**9, policy=QuotaPolicy.HOLD)
        quotas = [
            ChangeSetting(namespace=f"shop/n{number}", name=SettingName.SIZE_QUOTA, before=None, after=after)
            for number in range(3)
        ]
        asked = [each for each in looked_at(site, *quotas) if each.path.endswith("/ownedNamespaces")]
        first, anew = asked[:6], asked[6:]
        assert {each.broker_id for each in first} == set(site.brokers)
        # Before the topics themselves are asked: in the first look at all quotas, and right before each.
        assert [each.broker_id for each in anew] == [site.brokers[0]] * (3 + 3)


def test_where_a_bundle_of_a_namespace_went_elsewhere_all_brokers_are_asked(site: Worksite) -> None:
    """If a bundle of the namespace has moved, its new owner is found and asked for the topics' metrics."""
    move = site.move("0x00000000_0xffffffff", 2, namespace="shop/orders")
    change = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    with LiveReader(site.settings) as reader:
        whole = a_cluster(site, reader)
        assert whole.silent_brokers() == ()
        assert said(site.carry_out(site.approved(move))) == ["done"]
        site.simulator.requests.clear()
        assert facts(site, whole, a_step(change)).delayed_messages(change) == 0
        told = [record.broker_id for record in site.simulator.requests.all() if record.path == "/metrics/"]
        assert told == [site.brokers[2]]


def test_clients_of_a_bundle_are_counted_before_its_new_owner_tells_of_them(tmp_path: Path) -> None:
    bundle = "0x00000000_0xffffffff"
    with a_worksite(tmp_path, replace(SKEWED, steady=True)) as site, LiveReader(site.settings) as reader:
        assert reader.clients(site.brokers[0], "shop/orders", bundle) == 10
        assert said(site.carry_out(site.approved(site.move(bundle, 1, namespace="shop/orders")))) == ["done"]
        reader.called()
        assert reader.clients(site.brokers[1], "shop/orders", bundle) == 10


def test_clients_of_a_part_are_those_of_its_topics_while_statistics_have_the_whole(tmp_path: Path) -> None:
    """Right after a split a part is not judged by all clients of the whole bundle."""
    whole = "0x00000000_0xffffffff"
    positions = sorted(position_of(f"persistent://shop/orders/t-partition-{number}") for number in range(2))
    halves = halves_by_topic_count(BundleRange.parse(whole), positions) or ()
    with a_worksite(tmp_path, replace(SKEWED, steady=True)) as site, LiveReader(site.settings) as reader:
        of_broker = partial(reader.clients, site.brokers[0], "shop/orders")
        assert (of_broker(whole), [of_broker(str(half)) for half in halves]) == (10, [5, 5])


def test_what_brokers_told_before_a_call_counts_no_more(site: Worksite) -> None:
    """A broker's statistics are asked anew once something was called, however young they are."""
    with LiveReader(site.settings) as reader:
        whole = a_cluster(site, reader)
        site.simulator.requests.clear()
        for _ in range(2):
            reader.statistics(site.brokers[0])
        assert len(site.simulator.requests.all()) == 1
        whole.called()
        reader.statistics(site.brokers[0])
        assert len(site.simulator.requests.all()) == 2


def a_cluster(site: Worksite, reader: LiveReader) -> LiveCluster:
    """The cluster as steps of a plan see it that nobody recorded."""
    return LiveCluster(reader, site.policy, site.ledger, a_plan(), "b1")


def facts(site: Worksite, whole: LiveCluster, step: Step, *, shared: bool = False) -> LiveCluster:
    """Right before a step."""
    return whole.before(step, site.clock(), 1, shared=shared)


def test_owner_and_boundaries_are_shared_in_the_first_look_only(site: Worksite) -> None:
    move = site.move(0)
    with LiveReader(site.settings) as reader:
        whole = a_cluster(site, reader)
        assert facts(site, whole, a_step(move), shared=True).owner(move) == site.brokers[0]
        assert facts(site, whole, a_step(move), shared=True).has_bundle(move)
        site.simulator.pile_up_tcs(site.brokers[2])
        assert facts(site, whole, a_step(move), shared=True).owner(move) == site.brokers[0]
        assert facts(site, whole, a_step(move)).owner(move) == site.brokers[2]


def test_what_nobody_asks_for_is_not_read_and_nothing_is_read_twice(site: Worksite) -> None:
    move = site.move(0)
    with LiveReader(site.settings) as reader:
        known = facts(site, a_cluster(site, reader), a_step(move))
        site.simulator.requests.clear()
        assert (known.seen_at, known.planning) == (a_plan().taken_at, False)
        assert not site.simulator.requests.all()
        assert known.has_bundle(move)
        assert known.has_bundle(move)
        assert [record.path.rpartition("/")[2] for record in site.simulator.requests.all()] == ["bundles"]


def test_a_topic_is_asked_of_a_broker_that_owns_it_at_that_instant_only(tmp_path: Path) -> None:
    topics = (TopicSpec("t", subscriptions=(SubscriptionSpec("s", backlog=5),)),)
    spec = replace(
        SKEWED,
        namespaces=(NamespaceSpec("shop/orders", bundles=1, owner=0, topics=topics),),
        configuration={"exposeTopicLevelMetricsInPrometheus": "false"},
    )
    with a_worksite(tmp_path, spec) as site:
        move = site.move("0x00000000_0xffffffff", namespace="shop/orders")
        with LiveReader(site.settings) as reader:
            known = facts(site, a_cluster(site, reader), a_step(move), shared=True)
            assert (known.owner(move), known.clients(move), known.has_bundle(move)) == (site.brokers[0], 0, True)
            assert said(site.carry_out(site.approved(move))) == ["done"]
            site.simulator.requests.clear()
            with pytest.raises(Drifted, match="no longer owns shop/orders/0x00000000_0xffffffff"):
                known.move_risks(move)
            assert not [record for record in site.simulator.requests.all() if record.path.endswith("/stats")]
