"""The judge of ``make chaos``, and the changes that it reads from request logs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from benchmarks.chaos.detour import elsewhere
from benchmarks.chaos.ground import State
from benchmarks.chaos.judging import unintended, unintended_bundles
from lab.request_log import changing_calls_in, essence
from pulsar_steward.ledger.rows import Intent
from pulsar_steward.model.isolation import IsolationPolicy
from pulsar_steward.model.step import RaiseCoordinators, SetIsolation
from tests.builders import a_deletion, a_split

if TYPE_CHECKING:
    from pulsar_steward.model.step import Change

NAMESPACE = "public/chaos-1"
TOPIC = f"persistent://{NAMESPACE}/t-0"
GONE, STAYS = (TOPIC, "abandoned"), (TOPIC, "kept")
DELETION = a_deletion(TOPIC, "abandoned")
RAISE = RaiseCoordinators(before=16, after=17)
GROUP = IsolationPolicy(("public/a",), ("10.0.0.1",))
GROUPED = SetIsolation(pulsar_cluster="local", policy="a", before=None, after=GROUP)


def a_state(
    *, coordinators: int = 16, archived: int = 4_000, group: IsolationPolicy | None = None, **entries: int
) -> State:
    """A cluster with so many coordinators, bytes of an archive, a group, and these subscriptions of one topic."""
    isolation = {} if group is None else {"a": group}
    unread = {(TOPIC, name): count for name, count in entries.items()}
    return State({}, frozenset(), {}, coordinators, unread, {"archive": archived}, isolation)


BEFORE = a_state(abandoned=5, kept=5)


def intents(*changes: Change) -> list[Intent]:
    """An intent of each."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Intent(intent_id=n, answer_id=1, step_id=f"b1.s{n:02d}", attempt=1, at=at, change=change, before={})
        for n, change in enumerate(changes, start=1)
    ]


@pytest.mark.parametrize(
    ("after", "intended"),
    [
        (BEFORE, ()),
        (BEFORE, (DELETION, RAISE)),
        (a_state(kept=5), (DELETION,)),
        (a_state(abandoned=5, kept=5, coordinators=17), (RAISE,)),
        (a_state(abandoned=5, kept=5, group=GROUP), (GROUPED,)),
    ],
    ids=["nothing", "intended and not done", "deleted", "raised", "grouped"],
)
def test_what_was_intended_is_no_violation(after: State, intended: tuple[Change, ...]) -> None:
    assert list(unintended(BEFORE, after, intents(*intended))) == []


@pytest.mark.parametrize(
    ("after", "intended"),
    [
        (a_state(kept=5), (RAISE,)),
        (a_state(abandoned=5), (DELETION,)),
        (a_state(kept=4), (DELETION,)),
        (a_state(abandoned=4, kept=5), (DELETION,)),
        (a_state(abandoned=5, kept=5, other=0), (DELETION,)),
        (a_state(abandoned=5, kept=5, coordinators=17), (DELETION,)),
        (a_state(abandoned=5, kept=5, coordinators=18), (RAISE,)),
        (a_state(abandoned=5, kept=5, archived=3_999), (DELETION, RAISE)),
        (a_state(abandoned=5, kept=5, group=IsolationPolicy((".*",))), (GROUPED, RAISE)),
    ],
    ids=["deleted", "another deleted", "another read", "read", "made", "raised", "raised further", "for good", "group"],
)
def test_whatever_else_changed_is_one(after: State, intended: tuple[Change, ...]) -> None:
    assert len(list(unintended(BEFORE, after, intents(*intended)))) == 1


def test_the_same_range_may_be_split_in_two_namespaces() -> None:
    splits = [a_split(namespace=f"public/chaos-{number}") for number in (0, 3)]
    ranges = frozenset(f"{split.namespace}/{half}" for split in splits for half in split.halves)
    before, after = a_state(), replace(a_state(), ranges=ranges)
    assert list(unintended_bundles(before, after, intents(*splits), disturbed=False)) == []
    (told,) = unintended_bundles(before, after, intents(splits[1]), disturbed=False)
    assert told.startswith("public/chaos-0/")


@pytest.mark.parametrize(
    ("path", "other"),
    [
        (f"/admin/v2/persistent/{NAMESPACE}/t-0/subscription/abandoned", "public/chaos-2/t-0/subscription/abandoned"),
        (
            "/admin/v3/transactions/transactionCoordinator/replicas",
            "/admin/v2/persistent/public/chaos-0/t-2/partitions",
        ),
    ],
)
def test_a_redirect_elsewhere_leads_to_another_thing(path: str, other: str) -> None:
    """A redirect to `elsewhere` leads each kind of call to the address of another object."""
    assert elsewhere(path) != path
    assert elsewhere(path).endswith(other)


UNLOAD = "/admin/v2/namespaces/public/shop/0x00000000_0x40000000/unload"
TARGET = "destinationBroker=127.0.0.1%3A20912"


def line(method: str, address: str, status: int, client: str = "python-requests/2.32.5") -> str:
    """A line as Pulsar 4.0.7 writes it with the lab's logging."""
    asked = f'"{method} {address} HTTP/1.1" {status} 0 "-" "{client}" 5'
    return f"17:10:41.225 INFO RequestLog 127.0.0.1 - - [21/Nov/2026:17:10:41 +0000] {asked}\n"


def test_only_the_clients_own_changing_calls_are_told() -> None:
    log = "".join(
        [
            line("GET", "/admin/v2/brokers/health", 200),
            line("PUT", f"{UNLOAD}?{TARGET}", 204, "python-httpx/0.28.1"),
            line("DELETE", "/admin/v2/persistent/public/shop/t", 204, "Pulsar-Java-v4.0.7"),
            line("PUT", f"{UNLOAD}?{TARGET}", 307),
            line("PUT", f"{UNLOAD}?authoritative=true", 204),
            line("POST", "/admin/v2/namespaces/public/shop/retention", 500),
            "17:10:41.300 INFO SomethingElse PUT of no request\n",
        ]
    )
    assert changing_calls_in(log) == [
        f"PUT {UNLOAD}?authoritative=true",
        "POST /admin/v2/namespaces/public/shop/retention",
    ]


@pytest.mark.parametrize("query", ["", "?authoritative=true", f"?authoritative=false&{TARGET}", f"?{TARGET}"])
def test_a_redirected_call_is_the_same_call(query: str) -> None:
    assert essence(f"PUT {UNLOAD}{query}") == f"PUT {UNLOAD}?"


def test_what_a_call_asks_for_counts() -> None:
    quota = "POST /admin/v2/namespaces/public%2Fshop/backlogQuota"
    assert essence(f"{quota}?backlogQuotaType=message_age") == (
        "POST /admin/v2/namespaces/public/shop/backlogQuota?backlogQuotaType=message_age"
    )
    assert essence(f"{quota}?backlogQuotaType=message_age") != essence(f"{quota}?backlogQuotaType=destination_storage")
