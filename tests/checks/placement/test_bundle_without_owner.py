"""Bundles that nobody owns though clients used them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement import bundle_without_owner
from pulsar_steward.model.finding import Severity
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows
    from tests.golden import Golden

STEP = timedelta(minutes=15)
ORDERS = "acme/orders"
WARNING = [(ORDERS, Severity.WARNING)]


def a_bundle(owner: str | None, clients: int = 0, **more: Any) -> dict[str, Any]:
    """A bundle at an owner, or at none, with the clients of its topics."""
    return {"owner": owner, "owner_known": True, "clients": clients} | more


def a_snapshot(
    bundles: Mapping[str, dict[str, Any]],
    steps_ago: float = 0,
    *,
    allowed: list[str] | None = None,
    namespace: str = ORDERS,
    unread: Sequence[str] = (),
    brokers: Sequence[str] = ("a:1", "b:1"),
) -> Rows:
    """A namespace with these bundles, each with a topic where it has an owner."""
    taken_at = NOW - steps_ago * STEP
    owned = {name: each for name, each in bundles.items() if each["owner"] is not None}
    return {
        "snapshot": [{"cluster": "east", "taken_at": taken_at, "unread_brokers": unread, "unread_namespaces": []}],
        "brokers": [{"broker": name, "read": name not in unread} for name in brokers],
        "namespaces": [{"namespace": namespace, "bundles": len(bundles), "allowed_brokers": allowed}],
        "bundles": [
            {"namespace": namespace, "bundle": name, "owner": each["owner"], "owner_known": each["owner_known"]}
            for name, each in bundles.items()
        ],
        "topics": [
            {
                "topic": f"persistent://{namespace}/{each.get('topic', f'in-{name}')}",
                "namespace": namespace,
                "bundle": name,
                "broker": each["owner"],
                "producers": each["clients"] // 2,
                "consumers": each["clients"] - each["clients"] // 2,
            }
            for name, each in owned.items()
        ],
    }


USED, IDLE, NOBODYS = a_bundle("a:1", 3), a_bundle("a:1"), a_bundle(None)
UNKNOWN = a_bundle(None, owner_known=False)


def judged(*bundles: dict[str, Any] | None, policy: Policy | None = None, step: float = 1, **now: Any) -> Judgement:
    """Returns the judgement of a bundle with these states in successive snapshots; None means that it was absent."""
    last = len(bundles) - 1
    there = [{} if each is None else {"0x0_0x8": each} for each in bundles]
    earlier = [a_snapshot(each, (last - number) * step) for number, each in enumerate(there[:-1])]
    return judge_rows(bundle_without_owner.CHECK, a_snapshot(there[-1], **now), policy, earlier[::-1])


def found_of(judgement: Judgement) -> list[tuple[str, Severity]]:
    return [(each.subject, each.severity) for each in judgement.findings]


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        ((USED, NOBODYS, NOBODYS), True),
        ((USED, NOBODYS, UNKNOWN, NOBODYS), True),
        ((USED, UNKNOWN, NOBODYS, NOBODYS), True),
        ((USED, NOBODYS), False),
        ((USED, UNKNOWN, NOBODYS), False),
        ((USED, NOBODYS, NOBODYS, USED), False),
        ((USED, IDLE, NOBODYS, NOBODYS), False),
        ((USED, NOBODYS, UNKNOWN), False),
        ((NOBODYS, NOBODYS, NOBODYS), False),
        ((USED, None, NOBODYS, NOBODYS), False),
        ((USED, NOBODYS, None), False),
        ((a_bundle("a:1", 3, topic="__change_events"), NOBODYS, NOBODYS), False),
    ],
    ids=[
        "does not load",
        "and nobody knows of one snapshot",
        "and nobody knows of the first",
        "a move that is under way",
        "nobody knows before",
        "loaded again",
        "clients left first",
        "may have an owner",
        "never used",
        "split or made anew",
        "gone with its namespace, or split",
        "brokers' own readers",
    ],
)
def test_what_clients_used_and_nobody_owns_now_and_before(seen: tuple[dict[str, Any] | None, ...], found: bool) -> None:
    """Bundles that clients used are a warning once two snapshots show them without an owner."""
    assert found_of(judged(*seen)) == (WARNING if found else [])


@pytest.mark.parametrize(("minutes", "found"), [(1.9, False), (2.1, True)])
def test_a_dead_brokers_session_is_waited_for(minutes: float, found: bool) -> None:
    """A bundle is found only after two minutes without an owner, when a dead broker's session has ended."""
    assert found_of(judged(USED, NOBODYS, NOBODYS, step=minutes / 15)) == (WARNING if found else [])


def test_what_it_says(golden: Golden) -> None:
    """A namespace that no broker may have is critical, for longer than snapshots show its clients, until one may."""
    check = bundle_without_owner.CHECK
    many = {"0x0_0x4": USED, "0x4_0x8": a_bundle("b:1", 10), "0x8_0xc": IDLE, "0xc_0xf": USED}
    none = dict.fromkeys(many, NOBODYS) | {"0xc_0xf": USED}
    clients, window = (
        a_policy(namespaces={ORDERS: {"bundle_without_owner": own}})
        for own in ({"warning_clients": 4}, {"window_minutes": 20})
    )

    def shut_out(then: list[str] | None, brokers: tuple[str, ...]) -> Judgement:
        lost, used = {"x": NOBODYS}, {"x": a_bundle("b:1", 1)}
        earlier = [a_snapshot(lost, 1, allowed=[]), a_snapshot(used, 2, allowed=then)]
        return judge_rows(check, a_snapshot(lost, allowed=[], brokers=brokers), None, earlier)

    def found_before(allowed: list[str] | None) -> Judgement:
        figures = '{"bundles":2,"bundles_of_namespace":4,"clients":13,"since_epoch_seconds":1700000000,"topics":5}'
        bundles = dict.fromkeys("xyz", NOBODYS)
        before = a_snapshot(bundles, 1, allowed=[])
        before["findings"] = [{"check_id": check.check_id, "subject": ORDERS, "figures_json": figures}]
        return judge_rows(check, a_snapshot(bundles, allowed=allowed), None, [before])

    cases = {
        "never used": judged(NOBODYS, NOBODYS),
        "no earlier snapshot": judged(NOBODYS),
        "it has an owner": judged(USED),
        "some of a namespace's are lost": judge_rows(
            check, a_snapshot(none, allowed=["b:1", "a:1"]), None, [a_snapshot(none, 1), a_snapshot(many, 2)]
        ),
        "no broker may have it, any might before": shut_out(None, ("a:1",)),
        "its brokers are gone": shut_out(["b:1"], ("a:1",)),
        "its policy was changed": shut_out(["b:1"], ("a:1", "b:1")),
        "it was found before, and no broker may have it": found_before([]),
        "it was found before, and one may": found_before(["a:1"]),
        "it was found before, and all may": found_before(None),
        "fewer clients than the namespace's threshold": judged(USED, NOBODYS, NOBODYS, policy=clients),
        "used before the namespace's window": judged(USED, NOBODYS, NOBODYS, policy=window),
    }
    golden(told(cases))


def test_more_than_are_looked_up_leave_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the check cannot tell or gives minimum numbers, and each namespace has bundles looked up."""
    query = bundle_without_owner.CHECK.shards["without_owner"]
    assert query.most == bundle_without_owner.MAX_BUNDLES
    monkeypatch.setattr(bundle_without_owner, "MAX_BUNDLES", 2)
    monkeypatch.setitem(bundle_without_owner.CHECK.shards, "without_owner", replace(query, most=2))
    bundles = dict.fromkeys("xyz", NOBODYS)
    judgement = judge_rows(bundle_without_owner.CHECK, a_snapshot(bundles), None, [a_snapshot(bundles, 1)])
    assert judgement.cannot_tell == "3 bundles have no owner; 2 of them were looked up, and no client used these."
    earlier = [a_snapshot(bundles, 1), a_snapshot(dict.fromkeys("xyz", USED), 2)]
    judgement = judge_rows(bundle_without_owner.CHECK, a_snapshot(bundles), None, earlier)
    assert judgement.findings[0].evidence.startswith("At least 2 of 3 bundles have had no owner")

    def two_namespaces(steps_ago: int, bundle: dict[str, Any]) -> Rows:
        one, other = (
            a_snapshot(dict.fromkeys("xyz", bundle), steps_ago, namespace=name) for name in (ORDERS, "acme/others")
        )
        return one | {table: [*one[table], *other[table]] for table in ("namespaces", "bundles", "topics")}

    earlier = [two_namespaces(1, NOBODYS), two_namespaces(2, USED)]
    judgement = judge_rows(bundle_without_owner.CHECK, two_namespaces(0, NOBODYS), None, earlier)
    assert [each.subject for each in judgement.findings] == [ORDERS, "acme/others"]


def test_the_most_clients_come_first_and_the_rest_is_counted() -> None:
    """At most 100 namespaces are listed, those with most clients first, and the rest is counted."""

    def cluster(steps_ago: int, *, owned: bool) -> Rows:
        whole = a_snapshot({}, steps_ago)
        for number in range(101):
            bundles = {f"{part}": a_bundle("a:1", number + 1) if owned else NOBODYS for part in range(10)}
            part = a_snapshot(bundles, steps_ago, namespace=f"acme/n{number:03}")
            for table in ("namespaces", "bundles", "topics"):
                whole[table] = [*whole[table], *part[table]]
        return whole

    earlier = [cluster(1, owned=False), cluster(2, owned=True)]
    judgement = judge_rows(bundle_without_owner.CHECK, cluster(0, owned=False), None, earlier)
    assert [each.subject for each in judgement.findings[:2]] == ["acme/n100", "acme/n099"]
    assert (len(judgement.findings), judgement.more) == (100, 1)
    assert judgement.findings[0].figures["clients"] == 1010
