"""Kafka clusters are read into snapshots: in few requests, within a time, and what was not read is said."""

from __future__ import annotations

import ast
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pulsar_steward.collect.kafka.collecting import KEPT, MIN_IN_SYNC, KafkaOrder, collect_kafka
from pulsar_steward.collect.kafka.groups import AGES
from pulsar_steward.collect.kafka.reader import KafkaPartition, KafkaReader, OutOfTime
from pulsar_steward.collect.kafka.settings import ISSUER, KafkaSettings, kafka_in, properties_in, secrets_of_kafka
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.finding import Outlook
from pulsar_steward.model.system import System
from pulsar_steward.model.tables import KAFKA_GROUPS, KAFKA_LAGS, KAFKA_PARTITIONS, KAFKA_TOPICS
from pulsar_steward.pages.findings import sections
from pulsar_steward.planners.from_snapshot import Moves, plan_without_steps, planning_facts_of
from pulsar_steward.policy.schema import KafkaPolicy, Policy
from pulsar_steward.report.checkup.compose import checkup_of
from pulsar_steward.report.checkup.html import as_html
from pulsar_steward.report.checkup.terminal import lines
from pulsar_steward.report.overview import summary_of
from pulsar_steward.runtime.parallel import on_this_thread
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from pulsar_steward.snapshots.read import Snapshot, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

COLLECTOR = Path(__file__).resolve().parents[3] / "plugins" / "pulsar_steward" / "collect" / "kafka"

READING = {
    "describe_cluster",
    "describe_configs",
    "list_consumer_group_offsets",
    "list_consumer_groups",
    "list_offsets",
    "list_topics",
    "poll",  # calls back with errors
}
"""Methods of the client that only read."""

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def test_the_client_is_only_asked_to_read() -> None:
    called = {
        node.attr
        for file in COLLECTOR.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self._client"
    }
    assert called == READING


def test_a_machine_without_the_client_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ConfigurationError, match="pip install 'pulsar-steward\\[kafka\\]'"):
        KafkaReader(KafkaSettings(servers="kafka:9092"), KafkaPolicy())


class Cluster:
    """A cluster of two brokers that answers like `KafkaReader`; a third one is down.

    Args:
        groups: Committed offsets by group and partition, or why they cannot be read.
        requests: How many lists of groups' offsets there is time for.
        start: Offset of the oldest message that is kept.
        mute: Partitions that tell no offset of a time, and such as tell none at all.
        mum: Why topics do not tell their settings; empty: they do.
    """

    END = 1_000

    def __init__(
        self,
        groups: dict[str, dict[KafkaPartition, int] | str],
        requests: int = 100,
        *,
        start: int = 0,
        mute: tuple[Sequence[KafkaPartition], Sequence[KafkaPartition]] = ((), ()),
        mum: str = "",
    ) -> None:
        self._groups, self._left = groups, requests
        self._start, self._ageless, self._mute = start, {*mute[0], *mute[1]}, mute[1]
        self._mum = mum
        self.requests = 0
        self.asked: list[tuple[str, int]] = []

    def metadata(self) -> Any:
        """Of a topic `orders`, whose last partition has no leader."""
        parts = {
            number: SimpleNamespace(
                id=number, leader=number % 2 + 1, replicas=[number % 2 + 1, 3], isrs=[number % 2 + 1]
            )
            for number in range(4)
        } | {4: SimpleNamespace(id=4, leader=-1, replicas=[3], isrs=[3])}
        return SimpleNamespace(
            cluster_id="abc",
            brokers={n: SimpleNamespace(id=n, host="kafka", port=9092 + n) for n in (1, 2)},
            topics={
                "orders": SimpleNamespace(error=None, partitions=parts),
                "whole": SimpleNamespace(
                    error=None, partitions={0: SimpleNamespace(id=0, leader=1, replicas=[1, 2], isrs=[2, 1])}
                ),
            },
        )

    def racks(self) -> dict[int, str | None]:
        """Of those that are listed."""
        return {1: "a", 2: None}

    def settings(self, brokers: Sequence[int], names: frozenset[str]) -> dict[int, dict[str, str] | str]:
        """Of the first broker alone."""
        assert names == KEPT
        return {1: {"min.insync.replicas": "1"}, 2: "it is away"} if brokers == [1, 2] else {}

    def topic_settings(self, topics: Sequence[str], names: frozenset[str]) -> dict[str, dict[str, str] | str]:
        """Of topics with a replica that is missing or out of sync, and of no others."""
        assert names == {MIN_IN_SYNC}
        return {each: self._mum or {MIN_IN_SYNC: "2"} for each in topics}

    def groups(self) -> tuple[dict[str, str], list[str]]:
        """All of them."""
        return dict.fromkeys(self._groups, "stable"), []

    def committed(self, groups: Sequence[str]) -> dict[str, dict[KafkaPartition, int] | str]:
        """While there is time."""
        if self._left == 0:
            raise OutOfTime("the time was over")
        self._left -= 1
        return {each: self._groups[each] for each in groups}

    def ends(self, partitions: Sequence[KafkaPartition]) -> dict[KafkaPartition, int]:
        """The same for all partitions."""
        self.asked.append(("end", len(partitions)))
        return {each: self.END for each in partitions if each not in self._mute}

    def starts(self, partitions: Sequence[KafkaPartition]) -> dict[KafkaPartition, int]:
        """The same for all partitions."""
        return dict.fromkeys(partitions, self._start)

    def first_since(self, partitions: Sequence[KafkaPartition], milliseconds: int) -> dict[KafkaPartition, int]:
        """A message was written each minute until now, the last one with the offset before the end."""
        age = NOW.timestamp() - milliseconds / 1000
        self.asked.append((f"{age:.0f}", len(partitions)))
        since = max(self.END - round(age / 60), self._start)
        return {each: -1 if since == self.END else since for each in partitions if each not in self._ageless}


def taken(cluster: Cluster, folder: Path, limits: KafkaPolicy | None = None) -> Snapshot:
    """The snapshot of a cluster, diagnosed."""
    place = SnapshotFolder(LocalFiles(), snapshot_uri(str(folder), "k", NOW))
    order = KafkaOrder("k", NOW, "kafka:9093", limits or KafkaPolicy(), cluster.metadata())
    collect_kafka(cast("KafkaReader", cluster), order, place)
    diagnose(place, Policy(), on_this_thread)
    return open_snapshot(place.uri)


def test_a_snapshot_tells_partitions_brokers_and_groups(tmp_path: Path) -> None:
    """A partition without a leader is asked for no offset; a broker that holds replicas and is not listed is down."""
    orders = [KafkaPartition("orders", number) for number in range(5)]
    cluster = Cluster({"app": {orders[0]: 980, orders[1]: 1_000, orders[4]: 0}, "gone": "not allowed"})
    snapshot = taken(cluster, tmp_path)
    meta = snapshot.meta()
    assert (meta.system, meta.servers, meta.pulsar_cluster) == (System.KAFKA, "kafka:9093", "abc")
    assert meta.unread == ("broker 2", "offsets of 1 consumer group, such as gone: not allowed")
    assert [(row.broker, row.read, row.topics) for row in snapshot.brokers()] == [
        ("broker 1", True, 3),
        ("broker 2", False, 2),
        ("broker 3", False, 0),
    ]
    assert snapshot.table(KAFKA_PARTITIONS, ["leader"]).column(0).to_pylist() == [1, 2, 1, 2, None, 1]
    assert snapshot.table(KAFKA_TOPICS).to_pylist() == [{"topic": "orders", "min_in_sync": 2}]
    assert snapshot.table(KAFKA_GROUPS).drop(["state"]).to_pylist() == [
        {"group_id": "app", "partitions": 3, "untold": 1, "lag_messages": 20, "topics": ["orders"]},
        {"group_id": "gone", "partitions": None, "untold": None, "lag_messages": None, "topics": None},
    ]
    assert snapshot.table(KAFKA_LAGS).to_pylist() == [
        {
            "group_id": "app",
            "topic": "orders",
            "partition": 0,
            "committed": 980,
            "start_offset": 0,
            "end_offset": 1_000,
            "behind_seconds": 900,  # 20 minutes
            "timed": True,
        }
    ]
    assert cluster.asked == [("end", 2), ("60", 1), ("300", 1), ("900", 1), ("1800", 1)]


@pytest.mark.parametrize(("start", "seconds"), [(980, 900), (Cluster.END, 0)])
def test_a_deleted_message_has_no_age(tmp_path: Path, start: int, seconds: int) -> None:
    """The oldest message that is kept is what a group reads next; if none is kept, nothing waits."""
    snapshot = taken(Cluster({"app": {KafkaPartition("orders", 0): 10}}, start=start), tmp_path)
    assert snapshot.table(KAFKA_LAGS, ["start_offset", "behind_seconds"]).to_pylist() == [
        {"start_offset": start, "behind_seconds": seconds}
    ]
    (finding,) = (each for each in snapshot.findings() if each.check_id == "kafka-group-lag")
    assert f"of which {start - 10:,} were deleted unread" in finding.evidence


def test_offsets_that_nobody_told_are_unknown(tmp_path: Path) -> None:
    """Neither the end of a partition, nor the age of a message, is taken for a group that is current."""
    orders = [KafkaPartition("orders", number) for number in range(5)]
    for number, mute in enumerate((((), orders), (orders, ()))):
        snapshot = taken(Cluster({"app": {orders[0]: 10}}, mute=mute), tmp_path / str(number))
        (verdict,) = (each for each in snapshot.verdicts() if each.check_id == "kafka-group-lag")
        assert (verdict.outlook, verdict.reason) == (
            Outlook.UNKNOWN,
            "Some partitions of 1 consumer group did not tell their offsets.",
        )
        assert snapshot.meta().unread[1:] == ("ends or ages of some partitions of 1 consumer group, such as app",)


def test_an_offset_beyond_the_end_is_no_current_group(tmp_path: Path) -> None:
    """It is kept and told as such; its lag is 0, and no age is asked of it."""
    place = KafkaPartition("orders", 0)
    cluster = Cluster({"app": {place: Cluster.END + 7}, "current": {place: Cluster.END}})
    snapshot = taken(cluster, tmp_path)
    rows = snapshot.table(KAFKA_LAGS, ["group_id", "committed", "end_offset", "timed"]).to_pylist()
    assert rows == [{"group_id": "app", "committed": 1_007, "end_offset": 1_000, "timed": False}]
    assert snapshot.table(KAFKA_GROUPS, ["lag_messages"]).column(0).to_pylist() == [0, 0]
    assert cluster.asked == [("end", 1)]
    (finding,) = (each for each in snapshot.findings() if each.check_id == "kafka-group-lag")
    assert (finding.subject, finding.figures["beyond"]) == ("group app", 1)


def test_topics_that_do_not_tell_their_settings_are_unread(tmp_path: Path) -> None:
    snapshot = taken(Cluster({}, mum="not allowed"), tmp_path)
    assert snapshot.meta().unread[1:] == ("settings of 1 topic, such as orders: not allowed",)
    assert snapshot.table(KAFKA_TOPICS).num_rows == 0


def test_brokers_that_do_not_answer_are_waited_for_once(request: pytest.FixtureRequest) -> None:
    """One time for all requests, of which each takes half of the rest: what comes later is given up at once."""
    mute = socket.create_server(("127.0.0.1", 0))
    request.addfinalizer(mute.close)
    settings = KafkaSettings(servers=f"127.0.0.1:{mute.getsockname()[1]}")
    reader = KafkaReader(settings, KafkaPolicy(request_timeout_seconds=2, total_seconds=60))
    told: list[object] = []

    def asked_for_ever() -> None:
        while True:
            told.extend(reader.committed(["app"]).values())

    with pytest.raises(OutOfTime, match=r"kafka.request_timeout_seconds \(2\) were waited for brokers that do not"):
        asked_for_ever()
    assert 1 <= len(told) <= 2
    assert {type(each) for each in told} == {str}
    with pytest.raises(OutOfTime):
        reader.ends([KafkaPartition("orders", 0)])
    why = reader.topic_settings(["orders"], KEPT)["orders"]
    assert isinstance(why, str)
    assert "were waited for brokers that do not answer" in why


def test_groups_are_read_some_at_a_time_until_the_time_is_over(tmp_path: Path) -> None:
    """The rest is said not to be read; only the partitions that a group is most behind on are asked for ages."""
    committed = {KafkaPartition("orders", number): number for number in range(4)}
    limits = KafkaPolicy(groups_at_once=2, timed_partitions=1)
    cluster = Cluster(dict.fromkeys("abcde", committed), requests=2)
    snapshot = taken(cluster, tmp_path, limits)
    assert snapshot.meta().unread[1:] == ("offsets of 1 consumer group: the time was over",)
    assert {each for kind, each in cluster.asked if kind != "end"} == {1}
    assert len(cluster.asked) == 2 * (1 + next(place for place, age in enumerate(AGES, 1) if age > 1_000 * 60))
    assert sum(snapshot.table(KAFKA_LAGS, ["timed"]).column(0).to_pylist()) == 4


def test_nothing_is_planned_for_kafka(tmp_path: Path) -> None:
    """A check-up proposes nothing, and whatever plans refuses the snapshot; commands are filled in."""
    snapshot = taken(Cluster({"app": {KafkaPartition("orders", 0): 0}}), tmp_path)
    with pytest.raises(ConfigurationError, match="is a snapshot of a Kafka cluster, which Steward only looks at"):
        planning_facts_of(snapshot, Policy(), Moves())
    plan = plan_without_steps(snapshot, Policy())
    assert plan is not None
    checkup = checkup_of(snapshot, plan, Policy())
    assert checkup.planning.batches == ()
    assert {check.section for check in checkup.checks} == {"Kafka"}
    steps = [step for trouble in checkup.troubles for step in trouble.to_do]
    assert any("kafka-topics.sh --bootstrap-server kafka:9093 --describe" in step for step in steps)
    assert any("--describe --group app`" in step for step in steps)
    text = "\n".join(str(line) for line in lines(checkup, 100))
    assert "Check-up of k (calls itself abc), Kafka\n" in text
    assert "SERVERS" not in text
    assert "1 of 3 brokers read, 5 partitions with a leader, 1 consumer group;" in text
    page = as_html(checkup)
    assert ("<b>5</b><span>partitions with a leader</span>" in page, "namespaces</span>" in page) == (True, False)
    (section,) = sections(summary_of(snapshot))  # of Steward's pages
    assert [check.check_id for check in section.checks] == [check.check_id for check in checkup.checks]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"servers": "kafka"}, "'kafka' is no address of a Kafka broker"),
        ({"properties": {"plugin.library.paths": "x.so"}}, "'plugin.library.paths' of Kafka's client may not be given"),
        ({"properties": {"sasl.kerberos.kinit.cmd": "sh"}}, "'sasl.kerberos.kinit.cmd' of Kafka's client"),
        ({"properties": {ISSUER: "http://sso/token"}}, f"`{ISSUER}` has to begin with https"),
        ({"properties": {ISSUER: "https://me:s3cret@sso/token"}}, f"`{ISSUER}` has a user or password"),
        ({"properties": {"sasl.password": "s3cret"}}, "the password would travel unencrypted to kafka:9092"),
    ],
)
def test_settings_that_are_refused(given: dict[str, Any], words: str) -> None:
    """Those that run something, and a password that others could read."""
    with pytest.raises(ConfigurationError, match=words) as refused:
        KafkaSettings(**{"servers": "kafka:9092", **given})
    assert "s3cret" not in str(refused.value)


def test_settings_travel_by_the_environment(tmp_path: Path) -> None:
    """With their secrets, which are known there as such, and are not printed."""
    file = tmp_path / "kafka.properties"
    file.write_text("# login\nsecurity.protocol=SASL_SSL\n\nsasl.password = a=b \n", encoding="utf-8")
    settings = KafkaSettings(servers="kafka:9092,[::1]:9093", properties=properties_in(file))
    environment = settings.in_environment({"PATH": "/bin"})
    assert kafka_in(environment) == settings
    assert secrets_of_kafka(environment) == ("a=b",)
    assert "a=b" not in repr(settings)
    assert kafka_in({}) is None
    file.write_text("sasl.password", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="line 1: expected name=value"):
        properties_in(file)
