"""A snapshot is diagnosed: each check by itself, and trends from one snapshot to the next."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pulsar_steward.checks.check import Check, CheckContext, Judgement, Queried, Query
from pulsar_steward.checks.clients.connection_churn import ACTIVE, SUCCEEDED
from pulsar_steward.checks.kafka.replicas_in_sync import FLAPPING
from pulsar_steward.checks.placement.coordinators import TcSkewPolicy
from pulsar_steward.diagnose.diagnosing import diagnose, verdict_of
from pulsar_steward.diagnose.running import QueryFailed, about_of, ask
from pulsar_steward.diagnose.trends import FASTEST, NAME, trends, trends_queries
from pulsar_steward.errors import SnapshotError
from pulsar_steward.model import measures
from pulsar_steward.model.finding import Finding, Outlook, Severity
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.tables import FINDINGS, TRENDS, VERDICTS
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import OnThreads, on_this_thread
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import CLUSTER, NOW, a_policy
from tests.cases import row_by_row
from tests.unit.diagnose.conftest import ABOUT, FolderOf, Rows, arrow_of, sources_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.tables import Table


class Named(Check):
    """A check of any name, under the limits of another."""

    section = "tc_skew"  # that of a made-up name is in no policy


def a_check(name: str, judgement: Judgement, **queries: Any) -> Check:
    """A made-up check that says so."""
    return Named(
        check_id=name,
        title="made up",
        advice=(),
        source="here",
        policy=TcSkewPolicy,
        judge=lambda _answers, _context: judgement,
        **queries,
    )


DEFECT = "The check itself failed, which is a defect: "


def broken(_answers: Queried, _context: CheckContext[Any]) -> NoReturn:
    """A judge with a defect."""
    raise ZeroDivisionError("division by zero\nand more")


FINE = a_check("fine", Judgement(quiet="All is well."))


def verdicts_of(folder: SnapshotFolder) -> dict[str, tuple[str, str]]:
    """Verdicts that were written: outlook and reason by check, in order."""
    return {row["check_id"]: (row["outlook"], row["reason"]) for row in folder.read(VERDICTS).to_pylist()}


def test_a_broken_check_cannot_tell_and_stops_no_other(folder_of: FolderOf) -> None:
    judge = Named(check_id="judge", title="made up", advice=(), source="here", policy=TcSkewPolicy, judge=broken)
    query = a_check("question", Judgement(), shards={"x": Query("select nothing from nowhere")})
    folder = folder_of({"snapshot": [ABOUT]})

    diagnose(folder, Policy(), on_this_thread, [judge, query, FINE])

    verdicts = verdicts_of(folder)
    assert list(verdicts) == ["judge", "question", "fine"]
    assert [outlook for outlook, _ in verdicts.values()] == ["unknown", "unknown", "clear"]
    assert verdicts["judge"][1] == f"{DEFECT}ZeroDivisionError: division by zero"
    assert verdicts["question"][1].startswith(f"{DEFECT}CatalogException: ")
    assert folder.read(FINDINGS).num_rows == 0
    assert folder.diagnosed()


def test_a_verdict_counts_what_is_not_listed(folder_of: FolderOf) -> None:
    """A verdict's sentence states the worst finding and counts all others, and `more` counts the unlisted ones."""
    found = tuple(
        Finding(check_id="many", severity=severity, subject=severity.value, evidence=f"Too much, {severity.value}.")
        for severity in (Severity.INFO, Severity.CRITICAL)
    )
    folder = folder_of({"snapshot": [ABOUT]})

    diagnose(folder, Policy(), OnThreads(2), [a_check("many", Judgement(findings=found, more=7))])

    (verdict,) = folder.read(VERDICTS).to_pylist()
    assert (verdict["reason"], verdict["more"]) == ("Too much, critical. And 8 more.", 7)
    assert [row["subject"] for row in folder.read(FINDINGS).to_pylist()] == ["critical", "info"]


def test_a_verdict_keeps_the_severities_of_what_is_not_listed(folder_of: FolderOf) -> None:
    found = tuple(
        Finding(check_id="many", severity=severity, subject=f"a/b/0x{number:02}", evidence="Too much.")
        for severity in (Severity.INFO, Severity.CRITICAL)
        for number in range(60)
    )
    folder = folder_of({"snapshot": [ABOUT]})
    judgement = Judgement(findings=found, more=9, graded={(Severity.WARNING, "c/d"): 2})

    diagnose(folder, Policy(), on_this_thread, [a_check("many", judgement)])

    (verdict,) = folder.read(VERDICTS).to_pylist()
    assert (verdict["more"], json.loads(verdict["more_json"])) == (29, {"info": {"a/b": 20}, "warning": {"c/d": 2}})


def test_partitions_of_one_topic_take_turns_with_others() -> None:
    subjects = ("persistent://a/b/t-partition-0", "persistent://a/b/t-partition-1 subscription s", "persistent://a/b/u")
    found = [
        Finding(check_id="x", severity=severity, subject=subject, evidence="e")
        for severity in (Severity.WARNING, Severity.CRITICAL)
        for subject in subjects
    ]

    placed = [(each.severity, each.subject) for each in Judgement(findings=tuple(found)).findings]

    turns = (subjects[0], subjects[2], subjects[1])
    assert placed == [(severity, each) for severity in (Severity.CRITICAL, Severity.WARNING) for each in turns]


def test_silence_is_health_only_where_everything_was_read(folder_of: FolderOf) -> None:
    """A check without findings is unknown when parts of the cluster were not read, and says which parts."""
    folder = folder_of({"snapshot": [ABOUT | {"unread_brokers": ["b:1"], "unread_namespaces": ["a/b"]}]})
    blind = a_check("blind", Judgement(cannot_tell="Nobody said."))

    diagnose(folder, Policy(), on_this_thread, [FINE, blind])

    reason = "All is well. But not everything could be read: b:1, a/b."
    assert verdicts_of(folder) == {"fine": ("unknown", reason), "blind": ("unknown", "Nobody said.")}


def test_what_was_found_stands_whatever_could_not_be_told() -> None:
    """A check with findings has the outlook found, although it could not judge everything."""
    finding = Finding(check_id="x", severity=Severity.INFO, subject="s", evidence="There.")
    about: Any = None  # nobody looks at what else was read
    verdict = verdict_of(FINE, Judgement(findings=(finding,), cannot_tell="The rest."), about)
    assert (verdict.outlook, verdict.reason) == (Outlook.FOUND, "There.")


def test_judging_again_replaces_what_was_said(folder_of: FolderOf) -> None:
    """A second diagnosis of a snapshot replaces the first one."""
    folder = folder_of({"snapshot": [ABOUT]})
    for check in ("first", "second"):
        diagnose(folder, Policy(), on_this_thread, [a_check(check, Judgement(quiet="All is well."))])
    assert list(verdicts_of(folder)) == ["second"]
    assert Path(folder.uri, TRENDS.name).is_dir()


def test_an_unfinished_snapshot_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="holds no _SUCCESS"):
        diagnose(SnapshotFolder(LocalFiles(), str(tmp_path)), Policy(), on_this_thread)


STEP = timedelta(minutes=10)
Told = dict[tuple[str, str], dict[int, float]]


def a_snapshot(steps_ago: int = 0, connections: float | None = None, **backlogs: int) -> Rows:
    """A broker that runs for a day, has accepted so many connections and holds topics with these backlogs."""
    series = {STARTED: NOW.timestamp() - 86_400, ACTIVE: 5, SUCCEEDED: connections}
    return {
        "snapshot": [
            {"cluster": CLUSTER, "taken_at": NOW - steps_ago * STEP, "unread_brokers": [], "unread_namespaces": []}
            | {"coordinators": 16}
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


@row_by_row(
    "before, now, started_steps_ago, rate",
    (100.0, 700.0, 9, 1.0),
    (100.0, 100.0, 9, 0.0),
    (700.0, 100.0, 9, None),
    (100.0, 700.0, 0.5, None),
)
def test_connections_per_second_are_those_since_the_snapshot_before(
    before: float, now: float, started_steps_ago: float, rate: float | None
) -> None:
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


@pytest.mark.parametrize("table", [FINDINGS, TRENDS])
def test_a_damaged_earlier_snapshot_is_passed_over(folder_of: FolderOf, table: Table) -> None:
    """A look is not lost for one that was cut off; those before the damaged one still count."""
    finding = Finding(check_id="finds", severity=Severity.WARNING, subject="t", evidence="There.")
    finds = [a_check("finds", Judgement(findings=(finding,)))]
    folders = [folder_of(a_snapshot(ago, t=ago)) for ago in (2, 1, 0)]
    for each in folders[:2]:
        diagnose(each, a_policy(), on_this_thread, finds)
    (part,) = Path(folders[1].uri, table.name).glob("*.parquet")
    part.write_bytes(b"PAR1")
    diagnose(folders[2], a_policy(), on_this_thread, finds)
    backlog = [row for row in open_snapshot(folders[2].uri).trends() if row.measure == measures.CLUSTER_BACKLOG]
    assert [row.taken_at for row in backlog] == [NOW - 2 * STEP, NOW]


def test_a_look_back_reads_the_tables_that_its_views_name(folder_of: FolderOf) -> None:
    """As of Kafka's replicas, which are a view of partitions: those that came back were out of sync before."""
    topics = ("orders", "payments")
    for ago, out in zip((1, 0), topics, strict=True):
        partitions = [
            {
                "topic": topic,
                "partition": number,
                "leader": 1,
                "replicas": [1, 3],
                "in_sync": [1] if topic == out else [1, 3],
            }
            for topic in topics
            for number in range(2)
        ]
        brokers = [{"id": number, "broker": f"broker {number}", "listed": True} for number in (1, 3)]
        about = {**a_snapshot(ago)["snapshot"][0], "system": "kafka"}
        folder = folder_of({"snapshot": [about], "kafka_partitions": partitions, "kafka_brokers": brokers})
        diagnose(folder, Policy(), on_this_thread, [FLAPPING])
    outlook, reason = verdicts_of(folder)["kafka-replicas-flapping"]
    assert outlook == Outlook.FOUND.value
    assert "2 replicas on broker 3 fell out of sync, and 2 others came back" in reason
