"""Names in a policy that stand for nothing in a cluster's last snapshots, and the notes of plans about them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.planners.unseen_names import SNAPSHOTS, unseen_names
from pulsar_steward.snapshots.read import Snapshot, open_snapshot
from tests.builders import a_policy, broker
from tests.unit.report_checkup.snapshots import META, Rows, meta, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

TABLES: dict[str, Rows] = {
    "namespaces": [{"namespace": name, "bundles": 4, "boundaries": []} for name in ("shop/orders", "Shop/Bills")],
    "topics": [
        {"topic": f"persistent://shop/orders/{name}", "namespace": "shop/orders"}
        for name in ("plain", "parted-partition-0", "parted-partition-1", "a+b")
    ],
    "subscriptions": [
        {"topic": "persistent://shop/orders/plain", "namespace": "shop/orders", "subscription": name}
        for name in ("audit-1", "billing")
    ],
}


def taken(folder: Path, number: int = 0, **changed: Rows) -> Snapshot:
    """Writes the snapshot of so many quarters of an hour later."""
    at = META["taken_at"] + timedelta(minutes=15 * number)
    place = folder / "cluster=east" / f"taken_at={at:%Y%m%dT%H%M%SZ}"
    return open_snapshot(written(place, **{**TABLES, "snapshot": meta(taken_at=at), **changed}))


def policy_with(key: str, *names: str) -> Any:
    section, _, field = key.partition(".")
    value: Any = list(names) if field else {name: {"subscription_stalled": {"warning_minutes": 2}} for name in names}
    return a_policy(**{section: {field: value} if field else value})


SEEN = {
    "apply.protected_namespaces": ("shop/orders", "shop/*", "*/orders", "*/*", "Shop/Bills"),
    "subscriptions.protected_topics": (
        "persistent://shop/orders/plain",
        "persistent://shop/orders/parted",
        "persistent://shop/orders/a+b",
        "persistent://*/*/pl*",
        "persistent://shop/orders/*",
    ),
    "subscriptions.protected_subscriptions": ("billing", "audit-*", "*"),
    "brokers.draining": (broker(0),),
    "guards.versions_tried_here": ("4.0", "4.0.7"),
    "tenants": ("shop", "Shop"),
    "namespaces": ("shop/orders",),
}
UNSEEN = {
    "apply.protected_namespaces": ("shop/order", "Shop/Orders", "shop/orders*x", "shop.orders/x"),
    "subscriptions.protected_topics": (
        "persistent://shop/orders/aab",
        "persistent://shop/orders/part",
        "persistent://shop/*/plain-*",
        "non-persistent://shop/orders/plain",
        "persistent://shop/bills/*",
    ),
    "subscriptions.protected_subscriptions": ("Billing", "audit", "*-2"),
    "brokers.draining": ("broker-7:8080",),
    "guards.versions_tried_here": ("4.1", "4.0.8"),
    "tenants": ("sho", "SHOP"),
    "namespaces": ("shop/bills",),
}


@pytest.mark.parametrize("key", SEEN)
def test_of_each_key_what_stands_for_nothing_is_found(tmp_path: Path, key: str) -> None:
    (found,) = unseen_names(taken(tmp_path), policy_with(key, *SEEN[key], *UNSEEN[key]))
    assert (found.key, found.names) == (key, tuple(sorted(UNSEEN[key])))
    assert unseen_names(taken(tmp_path, 1), policy_with(key, *SEEN[key])) == ()


def test_what_was_seen_lately_is_known(tmp_path: Path) -> None:
    """A name is known for as long as one of the last snapshots has it."""
    policy = policy_with("subscriptions.protected_topics", "persistent://shop/orders/plain")
    last = [taken(tmp_path, number, **({"topics": []} if number else {})) for number in range(SNAPSHOTS + 1)]
    told = [[each.snapshots for each in unseen_names(snapshot, policy)] for snapshot in last]
    assert told == [[]] * SNAPSHOTS + [[SNAPSHOTS]]
    taken(tmp_path, SNAPSHOTS + 1)
    assert unseen_names(taken(tmp_path, SNAPSHOTS + 2, topics=[]), policy) == ()  # though older ones lack it again


def test_every_plan_says_it(tmp_path: Path, golden: Golden) -> None:
    """A plan has a note for each key with such names, also where it proposes nothing, and the same one each time."""
    policy = a_policy(
        apply={"protected_namespaces": ["shop/ordres", "shop/orders", "acme/*"]}, brokers={"draining": ["b:8080"]}
    )
    facts = planning_facts_of(taken(tmp_path), policy, Moves())
    plan = make_plan(facts)
    assert plan.batches == ()
    golden("\n".join(plan.notes))
    assert make_plan(facts).encoded() == plan.encoded()


def test_a_partial_snapshot_proves_nothing_absent(tmp_path: Path, golden: Golden) -> None:
    """The sentence names what could not be read, where the name may be."""
    partial = taken(tmp_path, snapshot=meta(unread_brokers=[broker(2)]))
    (found,) = unseen_names(partial, policy_with("subscriptions.protected_subscriptions", "nightly"))
    golden(found.words)
