"""A cluster is divided by groups of brokers: a policy is set without an unload, then bundles move to the group."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import msgspec
import pytest

from lab.simulator import (
    Answer,
    BrokenJson,
    Delay,
    Fault,
    NamespaceSpec,
)
from pulsar_steward.apply.applied import what_was_done
from pulsar_steward.apply.verify import verify
from pulsar_steward.errors import Refused
from pulsar_steward.model.isolation import Failover, FailoverLimits, IsolationPolicy
from pulsar_steward.model.plan import BROKER_GROUP
from pulsar_steward.model.step import SetIsolation, UnloadBundle
from pulsar_steward.report.decision import decision_of
from tests.apply.groups import (
    FIRST_TWO,
    GROUP,
    OTHER,
    SPEC,
    owners,
    policies,
    replace_primary,
    setting,
    somebody_deletes,
    somebody_sets,
    wanting,
)
from tests.apply.seeing import Seeing
from tests.apply.test_crash import crash
from tests.apply.test_rollback import back_of, take_back
from tests.apply.worksite import RUN, a_worksite, quick_policy, said
from tests.builders import a_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.pulsar.calls import Call
    from tests.apply.worksite import Worksite


@pytest.fixture
def seeing(tmp_path: Path) -> Iterator[Seeing]:
    """The cluster under a policy that wants `shop` on the first two brokers."""
    with a_worksite(tmp_path, SPEC) as site:
        site.policy = wanting(FIRST_TWO)
        yield Seeing(site, tmp_path / "snapshots", (BROKER_GROUP,))


@pytest.fixture
def site(seeing: Seeing) -> Worksite:
    """The same, without eyes."""
    return seeing.site


def the_plan(seeing: Seeing) -> Plan:
    """What is proposed for the cluster: the policy, then moves."""
    plan, found = seeing.observe()
    (batch,) = plan.batches
    assert (batch.kind, [*found]) == (BROKER_GROUP, ["shop"])
    return plan


def test_a_group_gets_its_policy_then_its_bundles(seeing: Seeing) -> None:
    """The policy comes first and unloads nothing; moves follow it, and each bundle ends within its group."""
    site = seeing.site
    plan = the_plan(seeing)
    policy, *moves = plan.batches[0].steps
    assert policy.change == setting()
    assert moves
    assert all(isinstance(step.change, UnloadBundle) and step.after == ("b1.s01",) for step in moves)
    before = owners(site, "news/all")
    assert set(seeing.carry_out(plan)) == {"done"}
    assert policies(site) == {"shop": GROUP}
    assert owners(site, "shop/orders") | owners(site, "shop/carts") == set(site.brokers[:2])
    assert owners(site, "news/all") == before
    first = site.changes()[0]
    assert first == "shop namespaceIsolationPolicies"
    site.policy = wanting(FIRST_TWO)
    plan, found = seeing.observe()
    assert (plan.batches, found) == ((), {})


def test_nothing_is_unloaded_by_the_policy_itself(site: Worksite) -> None:
    """The step that sets the policy leaves every bundle with its owner."""
    before = site.simulator.owned_bundles()
    (outcome,) = site.carry_out(site.approved(setting()))
    assert (outcome.outcome, site.simulator.owned_bundles()) == ("done", before)


def test_nothing_is_proposed_unless_a_group_is_wanted(seeing: Seeing) -> None:
    seeing.site.policy = quick_policy()
    plan, found = seeing.observe()
    assert (plan.batches, found) == ((), {})


def test_a_group_may_change_its_brokers(seeing: Seeing) -> None:
    """Where the wanted brokers are other ones, moves to them are planned before the policy permits them."""
    site = seeing.site
    assert set(seeing.carry_out(the_plan(seeing))) == {"done"}
    site.clock.advance(minutes=60)
    site.policy = wanting({**FIRST_TWO, "primary": [r"127\.0\.0\.[34]"]})
    plan = the_plan(seeing)
    assert set(seeing.carry_out(plan)) == {"done"}
    assert owners(site, "shop/orders") | owners(site, "shop/carts") == set(site.brokers[2:])


def test_what_is_taken_back_is_the_policy_and_no_move(seeing: Seeing) -> None:
    """A rollback deletes the policy, says of each bundle that it stays, and moves none."""
    site = seeing.site
    plan = the_plan(seeing)
    assert set(seeing.carry_out(plan)) == {"done"}
    owned = site.simulator.owned_bundles()
    back = back_of(site, plan)
    assert [step.change for step in back.batches[0].steps] == [setting().inverse]
    stays = [note for note in back.notes if "stays on" in note]
    assert len(stays) == len(plan.batches[0].steps) - 1
    assert said(take_back(site, plan)) == ["done"]
    assert policies(site) == {}
    assert site.simulator.owned_bundles() == owned


def test_a_policy_that_there_was_is_restored(site: Worksite) -> None:
    former = replace_primary(r"127\.0\.0\.[123]")
    somebody_sets(site, "shop", former)
    plan = site.approved(setting(before=former))
    assert said(site.carry_out(plan)) == ["done"]
    assert said(take_back(site, plan)) == ["done"]
    assert policies(site) == {"shop": former}


def test_a_policy_that_somebody_changed_is_drifted(site: Worksite) -> None:
    """A policy that is no longer as planned is left as it is, and no call is made."""
    plan = site.approved(setting())
    somebody_sets(site, "shop", replace_primary("127.*"))
    site.simulator.requests.clear()
    (outcome,) = site.carry_out(plan)
    assert (outcome.outcome, site.changes()) == ("drifted", [])
    assert "is shop/.* on 127.*" in outcome.reason


def _claimed(site: Worksite) -> None:
    somebody_sets(site, "other", IsolationPolicy(("shop/carts",), ("127.*",), (), GROUP.auto_failover_policy))


def _unwanted(site: Worksite) -> None:
    site.policy = wanting()


def _full(site: Worksite) -> None:
    site.policy = wanting(
        FIRST_TWO, partition_ceiling={"warning_topics_per_broker": 5, "critical_topics_per_broker": 9}
    )


def _protected(site: Worksite) -> None:
    site.policy = wanting(FIRST_TWO, apply={"protected_namespaces": ["shop/carts"]})


def _protected_others(site: Worksite) -> None:
    site.policy = wanting(FIRST_TWO, apply={"protected_namespaces": ["news/*"]})


def _silent(site: Worksite) -> None:
    """The metrics of a broker that keeps serving others end before its topics."""
    site.simulator.faults.add(Fault(BrokenJson(), path="/metrics/", broker_id=site.brokers[3], times=None))


HARM = {
    "another policy": (_claimed, "group_unclaimed: the isolation policy other is about shop/carts already"),
    "no longer wanted": (_unwanted, "group_wanted: the group shop is none by now"),
    "no room": (_full, "would have 45 topics, more than 9 (partition_ceiling.critical_topics_per_broker)"),
    "no topics told": (_silent, "did not report their loaded topics, so that nobody knows what there is room for"),
    "protected": (_protected, "protected: shop/carts, which it is about, is protected"),
    "protected others": (_protected_others, "protected: news/all, which could not be on 127.0.0.1:"),
}


@pytest.mark.parametrize(("happens", "words"), HARM.values(), ids=HARM)
def test_a_group_that_would_do_harm_is_refused(site: Worksite, happens: Any, words: str) -> None:
    """Right before the call the policy is refused, and nothing is called."""
    plan = site.approved(setting())
    happens(site)
    site.simulator.requests.clear()
    (outcome,) = site.carry_out(plan)
    assert (outcome.outcome, site.changes()) == ("refused", [])
    assert words in outcome.reason


def _one_namespace_more(site: Worksite) -> None:
    url = f"{site.simulator.admin_urls[0]}/admin/v2/namespaces/shop/new"
    assert httpx.put(url, json={"bundles": {"numBundles": 4}}).is_success


def _one_broker_less(site: Worksite) -> None:
    site.simulator.stop_broker(site.brokers[1])


def _one_broker_more(site: Worksite) -> None:
    site.simulator.start_broker(site.brokers[1])


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        (None, _one_namespace_more, "1 more namespace matches: shop/new"),
        (None, _one_broker_less, "1 broker matches no more: 127.0.0.2"),
        (_one_broker_less, _one_broker_more, "1 more broker matches: 127.0.0.2"),
    ],
    ids=["a namespace more", "a broker less", "a broker more"],
)
def test_what_matches_by_now_was_not_approved(site: Worksite, first: Any, then: Any, words: str) -> None:
    """A policy that matches other namespaces or brokers than when it was planned is drifted, with their names."""
    if first:
        first(site)
    plan = site.approved(setting())
    then(site)
    site.simulator.requests.clear()
    (outcome,) = site.carry_out(plan)
    assert (outcome.outcome, site.changes()) == ("drifted", [])
    assert f"isolation_as_planned: since this was planned, {words}" in outcome.reason


def test_brokers_for_everybody_else_have_to_be_left(site: Worksite) -> None:
    """A group of all brokers would leave none to the namespaces of no group, and is refused."""
    everything = {**FIRST_TWO, "primary": ["127.*"]}
    site.policy = wanting(everything)
    (outcome,) = site.carry_out(site.approved(setting(replace_primary("127.*"))))
    assert outcome.outcome == "refused"
    assert "group_brokers: 0 running brokers would be left to news/all" in outcome.reason


def test_a_bundle_that_leaves_the_group_again_is_no_proof(seeing: Seeing) -> None:
    """A batch is not proved where a bundle with topics is outside of the group in the end."""
    site = seeing.site
    plan = the_plan(seeing)
    site.approve(plan, run=RUN)
    assert set(said(site.carry_out(plan))) == {"done"}
    site.simulator._loop.call(_stray, site, site.brokers[3])
    with site.context() as context:
        proof = verify(context, plan.plan_id, "b1")
    assert not proof.proved
    assert "1 bundle is outside of the group, and not 0" in proof.reason


def _stray(site: Worksite, broker: str) -> None:
    bundles = [name for name in site.simulator._state.ownership.owned_by(site.brokers[0]) if name.startswith("shop/")]
    site.simulator._state.ownership.release(bundles[0])
    site.simulator._state.ownership.give(bundles[0], broker)


@pytest.mark.parametrize("crashes", [False, True], ids=["at once", "after a crash"])
def test_a_policy_that_is_lost_at_the_same_moment_is_a_fault(seeing: Seeing, *, crashes: bool) -> None:
    """Brokers write all policies as one: another one that is gone stops the batch, and is told with its text."""
    site = seeing.site
    site.policy = wanting(FIRST_TWO, guards={"least_brokers": 1})
    somebody_sets(site, "other", OTHER)
    plan = the_plan(seeing)
    site.approve(plan, run=RUN)

    def lose(call: Call) -> None:
        if "namespaceIsolationPolicies" in call.path:
            somebody_deletes(site, "other")

    if crashes:
        crash(site, plan, after="POST")
        somebody_deletes(site, "other")
    first, *rest = site.carry_out(plan, after=None if crashes else lose)
    assert (first.outcome, policies(site)) == ("done", {"shop": GROUP})
    assert rest
    assert {each.outcome for each in rest} == {"refused"}
    with site.context() as context:
        proof = verify(context, plan.plan_id, "b1")
    assert not proof.proved
    text = msgspec.json.encode(OTHER).decode()
    for reason in (first.reason, proof.reason):
        assert "the isolation policy other, which was there right before the call, is lost" in reason
        assert text in reason


def test_a_policy_that_is_lost_with_a_call_of_unknown_effect_is_told(seeing: Seeing) -> None:
    """A call that may have had an effect may have cost another policy as well."""
    site = seeing.site
    site.policy = wanting(FIRST_TWO, guards={"least_brokers": 1})
    somebody_sets(site, "other", OTHER)
    plan = the_plan(seeing)
    site.approve(plan, run=RUN)
    crash(site, plan, after="POST")
    for name in ("other", "shop"):
        somebody_deletes(site, name)
    first, *_ = site.carry_out(plan)
    assert first.outcome == "unknown"
    assert "the isolation policy other, which was there right before the call, is lost" in first.reason


def test_a_look_that_fails_stops_the_batch(seeing: Seeing) -> None:
    """Whether another policy is lost is not known: that is said and not called harm, and no move follows."""
    site, plan = seeing.site, the_plan(seeing)
    odd = Answer(200, "a text in place of a policy")

    def blind(call: Call) -> None:
        if "namespaceIsolationPolicies" in call.path:  # the change itself is seen, and the next look fails
            for effect in (Delay(0), odd):
                site.simulator.faults.add(Fault(effect, path="namespaceIsolationPolicies", method="GET"))

    site.approve(plan, run=RUN)
    first, *moves = site.carry_out(plan, after=blind)
    assert (first.outcome, {each.outcome for each in moves}) == ("done", {"refused"})
    unknown = "whether the call changed anything else cannot be looked at"
    assert unknown in first.reason
    site.simulator.faults.add(Fault(odd, path="namespaceIsolationPolicies", times=None))
    with site.context() as context:
        proof = verify(context, plan.plan_id, "b1")
    assert (proof.proved, unknown in proof.reason) == (False, True)
    assert "harm" not in proof.reason
    assert "drifted" not in proof.reason


@pytest.mark.parametrize("after", [somebody_sets, None], ids=["changed", "lost"])
def test_other_policies_are_looked_at_in_the_end(site: Worksite, after: Any) -> None:
    """One that somebody changed is said and no fault; one that is gone by then is a fault."""
    site.policy = wanting(FIRST_TWO, guards={"least_brokers": 1})
    somebody_sets(site, "other", OTHER)
    plan = site.approved(setting())
    assert said(site.carry_out(plan)) == ["done"]
    if after:
        after(site, "other", msgspec.structs.replace(OTHER, auto_failover_policy=Failover(FailoverLimits("1", "80"))))
    else:
        somebody_deletes(site, "other")
    with site.context() as context:
        proof = verify(context, plan.plan_id, "b1")
    assert proof.proved is bool(after)
    expected = "meanwhile the isolation policy other" if after else "b1.s01 drifted: the isolation policy other"
    assert expected in proof.reason


def test_moves_are_refused_before_their_policy(seeing: Seeing) -> None:
    """Moves whose policy was not approved are refused: each waits for it."""
    plan = the_plan(seeing)
    moves = [step.step_id for step in plan.batches[0].steps[1:]]
    assert set(seeing.carry_out(plan, *moves)) == {"refused"}
    assert policies(seeing.site) == {}


def test_brokers_without_the_scope_are_refused(tmp_path: Path) -> None:
    """A version that would unload all namespaces at once gets no policy, and the reason says what to do."""
    spec = replace(SPEC, versions=("3.0.6",))
    with a_worksite(tmp_path, spec, policy=wanting(FIRST_TWO)) as site:
        (outcome,) = site.carry_out(site.approved(setting()))
        assert (outcome.outcome, site.changes()) == ("refused", [])
        assert "Pulsar 3.0.6 has no `unload_scope`" in outcome.reason
        assert "upgrade the brokers" in outcome.reason


def test_a_policy_is_deleted_on_brokers_without_the_scope(tmp_path: Path) -> None:
    """A deletion unloads nothing on any version; that it could not be undone there is said before."""
    spec = replace(SPEC, versions=("3.0.6",))
    with a_worksite(tmp_path, spec, policy=wanting()) as site:
        somebody_sets(site, "shop", GROUP)
        deletion = setting(None, before=GROUP)
        (outcome,) = site.carry_out(site.approved(a_step(deletion, undo=deletion.inverse, reach=site.reach(deletion))))
        assert (outcome.outcome, policies(site)) == ("done", {})


def test_an_undo_that_guards_would_refuse_is_not_promised(seeing: Seeing) -> None:
    """Where the former policy left its namespaces no broker, the request says why not, and how a person does it."""
    site = seeing.site
    somebody_sets(site, "shop", replace_primary(r"127\.0\.0\.9"))
    plan = the_plan(seeing)
    step = plan.batches[0].steps[0]
    why = "group_brokers: the group holds no running broker"
    assert step.undo is None
    assert why in step.undo_note
    assert r"By hand: Set it to shop/.* on 127\.0\.0\.9 (2 at least), with `--unload-scope none`" in step.undo_note
    assert "By hand: set the former policy" in decision_of(plan, plan.batches[0], site.policy).undo
    assert set(seeing.carry_out(plan)) == {"done"}
    with pytest.raises(Refused, match=why):
        back_of(site, plan)


def test_an_undo_that_guards_let_pass_is_promised(seeing: Seeing) -> None:
    """The deletion of a new policy, at planning, and the new policy once more, in the request of its rollback."""
    site = seeing.site
    plan = the_plan(seeing)
    assert plan.batches[0].steps[0].undo == setting().inverse
    assert set(seeing.carry_out(plan)) == {"done"}
    assert [step.undo for step in back_of(site, plan).batches[0].steps] == [setting()]
    site.policy = wanting(partition_ceiling={"warning_topics_per_broker": 5, "critical_topics_per_broker": 9})
    (step,) = back_of(site, plan).batches[0].steps
    assert step.undo is None
    assert "group_room" in step.undo_note


def test_moves_alone_are_nothing_to_take_back(seeing: Seeing) -> None:
    """Moves to a group that stands are not offered to a rollback, which would refuse them."""
    site = seeing.site
    somebody_sets(site, "shop", GROUP)
    plan, _ = seeing.observe()
    assert set(seeing.carry_out(plan)) == {"done"}
    applied = what_was_done(site.ledger, plan.plan_id, "b1")
    assert not applied.can_be_rolled_back
    moves = len(plan.batches[0].steps)
    assert applied.words.endswith(f"{moves} cannot be undone, nothing left to take back")
    with pytest.raises(Refused, match="nothing of batch b1"):
        back_of(site, plan)


def test_moves_end_with_their_group(seeing: Seeing) -> None:
    """A move is for a group whose policy stands: once somebody deletes it, or nobody wants it, nothing is moved."""
    site = seeing.site
    somebody_sets(site, "shop", GROUP)
    plan, _ = seeing.observe()
    assert not any(isinstance(step.change, SetIsolation) for step in plan.batches[0].steps)
    somebody_deletes(site, "shop")
    before = owners(site, "shop/orders")
    assert set(seeing.carry_out(plan)) == {"drifted"}
    assert owners(site, "shop/orders") == before


def test_moves_stop_where_the_policy_goes_meanwhile(seeing: Seeing) -> None:
    site = seeing.site
    plan = the_plan(seeing)
    site.approve(plan, run=RUN)

    def delete_after_the_first_move(call: Call) -> None:
        if "unload" in call.path and "shop" in policies(site):
            somebody_deletes(site, "shop")

    outcomes = said(site.carry_out(plan, after=delete_after_the_first_move))
    assert outcomes[:2] == ["done", "done"]
    assert "done" not in outcomes[2:]


@pytest.mark.parametrize(
    ("group", "draining", "words"),
    [
        ({"primary": [r"127\.0\.0\.[123]"]}, (), "1 running broker would be left to news/all"),
        ({}, (2, 3), "0 running brokers would be left to news/all"),
        ({"namespaces": ["shp/.*"]}, (), "no namespace is in the group"),
    ],
    ids=["one is left", "those left are draining", "nobody's"],
)
def test_a_group_that_would_hurt_others_is_refused(
    site: Worksite, group: dict[str, Any], draining: tuple[int, ...], words: str
) -> None:
    """Whoever is left one broker is without any at its next restart, and a draining broker is none."""
    wanted = {**FIRST_TWO, **group}
    drained = [site.brokers[number] for number in draining]
    site.policy = quick_policy(brokers={"groups": [wanted], "draining": drained})
    (refused,) = site.carry_out(site.approved(setting(site.policy.brokers.groups[0].isolation)))
    assert f"group_brokers: {words}" in refused.reason
    assert policies(site) == {}


def test_a_group_that_comes_back_has_room(site: Worksite) -> None:
    """A rollback of a rollback keeps namespaces to fewer brokers again, so their room is looked at."""
    plan = site.approved(setting())
    site.carry_out(plan)
    back = site.approve(back_of(site, plan), run="pulsar_rollback/manual/1")
    site.carry_out(back, "pulsar_rollback/manual/1")
    limits = {"warning_topics_per_broker": 5, "critical_topics_per_broker": 9}
    site.policy = wanting(partition_ceiling=limits)
    with pytest.raises(Refused, match="group_room"):
        back_of(site, back)


def test_a_group_of_an_idle_namespace_stops_no_planning(tmp_path: Path) -> None:
    """No bundle of it is loaded: its policy is proposed, and nothing is moved."""
    spec = replace(SPEC, namespaces=(*SPEC.namespaces, NamespaceSpec("idle/ns", bundles=4)))
    with a_worksite(tmp_path, spec, policy=wanting({**FIRST_TWO, "namespaces": ["idle/.*"]})) as site:
        plan, _ = Seeing(site, tmp_path / "snapshots", (BROKER_GROUP,)).observe()
    (step,) = plan.batches[0].steps
    assert isinstance(step.change, SetIsolation)


def test_heartbeats_of_brokers_are_of_no_group(tmp_path: Path) -> None:
    """A group of all namespaces moves none of them; its batch is proved, and nothing is found outside of it then."""
    with a_worksite(tmp_path, SPEC, policy=wanting({**FIRST_TWO, "namespaces": [".*"]})) as site:
        seeing = Seeing(site, tmp_path / "snapshots", (BROKER_GROUP,))
        beats = {broker: heartbeats(site, broker) for broker in site.brokers}
        assert all(beats.values())
        assert set(seeing.carry_out(the_plan(seeing))) == {"done"}
        assert {broker: heartbeats(site, broker) for broker in site.brokers} == beats
        plan, found = seeing.observe()
        assert (plan.batches, found) == ((), {})


def heartbeats(site: Worksite, broker: str) -> list[str]:
    """Bundles of a broker that hold the namespaces in which brokers check themselves."""
    return sorted(name for name in site.simulator.owned_bundles()[broker] if f"{broker}/" in name)


def test_a_namespace_that_only_other_clusters_serve_is_no_drift(tmp_path: Path) -> None:
    """What matches is the same at planning and right before the call, also in a shared configuration store."""
    far = NamespaceSpec("shop/far", bundles=4, policies={"replication_clusters": ["west"]})
    spec = replace(SPEC, namespaces=(*SPEC.namespaces, far))
    with a_worksite(tmp_path, spec, policy=wanting(FIRST_TWO)) as site:
        seeing = Seeing(site, tmp_path / "snapshots", (BROKER_GROUP,))
        assert set(seeing.carry_out(the_plan(seeing))) == {"done"}
