"""Questions to shards, to earlier snapshots and to the whole: who is answered what, and what a broken one breaks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import CheckContext, LookBack, Queried, Query, critical_or_warning
from pulsar_steward.checks.views import SqlView
from pulsar_steward.diagnose.queries import QuerySet
from pulsar_steward.diagnose.running import QueryFailed, SnapshotSources, about_of, ask
from pulsar_steward.diagnose.shards import views_needed
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import OnThreads, on_this_thread
from tests.builders import NOW
from tests.cases import cases
from tests.unit.diagnose.conftest import ABOUT, Rows, sources_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ROWS: Rows = {
    "snapshot": [ABOUT],
    "namespaces": [{"namespace": "acme/idle"}],
    "bundles": [{"namespace": "acme/gone", "bundle": "x"}],
}
TOPICS = [
    {"topic": f"persistent://{namespace}/t{number}", "namespace": namespace, "broker": "a:1", "backlog_bytes": number}
    for namespace in ("acme/orders", "bank/ledger")
    for number in range(5)
]
SHARDS: list[Rows] = [{"topics": TOPICS[0::3]}, {"topics": TOPICS[1::3]}, {"topics": TOPICS[2::3]}]


@dataclass
class Asked:
    """Questions of one who asks."""

    shards: Mapping[str, Query] = field(default_factory=dict)
    earlier: Mapping[str, LookBack] = field(default_factory=dict)
    cluster: Mapping[str, Query] = field(default_factory=dict)


def query_set(snapshot: SnapshotSources, asked: Asked, name: str = "it", **parts: Any) -> QuerySet:
    """Somebody who knows the limits of growing backlogs; `parts`: ``warning_bytes_per_second`` by namespace."""
    policy = Policy()
    limits = policy.backlog_growing
    own = tuple(
        (limits.model_copy(update={"warning_bytes_per_second": value}), (namespace.replace("__", "/"),))
        for namespace, value in parts.items()
    )
    context = CheckContext(
        about=about_of(snapshot), policy=policy, limits=limits, parts=((limits, ()), *own) if own else ()
    )
    return QuerySet(name, asked, context)


def answered(
    asked: Asked,
    rows: Rows | None = None,
    shards: Sequence[Rows] | None = None,
    earlier: Sequence[Rows] = (),
    **parts: Any,
) -> Queried:
    """Answers to one who asks; topics of every earlier snapshot are in two shards."""
    before = [sources_of(each, [{"topics": each["topics"][half::2]} for half in (0, 1)]) for each in earlier]
    snapshot = replace(sources_of(rows or ROWS, shards), earlier=before)
    (queried,) = ask(snapshot, [query_set(snapshot, asked, **parts)], (), on_this_thread).values()
    assert not isinstance(queried, QueryFailed), queried
    return queried


def column(queried: Queried, query: str, name: str) -> list[Any]:
    """One column of an answer."""
    return [row[name] for row in queried[query].rows]


@pytest.mark.parametrize("shards", [SHARDS, SHARDS[::-1], [{"topics": TOPICS}], [{}, *SHARDS, {}]])
def test_the_worst_of_all_shards_are_kept_and_all_are_counted(shards: list[Rows]) -> None:
    worst = Query(
        "select topic, backlog_bytes from topics where backlog_bytes > 0",
        worst_first="backlog_bytes desc, topic",
        most=3,
        detail="select *, backlog_bytes * 2 as twice from worst",
    )

    selected = answered(Asked(shards={"worst": worst}), shards=shards)["worst"]

    names = ["acme/orders/t4", "bank/ledger/t4", "acme/orders/t3"]
    assert [(row["topic"], row["twice"]) for row in selected.rows] == [
        (f"persistent://{name}", 2 * int(name[-1])) for name in names
    ]
    assert (selected.count, selected.more) == (8, 5)


PARTITIONS = [
    {"topic": f"persistent://a/b/{name}-partition-{number}", "backlog_bytes": backlog - number}
    for name, backlog in (("t", 90), ("u", 60), ("v", 30))
    for number in range(9)
]


@pytest.mark.parametrize("cut", [1, 2, 4])
def test_partitions_of_one_topic_do_not_fill_the_kept_rows(cut: int) -> None:
    """Kept rows are of many topics, the worst severity first, and cut rows count by flags, however the rows are cut."""
    worst = Query(
        "select topic, backlog_bytes, backlog_bytes > 85 as critical from topics",
        worst_first="critical desc, backlog_bytes desc, topic",
        most=10,
    )

    shards: list[Rows] = [{"topics": PARTITIONS[number::cut]} for number in range(cut)]
    selected = answered(Asked(shards={"worst": worst}), shards=shards)["worst"]

    assert [row["backlog_bytes"] for row in selected.rows] == [90, 89, 88, 87, 86, 85, 60, 30, 84, 59]
    assert selected.more_by(critical_or_warning) == {(Severity.WARNING, "a/b"): 17}
    assert selected.more_by(Severity.INFO) == {(Severity.INFO, "a/b"): 17}
    assert selected.more_by(lambda row: Severity(row["topic"])) == {}


def test_a_question_without_an_order_keeps_every_row() -> None:
    every = Query("select backlog_bytes from topics")
    selected = answered(Asked(shards={"every": every}), shards=SHARDS)["every"]
    assert [row["backlog_bytes"] for row in selected.rows] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert (selected.count, selected.more) == (10, 0)


def test_a_snapshot_without_shards_is_asked_all_the_same() -> None:
    snapshot = sources_of(ROWS)
    empty = type(snapshot)(snapshot.small, ())
    (queried,) = ask(
        empty, [query_set(empty, Asked(shards={"n": Query("select count(*) as n from topics")}))], (), on_this_thread
    ).values()
    assert not isinstance(queried, QueryFailed)
    assert queried["n"].one == {"n": 0}


def test_what_is_asked_once_selects_from_what_shards_answered() -> None:
    asked = Asked(
        shards={"sizes": Query("select sum(backlog_bytes)::bigint as bytes from topics")},
        cluster={
            "total": Query("select sum(bytes)::bigint as bytes from sizes"),
            "twice": Query("select bytes * 2 as bytes from total", worst_first="bytes", detail="from worst"),
        },
    )
    assert answered(asked, shards=SHARDS)["twice"].one == {"bytes": 40}


def test_questions_name_fields_of_the_policy_and_the_time() -> None:
    asked = Asked(
        cluster={"it": Query("select $minimum_snapshots as own, $collect__recent_minutes as other, $now as now")}
    )
    row = answered(asked)["it"].one
    policy = Policy()
    assert row["own"] == policy.backlog_growing.minimum_snapshots
    assert row["other"] == policy.collect.recent_minutes
    assert float(row["now"]) == NOW.timestamp()


def test_limits_are_those_of_the_namespace_or_else_of_the_tenant() -> None:
    """The limits of every known namespace are its own, else those of its tenant, else the general ones."""
    each = Query("select namespace, warning_bytes_per_second as limit_ from limits")
    usual = Policy().backlog_growing.warning_bytes_per_second

    plain = answered(Asked(shards={"each": each}), shards=[{"topics": TOPICS}])
    own = answered(Asked(shards={"each": each}), shards=[{"topics": TOPICS}], acme=7, acme__orders=9)

    names = ["acme/gone", "acme/idle", "acme/orders", "bank/ledger"]
    assert [(row["namespace"], row["limit_"]) for row in plain["each"].rows] == [(name, usual) for name in names]
    assert column(own, "each", "limit_") == [7, 7, 9, usual]


def test_only_what_is_named_is_made() -> None:
    """Only views that a question names, and the views that those need, are created."""

    def names(text: str) -> list[str]:
        return [view.name for view in views_needed((), [text])]

    assert names("select * from raw_topics") == []
    assert names("select * from metrics") == ["metrics"]
    assert names("select * from user_subscriptions") == ["topics", "subscriptions", "user_subscriptions"]
    assert names("select * from raw_topics join limits using (namespace)") == ["topics", "namespaces_seen"]


def test_what_a_detail_of_a_question_asked_once_names_is_made_too() -> None:
    """A view that only the detail of a question names is created as well."""
    known = SqlView("known", "select namespace from namespaces")
    query = Query("select 1 as a", worst_first="a", detail="select worst.*, namespace from worst, known")
    snapshot = sources_of(ROWS)
    asked = query_set(snapshot, Asked(cluster={"it": query}))
    queried = ask(snapshot, [asked], (known,), on_this_thread)["it"]
    assert not isinstance(queried, QueryFailed)
    assert queried["it"].one == {"a": 1, "namespace": "acme/idle"}


def test_one_with_a_broken_question_gets_the_error_and_others_their_answers() -> None:
    fine, bad = Query("select 1 as a"), Query("select nonsense from topics")
    late = Query("select a from bad")
    look = LookBack(lambda _: 60, "select nonsense from topics")
    snapshot = sources_of(ROWS, earlier=[earlier(5)])
    query_sets = [
        query_set(snapshot, Asked(shards={"bad": bad, "good": fine}, cluster={"late": late}), "in a shard"),
        query_set(snapshot, Asked(cluster={"bad": bad, "late": late}), "in the whole"),
        query_set(snapshot, Asked(earlier={"bad": look}, cluster={"good": fine}), "before"),
        query_set(snapshot, Asked(shards={"good": fine}, cluster={"bad": fine}), "fine"),
    ]

    queried = ask(snapshot, query_sets, (), on_this_thread)

    fine_answers = queried.pop("fine")
    assert not isinstance(fine_answers, QueryFailed)
    assert fine_answers["bad"].one == {"a": 1}
    assert queried.keys() == {"in a shard", "in the whole", "before"}
    for each in queried.values():
        assert isinstance(each, QueryFailed)
        assert "BinderException" in str(each)
        assert "\n" not in str(each)


def test_what_one_is_answered_is_not_anothers() -> None:
    """Two askers with questions of the same name each get their own answers."""
    snapshot = sources_of(ROWS)
    query_sets = [
        query_set(
            snapshot,
            Asked(
                shards={"found": Query(f"select {number} as n")},
                cluster={"last": Query("select n + 1 as n from found")},
            ),
            name,
        )
        for number, name in enumerate(("one", "other"))
    ]
    queried = ask(snapshot, query_sets, (), OnThreads(2))
    for number, name in enumerate(("one", "other")):
        own = queried[name]
        assert not isinstance(own, QueryFailed)
        assert own["last"].rows == ({"n": number + 1},)


def earlier(minutes: int, backlog: int = 7) -> Rows:
    """A snapshot so many minutes ago, of the first topic of each namespace."""
    about = ABOUT | {"taken_at": NOW - timedelta(minutes=minutes)}
    topics = [TOPICS[0] | {"backlog_bytes": backlog}, TOPICS[5] | {"backlog_bytes": 10 * backlog}]
    return {"snapshot": [about], "topics": topics, "brokers": [{"broker": "a:1"}]}


def test_a_look_back_knows_what_was_answered_and_ends_where_it_is_told() -> None:
    asked = Asked(
        shards={"mine": Query("select topic from raw_topics where backlog_bytes = 0")},
        earlier={
            "before": LookBack(lambda _: 20, "select topic, backlog_bytes from topics semi join mine using (topic)"),
            "brokers_before": LookBack(lambda _: 60, "select broker from brokers", small=True),
        },
        cluster={"newest": Query("select max(taken_at) as at, count(*) as n from before")},
    )
    queried = answered(asked, shards=SHARDS, earlier=[earlier(10, 8), earlier(20, 9), earlier(30, 10)])

    assert column(queried, "before", "backlog_bytes") == [8, 9, 80, 90]
    assert column(queried, "before", "taken_at") == [NOW - timedelta(minutes=each) for each in (10, 20, 10, 20)]
    assert len(queried["brokers_before"].rows) == 3
    assert queried["newest"].one == {"at": NOW - timedelta(minutes=10), "n": 4}


def test_a_question_to_small_tables_is_asked_once_and_known_to_those_that_look_back() -> None:
    brokers = [{"broker": "a:1"}, {"broker": "b:1"}]
    asked = Asked(
        shards={
            "listed": Query("select broker from brokers", worst_first="broker desc", most=1, small=True),
            "topics_told": Query("select count(*) as n from topics"),
        },
        earlier={"before": LookBack(lambda _: 20, "select broker from brokers semi join listed using (broker)")},
    )
    before = earlier(10) | {"brokers": brokers}
    queried = answered(asked, ROWS | {"brokers": brokers}, shards=SHARDS, earlier=[before])

    assert (queried["listed"].rows, queried["listed"].count) == (({"broker": "b:1"},), 2)
    assert len(queried["topics_told"].rows) == len(SHARDS)
    assert column(queried, "before", "broker") == ["b:1", "b:1"]  # from each of its two shards


@cases("before", ("none", []), ("too old", [earlier(30)]))
def test_a_look_back_without_a_snapshot_is_a_table_without_rows(before: list[Rows]) -> None:
    asked = Asked(
        shards={"mine": Query("select topic from raw_topics")},
        earlier={
            "before": LookBack(
                lambda _: 20, "select topic, backlog_bytes from raw_topics semi join mine using (topic)"
            ),
            "counted": LookBack(lambda _: 20, "select count(*) as n from brokers", small=True),
        },
        cluster={"sums": Query("select count(*) as n, max(taken_at) as at, sum(backlog_bytes) as b from before")},
    )
    queried = answered(asked, earlier=before)
    assert (queried["before"].rows, queried["counted"].rows) == ((), ())
    assert queried["sums"].one == {"n": 0, "at": None, "b": None}


def test_what_a_snapshot_is_comes_with_those_that_it_may_be_compared_with() -> None:
    """A snapshot's description lists its unread parts and the earlier snapshots, and marks partial ones."""
    partial = earlier(10)
    partial["snapshot"] = [partial["snapshot"][0] | {"unread_namespaces": ["acme/x"]}]
    about = about_of(
        sources_of({"snapshot": [ABOUT | {"unread_brokers": ["b:1"], "unread_namespaces": ["c/d"]}]}, earlier=[partial])
    )
    assert (about.unread, about.taken_at) == (("b:1", "c/d"), NOW)
    assert [(each.taken_at, each.partial) for each in about.earlier] == [(NOW - timedelta(minutes=10), True)]
