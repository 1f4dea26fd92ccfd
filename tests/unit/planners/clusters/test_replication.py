"""Replication seen from both ends, and failing over, judged before it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.planners.clusters.losing import MissingNamespace, loss_of
from pulsar_steward.planners.clusters.replication import Link, links_between, replication_end
from tests.cases import cases
from tests.unit.planners.clusters.replicating import ORDERS, name_of, subscribed, taken, topic_of

if TYPE_CHECKING:
    from pathlib import Path

CUT = {"connected": False, "message_rate_out": 0.0, "delay_seconds": None}
TO_WEST = {"cluster": "west", "inbound": False}
TO_EAST = {"cluster": "east", "inbound": False}


def linked(shelf: Path, there: list[dict[str, Any]] | None, *here: dict[str, Any], **changed: Any) -> Link:
    """Link from east, with these topics, to west; west with none could not be looked at."""
    ends = [replication_end(taken(shelf, "east", *here, **changed))]
    ends += [] if there is None else [replication_end(taken(shelf, "west", *there))]
    return next(each for each in links_between(ends, () if there is not None else ("west",)) if each.sender == "east")


def test_what_is_sent_and_what_arrives(tmp_path: Path) -> None:
    """Each end tells its own half: backlog, rate and delay here, connections and rate there."""
    here = [
        topic_of(**TO_WEST, backlog_entries=30, delay_seconds=7),
        topic_of(number=1, **TO_WEST, backlog_entries=2, delay_seconds=1),
    ]
    there = [topic_of(number=number, **TO_EAST | {"inbound": True, "message_rate_in": 4.0}) for number in (0, 1)]
    batches = [subscribed(number, messages_per_entry=10) for number in (0, 1)]
    link = linked(tmp_path, there, *here, subscriptions=batches)
    (orders,) = link.namespaces
    assert orders.sent is not None
    assert (orders.sent.topics, orders.sent.waiting, orders.sent.cut) == (2, 2, 0)
    assert (orders.sent.entries, orders.sent.messages, orders.sent.rate_out, orders.sent.delay_seconds) == (
        32,
        320,
        2.0,
        7,
    )
    assert (orders.received_topics, orders.received_rate) == (2, 8.0)
    assert (orders.exists, orders.mutual, link.is_cut) == (True, True, False)


def test_what_is_not_told_is_not_zero(tmp_path: Path) -> None:
    """A delay of nothing on its way, batches without consumers, rates and connections that an older snapshot lacks."""
    link = linked(tmp_path, [], topic_of(cluster="west", backlog_entries=5, delay_seconds=0, message_rate_out=None))
    (orders,) = link.namespaces
    assert orders.sent is not None
    assert (orders.sent.messages, orders.sent.rate_out, orders.sent.delay_seconds) == (None, None, None)
    assert (orders.sent.inbound, orders.sent.rate_in, orders.received_topics, orders.received_rate) == (None,) * 4
    assert "for a time that is not told; west does not tell about connections from east" in link.words


def test_the_age_of_the_oldest_message_is_a_delay(tmp_path: Path) -> None:
    """Where the topic was looked into, and its slowest cursor is the replicator's."""
    looked = {"topic": name_of(), "oldest_backlog_age_seconds": 90, "slowest_subscription": "pulsar.repl.west"}
    link = linked(tmp_path, [], topic_of(**TO_WEST | CUT, backlog_entries=5), drilled=[looked])
    assert [each.delay_seconds for each in link.sent] == [90]


@cases(
    "here, there, cut",
    ("both ends show no connection", [{**CUT, "backlog_entries": 5}], [{"inbound": False}], True),
    ("the other one cannot be looked at", [{**CUT, "backlog_entries": 5}], None, True),
    ("it has a connection all the same", [{**CUT, "backlog_entries": 5}], [{"inbound": True}], False),
    ("it does not tell", [{**CUT, "backlog_entries": 5}], [], False),
    (
        "another topic is connected",
        [{**CUT, "backlog_entries": 5}, {"backlog_entries": 1}],
        [{"inbound": False}],
        False,
    ),
    ("nothing waits", [CUT], [{"inbound": False}], False),
)
def test_a_link_is_cut_where_both_ends_say_so(
    tmp_path: Path, here: list[dict[str, Any]], there: list[dict[str, Any]] | None, *, cut: bool
) -> None:
    topics = [topic_of(number=number, **TO_WEST | told) for number, told in enumerate(here)]
    back = None if there is None else [topic_of(number=number, **TO_EAST | told) for number, told in enumerate(there)]
    assert linked(tmp_path, back, *topics).is_cut is cut


@cases(
    "serving, about, words",
    ("it names only itself", {ORDERS: ("west",)}, {}, "does not name it in turn"),
    ("it has no such namespace", {}, {}, "has no such namespace"),
    ("it may have it, a part was not read", {}, {"unread_brokers": ["west-0:8080"]}, ""),
    ("its policies were not told", {ORDERS: None}, {}, ""),
    ("both name each other", {ORDERS: ("east", "west")}, {}, ""),
)
def test_a_setting_of_one_end_alone_is_told(tmp_path: Path, serving: Any, about: dict[str, Any], words: str) -> None:
    here = replication_end(taken(tmp_path, "east", topic_of(**TO_WEST)))
    there = replication_end(taken(tmp_path, "west", serving=serving, about=about))
    link, *_ = links_between([here, there])
    assert [each.one_sided for each in link.namespaces] == [words]


def test_two_clusters_of_one_name_cannot_be_told_apart(tmp_path: Path) -> None:
    here = replication_end(taken(tmp_path, "east", topic_of(**TO_WEST)))
    twins = [replication_end(taken(tmp_path, name, about={"pulsar_cluster": "west"})) for name in ("w1", "w2")]
    assert links_between([here, twins[0]])[0].receiver == "w1"
    assert [each for each in links_between([here, *twins]) if each.sender == "east"] == []


def drilled(subscription: str, *, replicated: bool, number: int = 0) -> dict[str, Any]:
    """A subscription of a topic that was looked into."""
    return {"topic": name_of(number=number), "subscription": subscription, "replicated": replicated}


def test_the_other_that_lacks_the_least_is_what_counts(tmp_path: Path) -> None:
    """Of two others, the one with fewer entries waiting; a topic that is not sent there is counted."""
    told = [topic_of(cluster="west", backlog_entries=9, delay_seconds=30), topic_of(number=1)]
    three = {ORDERS: ("east", "west", "south")}
    members = {
        "east": taken(tmp_path, "east", *told, serving=three),
        "south": taken(tmp_path, "south", serving=three),
        "west": taken(tmp_path, "west", serving=three),
    }
    (found,) = loss_of("east", members).namespaces
    assert found.served_by == ("west", "south")
    assert (found.topics, found.entries, found.messages, found.delay_seconds) == (2, 9, None, 30)
    assert (found.unsent_topics, found.is_complete) == (1, False)


def test_topics_that_keep_nothing_do_not_stand_for_those_that_are_not_sent(tmp_path: Path) -> None:
    """A topic that is not persistent has a replicator as well, and is none of the topics that are counted."""
    volatile = topic_of(number=2, cluster="west") | {"topic": "non-persistent://acme/orders/t-2"}
    members = {"east": taken(tmp_path, "east", topic_of(), volatile), "west": taken(tmp_path, "west")}
    (found,) = loss_of("east", members).namespaces
    assert (found.topics, found.unsent_topics, found.is_complete) == (1, 1, False)


def test_a_namespace_of_nobody_else_comes_first_with_all_that_it_stores(tmp_path: Path) -> None:
    """One of the same name that serves itself has other messages."""
    serving = {ORDERS: ("east", "west"), "acme/own": ("east",)}
    own = topic_of("acme/own")
    east = taken(tmp_path, "east", topic_of(cluster="west"), own, serving=serving)
    west = taken(tmp_path, "west", own, serving={ORDERS: ("east", "west"), "acme/own": ("west",)})
    first, second = loss_of("east", {"east": east, "west": west}).namespaces
    assert (first.namespace, first.served_by, first.stored_bytes, first.entries) == ("acme/own", (), 1000, None)
    assert (second.namespace, second.entries, second.is_complete) == (ORDERS, 0, True)


def test_positions_that_nobody_else_has(tmp_path: Path) -> None:
    """Kept, not replicated, absent at the other's loaded topic, and not told: of a topic that is not loaded there."""
    here = [topic_of(number=number, cluster="west") for number in (0, 1)]
    east = taken(
        tmp_path,
        "east",
        *here,
        subscriptions=[*(subscribed(0, name) for name in ("kept", "apart", "absent")), subscribed(1, "unknown")],
        drilled=[drilled("kept", replicated=True), drilled("apart", replicated=False)],
    )
    west = taken(tmp_path, "west", topic_of(), subscriptions=[subscribed(0, name) for name in ("kept", "apart")])
    (found,) = loss_of("east", {"east": east, "west": west}).namespaces
    assert (found.subscriptions, found.subscriptions_lost, found.subscriptions_unknown) == (4, 2, 1)


def test_what_no_topic_tells_is_not_told(tmp_path: Path) -> None:
    """Policies name the other cluster, and no loaded topic has a replicator to it."""
    members = {name: taken(tmp_path, name) for name in ("east", "west")}
    (found,) = loss_of("east", members).namespaces
    assert isinstance(found, MissingNamespace)
    assert (found.served_by, found.entries, found.is_complete) == (("west",), None, False)
    with pytest.raises(ConfigurationError, match="members are east, west"):
        loss_of("north", members)
