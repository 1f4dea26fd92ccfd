"""All guards together: none is left out, the order is fixed, and drift wins over refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.guards.evaluate import GUARDS, evaluate, objection_to
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.model.step import UnloadBundle
from tests.builders import Seen, a_look, a_move, a_policy, a_split, a_step, broker

if TYPE_CHECKING:
    from pulsar_steward.model.step import Change

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


@pytest.mark.parametrize("change", [a_move(), a_split()])
def test_no_objection(change: Change) -> None:
    """A step on a cluster that is still as it was planned for meets no objection."""
    assert objection_to(a_step(change), *a_look()) is None


@pytest.mark.parametrize(
    ("seen", "objection", "guards"),
    [
        (a_look(has_bundle=False), Objection.DRIFTED, ["boundaries"]),
        (a_look(**GONE), Objection.DRIFTED, ["boundaries", "owner"]),
        (a_look(owner=broker(1)), Objection.DRIFTED, ["owner", "target_active"]),
        (a_look(policy=STRICT), Objection.REFUSED, ["target_allowed", "clients", "protected"]),
        (a_look(**GONE, policy=STRICT), Objection.DRIFTED, ["boundaries", "owner"]),
    ],
)
def test_objection_with_all_its_reasons(seen: Seen, objection: Objection, guards: list[str]) -> None:
    found = objection_to(a_step(), *seen)
    assert found is not None
    assert found[0] is objection
    assert [reason.partition(": ")[0] for reason in found[1].split("; ")] == guards
