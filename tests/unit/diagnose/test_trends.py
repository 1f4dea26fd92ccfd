"""Figures over time: a snapshot's own, beside those that the snapshot before had recorded."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients.connection_churn import ACTIVE, SUCCEEDED
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.diagnose.running import QueryFailed, about_of, ask
from pulsar_steward.diagnose.trends import FASTEST, NAME, trends, trends_queries
from pulsar_steward.model import measures
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.tables import TRENDS
from pulsar_steward.runtime.parallel import on_this_thread
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import CLUSTER, NOW, a_policy
from tests.unit.diagnose.conftest import FolderOf, Rows, arrow_of, sources_of

if TYPE_CHECKING:
    from collections.abc import Sequence

STEP = timedelta(minutes=10)
Told = dict[tuple[str, str], dict[int, float]]


def a_snapshot(steps_ago: int = 0, connections: float | None = None, **backlogs: int) -> Rows:
    """A broker that runs for a day, has accepted so many connections and holds topics with these backlogs."""
    series = {STARTED: NOW.timestamp() - 86_400, ACTIVE: 5, SUCCEEDED: connections}
    return {
        "snapshot": [
            {
                "cluster": CLUSTER,
                "taken_at": NOW - steps_ago * STEP,
                "unread_brokers": [],
                "unread_namespaces": [],
                "coordinators": 16,
            }
        ],
        "brokers": [{"broker": "a:1", "read": True, "topics": len(backlogs)}],
        "topics": [
            {"topic": name, "backlog_bytes": backlog, "producers": 2, "consumers": 3}
            for name, backlog in backlogs.items()
        ],
        "subscriptions": [{"topic": name, "subscription": "s"} for name in backlogs],
        "transaction_coordinators": [{"coordinator": 0, "broker": "a:1"}, {"coordinator": 1}],
        "metrics": [
            {"source": "a:1", "source_kind": "broker", "series": name, "value": float(value)}
            for name, value in series.items()
            if value is not None
        ],
    }


def recorded(steps_ago: int, **values: float) -> dict[str, Any]:
    """A row of the table that an earlier snapshot wrote."""
    ((measure, value),) = values.items()
    subject = {"broker": "a:1", "topic": "t"}.get(measure.partition("_")[0], CLUSTER)
    return {"measure": measure, "subject": subject, "taken_at": NOW - steps_ago * STEP, "value": value}


def told(snapshots: Sequence[Rows], **policy: int) -> Told:
    """Values by measure and subject, and by how many steps ago; the last snapshot is the one looked at."""
    *earlier, now = snapshots
    sources = sources_of(now, earlier=earlier[::-1])
    query_set = trends_queries(about_of(sources), a_policy(trends=policy))
    queried = ask(sources, [query_set], (), on_this_thread)[NAME]
    assert not isinstance(queried, QueryFailed), queried
    before = next((each["trends"] for each in earlier[::-1] if "trends" in each), None)
    found: Told = {}
    rows = trends(queried, query_set.context, None if before is None else arrow_of(TRENDS, before)).to_pylist()
    for row in rows:
        found.setdefault((row["measure"], row["subject"]), {})[steps_ago(row["taken_at"])] = row["value"]
    assert len(rows) == sum(map(len, found.values()))
    assert {measure for measure, _ in found} <= set(measures.MEASURES)
    return found


def steps_ago(taken_at: datetime) -> int:
    """Returns how many steps before now a time is."""
    return round((NOW - taken_at.astimezone(NOW.tzinfo)) / STEP)


def test_a_first_snapshot_records_its_own_figures() -> None:
    assert told([a_snapshot(connections=700, t=5, u=6)]) == {
        (measures.CLUSTER_BACKLOG, CLUSTER): {0: 11},
        (measures.CLUSTER_TOPICS, CLUSTER): {0: 2},
        (measures.CLUSTER_SUBSCRIPTIONS, CLUSTER): {0: 2},
        (measures.CLUSTER_PRODUCERS, CLUSTER): {0: 4},
        (measures.CLUSTER_CONSUMERS, CLUSTER): {0: 6},
        (measures.BROKER_TOPICS, "a:1"): {0: 2},
        (measures.BROKER_COORDINATORS, "a:1"): {0: 1},
        (measures.BROKER_CONNECTIONS, "a:1"): {0: 700},
    }


def test_an_unread_broker_leaves_a_gap_and_no_dip() -> None:
    partial = a_snapshot(t=5)
    partial["brokers"].append({"broker": "b:1", "read": False})

    found = told([partial])

    assert set(found) == {(measures.BROKER_TOPICS, "a:1"), (measures.BROKER_COORDINATORS, "a:1")}


def test_what_was_recorded_is_carried_on_and_cut() -> None:
    """Trends continue those of the newest snapshot that has any, without later times, up to the policy's number."""
    older, newer = a_snapshot(2), a_snapshot(1)
    older["trends"] = [recorded(9, topics=99.0)]
    newer["trends"] = [recorded(ago, topics=float(ago)) for ago in (4, 3, 2, 1, 0, -1)]

    found = told([older, newer, a_snapshot(t=1)], most_snapshots=4)

    assert found[measures.CLUSTER_TOPICS, CLUSTER] == {0: 1, 1: 1, 2: 2, 3: 3}


@pytest.mark.parametrize(
    ("before", "now", "started_steps_ago", "rate"),
    [(100.0, 700.0, 9, 1.0), (100.0, 100.0, 9, 0.0), (700.0, 100.0, 9, None), (100.0, 700.0, 0.5, None)],
)
def test_connections_per_second_are_those_since_the_snapshot_before(
    before: float, now: float, started_steps_ago: float, rate: float | None
) -> None:
    """The connection rate counts from the snapshot before. It is missing after a restart or for a lower count."""
    newest, last = a_snapshot(connections=now), a_snapshot(1)
    newest["metrics"][0]["value"] = (NOW - started_steps_ago * STEP).timestamp()
    last["trends"] = [recorded(ago, broker_connections_created=value) for ago, value in ((2, 1.0), (1, before))]

    found = told([last, newest])

    assert found.get((measures.BROKER_CONNECTION_RATE, "a:1")) == (None if rate is None else {0: rate})


def test_the_topics_that_grow_fastest_are_recorded() -> None:
    names = [f"t{number:02}" for number in range(FASTEST + 2)]
    backlogs = [{name: 10 + number * step for number, name in enumerate(names)} for step in range(4)]
    snapshots = [a_snapshot(3 - step, **each) for step, each in enumerate(backlogs)]
    past = {"measure": measures.TOPIC_BACKLOG, "value": 7.0}
    snapshots[2]["trends"] = [
        past | {"subject": name, "taken_at": NOW - ago * STEP} for name in ("t00", "t11") for ago in (5, 3)
    ]

    found = told(snapshots)

    fastest = {name: values for (measure, name), values in found.items() if measure == measures.TOPIC_BACKLOG}
    assert sorted(fastest) == names[2:]
    assert fastest["t11"] == {0: 43, 3: 10, 5: 7}
    assert fastest["t02"] == {0: 16, 3: 10}


def test_diagnosing_records_them_beside_the_findings(folder_of: FolderOf) -> None:
    uris = []
    for ago in (2, 1, 0):
        folder = folder_of(a_snapshot(ago, t=ago))
        diagnose(folder, a_policy(), on_this_thread, [])
        uris.append(folder.uri)

    backlog = [row for row in open_snapshot(uris[2]).trends() if row.measure == measures.CLUSTER_BACKLOG]
    assert [(row.subject, row.taken_at, row.value) for row in backlog] == [
        (CLUSTER, NOW - 2 * STEP, 2.0),
        (CLUSTER, NOW - STEP, 1.0),
        (CLUSTER, NOW, 0.0),
    ]
