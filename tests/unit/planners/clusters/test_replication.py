"""Replication seen from both ends: what is sent, what arrives, what is cut, and which settings only one end has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
