"""Each guard lets a step pass and vetoes one; all are asked in order, of every kind of change or not with a reason."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest

from pulsar_steward.changes import kind_of
from pulsar_steward.guards.bundles import Boundaries, Clients, Cooldown, Owner
from pulsar_steward.guards.evaluate import GUARDS, evaluate, guards_of, objection_to
from pulsar_steward.guards.every_change import Protected
from pulsar_steward.guards.in_flight import with_messages_in_flight
from pulsar_steward.guards.kinds import Guard, Objection
from pulsar_steward.guards.targets import TargetActive, TargetAllowed
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.step import (
    AddPartitions,
    Change,
    ChangeSetting,
    DeleteSubscription,
    RaiseCoordinators,
    SetIsolation,
    SplitBundle,
    Step,
    Touched,
    UnloadBundle,
)
from tests.builders import NOW, Seen, a_look, a_move, a_policy, a_split, a_step, broker
from tests.cases import cases, row_by_row
from tests.unit.changes.test_kinds import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator


MOVE, SPLIT = a_move(), a_split()
TWENTY_MINUTES = a_policy(tc_skew={"cooldown_minutes": 20})
NO_REST = a_policy(tc_skew={"cooldown_minutes": 0})
TWO_CLIENTS = a_policy(apply={"most_clients_per_step": 2})
THREE_CLIENTS = a_policy(apply={"most_clients_per_step": 3})
DRAINING_1 = a_policy(brokers={"draining": (broker(1),)})
DRAINING_0 = a_policy(brokers={"draining": (broker(0),)})


def moved(minutes_ago: float) -> Seen:
    """A bundle that was moved so long ago, under a rest of twenty minutes."""
    return a_look(moved_at=NOW - timedelta(minutes=minutes_ago), policy=TWENTY_MINUTES)


def protecting(*namespaces: str) -> Seen:
    return a_look(policy=a_policy(apply={"protected_namespaces": namespaces}))


ONLY_ON_2 = a_look(allowed_brokers=frozenset({broker(2)}))
PASSES: list[tuple[Guard, Change, Seen, str]] = [
    (Boundaries(), MOVE, a_look(), "has a bundle 0x00000000_0x10000000"),
    (Owner(), MOVE, a_look(), "broker-00:8080 owns it"),
    (Owner(), SPLIT, a_look(), "broker-00:8080 owns it"),
    (TargetActive(), MOVE, a_look(), "broker-01:8080 is active"),
    (TargetAllowed(), MOVE, a_look(), "broker-01:8080 is not draining"),
    (TargetAllowed(), MOVE, a_look(allowed_brokers=frozenset({broker(1)})), "policies leave it to pulsar/system"),
    (TargetAllowed(), MOVE, a_look(policy=DRAINING_0), "broker-01:8080 is not draining"),
    (Cooldown(), MOVE, a_look(), "not moved lately"),
    (Cooldown(), MOVE, moved(minutes_ago=20), "rested until 2026-03-01 12:00:00 UTC"),
    (Cooldown(), MOVE, a_look(moved_at=NOW, policy=NO_REST), "rested until 2026-03-01 12:00:00 UTC"),
    (Clients(), MOVE, a_look(policy=THREE_CLIENTS), "3 clients would reconnect, at most 3"),
    (Protected(), MOVE, protecting("tenant/system"), "pulsar/system is not protected"),
]
VETOES: list[tuple[Guard, Change, Seen, str]] = [
    (Boundaries(), MOVE, a_look(has_bundle=False), "no bundle 0x00000000_0x10000000 any more"),
    (Boundaries(), SPLIT, a_look(has_bundle=False), "no bundle 0x00000000_0x10000000 any more"),
    (Owner(), MOVE, a_look(owner=broker(2)), "broker-02:8080 owns it, not broker-00:8080"),
    (Owner(), SPLIT, a_look(owner=broker(2)), "broker-02:8080 owns it, not broker-00:8080"),
    (Owner(), MOVE, a_look(owner=None), "nobody owns it"),
    (TargetActive(), MOVE, a_look(active=frozenset({broker(0)})), "is not active or did not answer"),
    (TargetActive(), MOVE, a_look(owner=broker(1)), "broker-01:8080 owns it already"),
    (TargetAllowed(), MOVE, a_look(policy=DRAINING_1), "broker-01:8080 is draining (policy key brokers.draining)"),
    (TargetAllowed(), MOVE, ONLY_ON_2, "an isolation policy keeps pulsar/system from"),
    (Cooldown(), MOVE, moved(minutes_ago=19), "moved at 2026-03-01 11:41:00, rests until 2026-03-01 12:01:00 UTC"),
    (Cooldown(), SPLIT, moved(minutes_ago=0), "rests until 2026-03-01 12:20:00 UTC"),
    (Clients(), MOVE, a_look(policy=TWO_CLIENTS), "3 clients would reconnect, more than 2"),
    (Clients(), SPLIT, a_look(policy=TWO_CLIENTS), "3 clients would reconnect, more than 2"),
    (Protected(), MOVE, protecting("a/b", TC_NAMESPACE), "is protected (policy key apply.protected_namespaces)"),
    (Protected(), SPLIT, protecting(TC_NAMESPACE), "is protected (policy key apply.protected_namespaces)"),
]


def named(value: object) -> str | None:
    """A guard's name for a test's id; pytest numbers the rest."""
    return getattr(value, "name", None)


@pytest.mark.parametrize(("guard", "change", "seen", "reason"), PASSES, ids=named)
def test_passes(guard: Guard, change: Change, seen: Seen, reason: str) -> None:
    """A guard that has nothing against a step says what it looked at."""
    result = guard.check(a_step(change), *seen)
    assert (result.guard, result.passed) == (guard.name, True)
    assert reason in result.reason


@pytest.mark.parametrize(("guard", "change", "seen", "reason"), VETOES, ids=named)
def test_vetoes(guard: Guard, change: Change, seen: Seen, reason: str) -> None:
    result = guard.check(a_step(change), *seen)
    assert (result.guard, result.passed) == (guard.name, False)
    assert reason in result.reason


OF_ANY = ["same_cluster", "fresh_snapshot", "whole_cluster", "version_tried", "proved_first"]
OF_TARGETS = ["target_active", "target_allowed", "anti_affinity", "shedding"]
OF_BUNDLES = ["boundaries", "owner", *OF_TARGETS, "cooldown", "circles", "clients"]
RISKS = ["producers_return", "ack_holes", "volatile_topics", "delayed_index", "replication_kept"]
IN_ORDER = [*OF_ANY, *OF_BUNDLES, *RISKS, "window", "limits", "protected"]
STRICT = a_policy(
    brokers={"draining": (broker(1),)}, apply={"most_clients_per_step": 0, "protected_namespaces": ("pulsar/system",)}
)
GONE: dict[str, Any] = {"has_bundle": False, "owner": None}


@pytest.mark.parametrize("change", [a_move(), a_split()])
@pytest.mark.parametrize("seen", [a_look(), a_look(**GONE, policy=STRICT, active=frozenset())])
def test_every_guard_answers_in_order(change: Change, seen: Seen) -> None:
    """All guards of moves and splits check a step in a fixed order, also when some of them veto it."""
    expected = [name for name in IN_ORDER if isinstance(change, UnloadBundle) or name not in OF_TARGETS]
    assert [result.guard for result in evaluate(a_step(change), *seen)] == expected


def test_names_are_unique() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)


@row_by_row(
    "seen, objection, guards",
    (a_look(has_bundle=False), Objection.DRIFTED, ["boundaries"]),
    (a_look(**GONE), Objection.DRIFTED, ["boundaries", "owner"]),
    (a_look(owner=broker(1)), Objection.DRIFTED, ["owner", "target_active"]),
    (a_look(policy=STRICT), Objection.REFUSED, ["target_allowed", "clients", "protected"]),
    (a_look(**GONE, policy=STRICT), Objection.DRIFTED, ["boundaries", "owner"]),
)
def test_objection_with_all_its_reasons(seen: Seen, objection: Objection, guards: list[str]) -> None:
    found = objection_to(a_step(), *seen)
    assert found is not None
    assert found[0] is objection
    assert [reason.partition(": ")[0] for reason in found[1].split("; ")] == guards


@cases(
    "namespace, consumers, largest_batch, room",
    ("consumers", "shop/orders", 3, 1_000, 10_000),
    ("nobody", "shop/orders", 0, 1_000, 0),
    ("nobody batches", "shop/orders", 3, 1, 0),
    ("coordinators", TC_NAMESPACE, 3, 1_000, 0),
)
def test_room_is_left_where_a_batch_may_be_open_at_another_moment(
    namespace: str, consumers: int, largest_batch: int, room: int
) -> None:
    facts, policy = a_look(a_policy(guards={"largest_batch_messages": largest_batch}))
    touched = Touched(producers=0, consumers=consumers, topics=1, coordinators=0)
    step = msgspec.structs.replace(a_step(a_move(namespace=namespace)), touched=touched)
    assert with_messages_in_flight(step, facts, policy).moving_messages.again == room


PAGE = Path(__file__).parents[3] / "docs" / "guards.md"
NAMES: dict[type[Change], str] = {
    UnloadBundle: "moves",
    SplitBundle: "splits",
    ChangeSetting: "settings",
    RaiseCoordinators: "coordinators",
    SetIsolation: "isolation",
    AddPartitions: "partitions",
    DeleteSubscription: "subscriptions",
}


def steps() -> Iterator[Step]:
    """A step of each kind, and its rollback where it can have one."""
    for change in EXAMPLES:
        step = a_step(change)
        if isinstance(change, UnloadBundle):  # as one for a group of brokers, of which more is asked
            step = msgspec.structs.replace(step, group="shop")
        yield step
        if kind_of(change).undoable:
            yield msgspec.structs.replace(step, undoes="p1/b1.s01")


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_judges_every_step_that_it_does_not_refuse_to_look_at(guard: Guard) -> None:
    """Each guard returns a result for each kind of change, and for its rollback, of which it does not say why not."""
    judged = [guard.check(step, *a_look()) for step in steps() if guard in guards_of(step)]
    assert judged, f"{guard.name} is asked of nothing"
    assert {result.guard for result in judged} == {guard.name}


def test_only_what_is_said_to_be_left_out_is_left_out() -> None:
    for step in steps():
        aspects = kind_of(step.change).aspects
        expected = {
            guard
            for guard in GUARDS
            if guard.aspect in {None, *aspects} and not (step.undoes and guard.not_asked_of_rollbacks)
        }
        assert set(guards_of(step)) == expected


def test_a_value_goes_to_no_second_cluster_on_its_way_back() -> None:
    """Rollbacks of settings are held against other clusters, clocks and delays like the changes themselves."""
    (back,) = (step for step in steps() if step.undoes and isinstance(step.change, ChangeSetting))
    assert {"one_cluster", "clocks", "longest_delay"} <= {guard.name for guard in guards_of(back)}


def table() -> str:
    """The table of guards.md: of what each guard is asked, and why not of the rest."""
    kinds = {NAMES[type(change)]: kind_of(change) for change in EXAMPLES}
    rows = [f"| guard | is about | {' | '.join(kinds)} | ahead | rollbacks |", "|---|---|" + "---|" * (len(kinds) + 2)]
    for guard in GUARDS:
        asked = [kind for kind in kinds.values() if guard.aspect in {None, *kind.aspects}]
        cells = ["yes" if kind in asked else "no" for kind in kinds.values()]
        cells.append("yes" if guard.ahead else "no")
        rollbacks = f"no: {guard.not_asked_of_rollbacks}" if guard.not_asked_of_rollbacks else "yes"
        cells.append(rollbacks if any(kind.undoable for kind in asked) else "there are none")
        rows.append(f"| `{guard.name}` | {guard.aspect or 'every change'} | {' | '.join(cells)} |")
    return "\n".join(rows)


def test_the_document_shows_the_table() -> None:
    assert set(NAMES) == set(get_args(Change))
    assert table() in PAGE.read_text(encoding="utf-8"), f"write this into docs/guards.md:\n{table()}"
