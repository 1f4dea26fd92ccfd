"""The way back: a plan of its own, asked about and carried out as any other, that leaves alone what others changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from lab.simulator import Answer, Fault
from pulsar_steward.apply.applied import applied_batches, choose_applied, what_was_done
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.precheck import rehearse
from pulsar_steward.apply.rollback import rollback_plan
from pulsar_steward.apply.verify import verify
from pulsar_steward.changes import kind_of
from pulsar_steward.errors import NotInLedger, Refused
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, Touched
from pulsar_steward.pulsar import calls
from tests.apply.refusals import assert_refused, assert_stopped
from tests.apply.worksite import RUN, permitted, quick_policy, said
from tests.builders import CLUSTER, a_step

if TYPE_CHECKING:
    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Change, Step
    from pulsar_steward.pulsar.calls import Call
    from tests.apply.worksite import Worksite
    from tests.golden import Golden

BACK = "pulsar_rollback/manual/0"
GIB = 1 << 30
NAMESPACE = "shop/orders"
QUOTA = BacklogQuota(limit_bytes=GIB, policy=QuotaPolicy.HOLD)
OTHER_QUOTA = BacklogQuota(limit_bytes=2 * GIB, policy=QuotaPolicy.HOLD)
KEPT = Retention(minutes=1440, megabytes=10_240)


def setting(name: SettingName, after: Setting | None, before: Setting | None = None) -> ChangeSetting:
    return ChangeSetting(namespace=NAMESPACE, name=name, before=before, after=after)


RAISED = setting(SettingName.RETENTION, KEPT)
LIMITED = setting(SettingName.SIZE_QUOTA, QUOTA)
SHORTENED = setting(SettingName.TTL, TimeToLive(seconds=600), TimeToLive(seconds=7200))


def to_nothing(change: ChangeSetting) -> ChangeSetting:
    """The change that removes the setting again, in a cluster whose brokers have no default."""
    return msgspec.structs.replace(change.inverse, inherited=None)


def brokers_default(site: Worksite, **configuration: str) -> None:
    """Gives all brokers these settings, as an operator would who restarts them."""
    site.simulator._loop.call(site.simulator._state.configuration.update, configuration)


def own(site: Worksite, change: ChangeSetting) -> Setting | None:
    """Value that is set there, by the brokers' word."""
    with site.context() as context:
        return context.reader.own_setting(change)


def somebody_sets(site: Worksite, change: ChangeSetting) -> None:
    """Changes a setting as another tool would, with nothing in the ledger."""
    with site.context() as context:
        context.writer.send(calls.set_to(change.holder, change.name, change.after), permitted)


def done(site: Worksite, *steps: Change | Step) -> Plan:
    """A plan that was approved and carried out."""
    plan = site.approved(*steps)
    assert set(said(site.carry_out(plan))) == {"done"}
    site.simulator.requests.clear()
    return plan


def settings_done(site: Worksite) -> Plan:
    """A retention, a quota that needs it, and a time to live in place of another one."""
    somebody_sets(site, SHORTENED.inverse)
    steps = (
        a_step(RAISED, step_id="b1.s01"),
        a_step(LIMITED, step_id="b1.s02", after=("b1.s01",)),
        a_step(SHORTENED, step_id="b1.s03"),
    )
    return done(site, *steps)


def back_of(site: Worksite, plan: Plan) -> Plan:
    """The plan that takes the only batch of a plan back, recorded."""
    with LiveReader(site.settings) as look:
        applied = what_was_done(site.ledger, plan.plan_id, "b1")
        back = rollback_plan(site.ledger, look, site.policy, applied, site.clock())
    site.writes.record_plan(back, site.clock(), policy=site.policy)
    return back


def take_back(site: Worksite, plan: Plan) -> tuple[StepOutcome, ...]:
    """Approves the way back of a plan, and carries it out."""
    back = site.approve(back_of(site, plan), run=BACK)
    return site.carry_out(back, BACK)


def test_settings_return_to_what_they_were_the_last_first(site: Worksite) -> None:
    """A rollback restores former values in reverse order, and removes settings that were not set before."""
    back = back_of(site, settings_done(site))
    assert [step.change for step in back.batches[0].steps] == [
        SHORTENED.inverse,
        to_nothing(LIMITED),
        to_nothing(RAISED),
    ]
    assert [step.after for step in back.batches[0].steps] == [(), (), ("b1.s02",)]
    assert said(site.carry_out(site.approve(back, run=BACK), BACK)) == ["done"] * 3
    assert [own(site, change) for change in (RAISED, LIMITED, SHORTENED)] == [None, None, TimeToLive(seconds=7200)]
    with site.context(BACK) as context:
        assert verify(context, back.plan_id, "b1").proved


def test_a_way_back_says_what_it_takes_back_and_has_itself_one(site: Worksite, golden: Golden) -> None:
    plan = settings_done(site)
    answer = site.ledger.answers(plan.plan_id, "b1")[0]
    back = back_of(site, plan)
    batch = back.batches[0]
    step = batch.steps[1]
    assert batch.kind == ROLLBACK
    answered = f"{answer.answered_at:%Y-%m-%d %H:%M:%S} UTC"
    golden(batch.title.replace(plan.plan_id, "PLAN").replace(answered, "TIME"))
    assert (step.undoes, step.undo) == (f"{plan.plan_id}/b1.s02", to_nothing(LIMITED).inverse)
    golden(step.why.replace(plan.plan_id, "PLAN").partition(" at ")[0])
    golden(step.undo_note)
    assert {guard.passed for guard in step.guards} == {True}
    assert back.notes == ()
    assert back.policy_digest == site.policy.digest


def test_a_moved_bundle_returns_to_its_former_broker(site: Worksite) -> None:
    """A rollback moves a bundle back at once, without a cooldown, and counts the bundle's clients anew."""
    back = back_of(site, done(site, site.move("0x00000000_0xffffffff", namespace=NAMESPACE)))
    assert back.batches[0].steps[0].touched == Touched(producers=4, consumers=6, topics=2, coordinators=0)
    assert said(site.carry_out(site.approve(back, run=BACK), BACK)) == ["done"]
    assert site.owner("0x00000000_0xffffffff", NAMESPACE) == site.brokers[0]


def test_a_bundle_that_went_a_detour_returns_to_where_it_was_first(site: Worksite) -> None:
    detours: list[Call] = []

    def lands_elsewhere(call: Call) -> None:
        if call.method == "PUT" and not detours:
            detours.append(call)
            site.simulator.pile_up_tcs(site.brokers[2])

    plan = site.approved(site.move(0))
    assert said(site.carry_out(plan, after=lands_elsewhere)) == ["done"]
    assert [intent.before["owner"] for intent in site.ledger.intents(plan.plan_id, "b1")] == [
        site.brokers[0],
        site.brokers[2],
    ]
    step = back_of(site, plan).batches[0].steps[0]
    assert step.change == msgspec.structs.replace(site.move(0), source=site.brokers[1], target=site.brokers[0])
    assert step.touched.coordinators > 0


def test_what_somebody_changed_since_is_left_alone_and_the_difference_told(site: Worksite, golden: Golden) -> None:
    plan = settings_done(site)
    somebody_sets(site, setting(SettingName.SIZE_QUOTA, OTHER_QUOTA))
    back = back_of(site, plan)
    assert [step.change for step in back.batches[0].steps] == [SHORTENED.inverse]
    note, needed = back.notes
    golden(note)
    assert needed == "b1.s01: it stays, as steps that depend on it are not rolled back: b1.s02"


LONGER = setting(SettingName.TTL, TimeToLive(seconds=8 * 86_400))
TEN_GIB = str(10 * GIB)

DEFAULTS: dict[str, tuple[ChangeSetting, dict[str, str], bool, str]] = {
    "a time to live that takes messages": (
        LONGER,
        {"ttlDurationDefaultInSeconds": "86400"},
        True,
        "LETS BROKERS DELETE MESSAGES",
    ),
    "a longer one": (LONGER, {"ttlDurationDefaultInSeconds": "864000"}, False, ""),
    "none": (LONGER, {}, False, ""),
    "a quota that evicts": (
        setting(SettingName.SIZE_QUOTA, BacklogQuota(limit_bytes=50 * GIB, policy=QuotaPolicy.EVICT)),
        {"backlogQuotaDefaultLimitBytes": TEN_GIB, "backlogQuotaDefaultRetentionPolicy": "consumer_backlog_eviction"},
        True,
        "LETS BROKERS DELETE MESSAGES",
    ),
    "a quota that stops producers": (
        setting(SettingName.SIZE_QUOTA, BacklogQuota(limit_bytes=50 * GIB, policy=QuotaPolicy.HOLD)),
        {"backlogQuotaDefaultLimitBytes": TEN_GIB, "backlogQuotaDefaultRetentionPolicy": "producer_request_hold"},
        False,
        "stops producers of topics over the new limit",
    ),
    "a retention as long": (
        RAISED,
        {"defaultRetentionTimeInMinutes": "1440", "defaultRetentionSizeInMB": "-1"},
        False,
        "",
    ),
    "no retention": (RAISED, {}, True, "LETS BROKERS DELETE MESSAGES"),
}


@pytest.mark.parametrize(("change", "configuration", "loses", "headline"), DEFAULTS.values(), ids=DEFAULTS)
def test_what_applies_once_a_setting_is_removed_counts_as_if_it_were_set(
    site: Worksite, change: ChangeSetting, configuration: dict[str, str], headline: str, *, loses: bool
) -> None:
    brokers_default(site, **configuration)
    (step,) = back_of(site, done(site, change)).batches[0].steps
    kind = kind_of(step.change)
    warning = kind.warning(step)
    assert (kind.loses_messages, warning.headline if warning else "") == (loses, headline)
    assert (" applies)" in kind.describe()) is bool(configuration)


def test_a_default_that_changes_between_approval_and_call_is_drifted(site: Worksite) -> None:
    """A rollback to no setting is not carried out under another default than the approved one."""
    brokers_default(site, ttlDurationDefaultInSeconds="864000")
    back = site.approve(back_of(site, done(site, LONGER)), run=BACK)
    brokers_default(site, ttlDurationDefaultInSeconds="60")
    site.simulator.requests.clear()
    assert_stopped(site, back, "drifted", "the time to live is 1 min, no longer 10 d", run=BACK)


def test_a_bundle_that_somebody_moved_on_is_left_where_it_is(site: Worksite, golden: Golden) -> None:
    """A rollback of a bundle that was moved since is refused, and the reason names its present and former owners."""
    plan = done(site, site.move(0))
    site.simulator.pile_up_tcs(site.brokers[2])
    with pytest.raises(Refused) as refused:
        back_of(site, plan)
    words = str(refused.value).replace(plan.plan_id, "PLAN")
    for number, broker in enumerate(site.brokers):
        words = words.replace(broker, f"BROKER-{number}")
    golden(words)


def test_a_split_stays_and_its_halves_return(site: Worksite, golden: Golden) -> None:
    plan = site.approve(site.split_and_moves())
    site.carry_out(plan)
    back = back_of(site, plan)
    (note,) = back.notes
    golden(note)
    assert [step.undoes for step in back.batches[0].steps] == [f"{plan.plan_id}/b1.s03", f"{plan.plan_id}/b1.s02"]
    assert said(site.carry_out(site.approve(back, run=BACK), BACK)) == ["done", "done"]
    assert {site.owner(half) for half in site.split(0).halves} == {site.brokers[0]}


def test_a_rejected_way_back_changes_nothing(site: Worksite) -> None:
    back = back_of(site, settings_done(site))
    site.simulator.requests.clear()
    for run in (RUN, BACK):
        with pytest.raises(Refused, match="holds no answer"):
            site.carry_out(back, run)
    site.approve(back, run=BACK, decision=Decision.REJECTED, step_ids=(), digest=None, expires_at=None)
    assert_refused(site, back, "rejected", run=BACK)


def test_what_was_taken_back_is_not_taken_back_twice(site: Worksite) -> None:
    plan = settings_done(site)
    assert said(take_back(site, plan)) == ["done"] * 3
    somebody_sets(site, RAISED)
    with pytest.raises(Refused, match=r"b1\.s01: taken back already, by plan"):
        back_of(site, plan)


def test_a_way_back_can_be_taken_back_and_then_taken_once_more(site: Worksite) -> None:
    plan = done(site, RAISED)
    first = site.approve(back_of(site, plan), run=BACK)
    site.carry_out(first, BACK)
    assert said(take_back(site, first)) == ["done"]
    assert own(site, RAISED) == KEPT
    assert said(take_back(site, plan)) == ["done"]
    assert own(site, RAISED) is None


def test_of_a_half_done_batch_only_what_is_done_is_taken_back(site: Worksite) -> None:
    site.simulator.faults.add(Fault(Answer(500, "broken"), path="backlogQuota", method="POST"))
    plan = site.approved(RAISED, LIMITED, setting(SettingName.TTL, TimeToLive(seconds=600)))
    assert said(site.carry_out(plan)) == ["done", "unknown", "refused"]
    back = back_of(site, plan)
    assert [step.change for step in back.batches[0].steps] == [to_nothing(RAISED)]
    (note,) = back.notes
    assert note.startswith("b1.s02 was called and is not known")
    assert "500 broken" in note


def test_a_bundle_whose_former_broker_is_gone_stays(site: Worksite) -> None:
    done(site, site.move(0))
    site.clock.advance(days=2)
    plan = done(site, msgspec.structs.replace(site.move(0, 2), source=site.brokers[1]))
    site.simulator.stop_broker(site.brokers[1])
    with pytest.raises(Refused, match=f"{site.brokers[2]}: its former broker {site.brokers[1]}"):
        back_of(site, plan)


def test_what_the_guards_object_to_is_not_proposed(site: Worksite) -> None:
    plan = done(site, site.move(0), RAISED)
    site.policy = quick_policy(brokers={"draining": (site.brokers[0],)})
    back = back_of(site, plan)
    assert [step.undoes for step in back.batches[0].steps] == [f"{plan.plan_id}/b1.s02"]
    assert back.notes[0].startswith("b1.s01: not proposed now, ")
    assert "target_allowed: " in back.notes[0]


def test_of_a_cluster_that_cannot_be_read_nothing_is_taken_back(site: Worksite) -> None:
    plan = settings_done(site)
    site.simulator.faults.add(Fault(Answer(503, "away"), times=None))
    with pytest.raises(Refused, match=r"the cluster cannot be read: .*503 away"):
        back_of(site, plan)


def test_a_way_back_can_be_rehearsed(site: Worksite) -> None:
    """A dry run of a rollback prints its call, and does not object to a bundle that was just moved."""
    back = back_of(site, done(site, site.move(0)))
    with site.context() as context:
        text = rehearse(context, back, back.batches[0])
    call = f"PUT /admin/v2/namespaces/pulsar/system/{site.tc_bundles[0]}/unload?destinationBroker={site.brokers[0]}"
    assert call in text
    assert "would be" not in text
    assert site.untouched()


def test_the_batch_carried_out_last_is_meant_unless_another_is_named(site: Worksite) -> None:
    first, second = done(site, site.move(0)), done(site, RAISED)
    back = site.approve(back_of(site, second), run=BACK)
    site.carry_out(back, BACK)
    never = site.plan(LIMITED)

    def meant(plan_id: str | None = None, batch_id: str | None = None) -> str:
        return choose_applied(site.ledger, CLUSTER, plan_id, batch_id).plan_id

    assert [meant(), meant(first.plan_id), meant(back.plan_id, "b1")] == [second.plan_id, first.plan_id, back.plan_id]
    with pytest.raises(Refused, match=f"{never.plan_id} was carried out .*: plan {back.plan_id}"):
        meant(never.plan_id)
    with pytest.raises(Refused, match=f"batch b2 of plan {second.plan_id} was"):
        meant(batch_id="b2")
    with pytest.raises(Refused, match="for cluster 'east', not 'west'"):
        choose_applied(site.ledger, "west", first.plan_id, None)
    with pytest.raises(NotInLedger, match="nowhere"):
        meant("nowhere")


def test_what_was_carried_out_is_listed_with_what_is_left_of_it(site: Worksite) -> None:
    site.carry_out(site.approve(site.split_and_moves()))
    done(site, RAISED)
    take_back(site, done(site, LIMITED))
    lines = [each.words for each in applied_batches(site.ledger, CLUSTER)]
    assert [each.can_be_rolled_back for each in applied_batches(site.ledger, CLUSTER)] == [True, False, True, True]
    assert "Take back batch b1" in lines[0]
    assert "1 of 1 step done, 1 taken back" in lines[1]
    assert "batch b1, approved by operator at " in lines[2]
    assert lines[2].endswith("; 1 of 1 step done")
    assert lines[3].endswith("3 of 3 steps done, 1 cannot be undone")
