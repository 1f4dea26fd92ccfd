"""The command that says what an upgrade changes, what is in its way, and the order to do it in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lab.simulator import ClusterSpec
from lab.simulator import running_simulator as running
from pulsar_steward.planners.restarts.judge import RISKS
from tests.builders import broker
from tests.cases import row_by_row
from tests.unit.cli.conftest import sample, urls_of
from tests.unit.planners.upgrade.clusters import a_subscription, write_cluster
from tests.unit.report_checkup.snapshots import a_finding, a_verdict

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.golden import Golden
    from tests.unit.cli.conftest import Steward

CLEAR = [a_verdict(each, "clear") for each in RISKS]


def busy(folder: Path) -> str:
    """A cluster of 4.0.7 that is not ready."""
    found = a_finding(
        "warning", "ack-holes", subject="persistent://acme/orders/t subscription a", evidence="It has 12,345 ack holes."
    )
    verdicts = [
        a_verdict("ack-holes", "found", more=3),
        a_verdict("ledgers-under-replicated", "unknown", "No bookie was asked (`collect.metrics_urls`)."),
    ]
    away = {"others": 2, "bundles": 3, "topics": 10, "session_seconds": 30.0, "assigning_seconds": 1.0}
    away |= {"loading_seconds": 1.0, "reading_seconds": 0.0, "lost_seconds": 60}
    return write_cluster(
        folder,
        settings={
            "sslFactoryPlugin": "org.acme.Factory",
            "dispatcherMaxReadBatchSize": "200",
            "authenticationEnabled": "true",
            "maxUnloadPercentage": None,
        },
        subscriptions=[
            a_subscription("a", ack_holes=12_345),
            a_subscription("b", type="Key_Shared", entries_since_first_gap=40_000_000),
        ],
        client_versions=[
            {"broker": broker(0), "namespace": "acme/orders", "client_version": version, "producers": 1, "consumers": 2}
            for version in ("Pulsar-Java-v4.0.7", "2.6.2", "")
        ],
        findings=[found],
        verdicts=[*verdicts, *(each for each in CLEAR if each["check_id"] not in {it["check_id"] for it in verdicts})],
        failovers=[
            away | {"broker": broker(number), "ended_seconds": 40 - number, "delayed_messages": 1000 * number}
            for number in range(3)
        ],
    )


def test_all_of_it(steward: Steward, tmp_path: Path, golden: Golden) -> None:
    """Everything but addresses fits 80 columns."""
    ended = steward("upgrade", "--to", "5.0", "--snapshot", busy(tmp_path / "s"))
    assert (ended.code, ended.err) == (1, "")
    assert [line for line in ended.out.splitlines() if len(line) > 80 and "https://" not in line] == []
    golden(ended.out)
    assert [part for part in sample("upgrade.md") if part not in ended.out] == []


def test_the_same_for_programs(steward: Steward, tmp_path: Path) -> None:
    ended = steward("upgrade", "--to", "5.0.1", "--snapshot", busy(tmp_path / "s"), "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["state"], told["from"], told["to"]) == (1, "stop", ["4.0.7"], "5.0")
    lines = {each["subject"]: each for each in told["lines"]}
    assert lines["sslFactoryPlugin"] | {"words": "", "sources": []} == {
        "part": "gone", "subject": "sslFactoryPlugin", "state": "stop", "before": "org.acme.Factory", "after": None,
        "words": "", "sources": [], "idle": False,
    }  # fmt: skip
    assert lines["maxUnloadPercentage"]["state"] == "not told"
    assert all(each["sources"] for each in told["lines"])


@row_by_row(
    "changed, code, result",
    ({}, 0, "RESULT: nothing stops it."),
    ({"about": {"metadata_store": "etcd"}}, 1, "RESULT: not yet. 1 thing has to be done first; 0 things are not told."),
    ({"about": {"metadata_store": None}}, 2, "RESULT: not known. Nothing was found that stops it, but 1 thing is not"),
    ({"verdicts": CLEAR[1:]}, 2, "RESULT: not known."),
    ({"verdicts": [*CLEAR[1:], a_verdict(CLEAR[0]["check_id"], "unknown")]}, 2, "RESULT: not known."),
    ({"verdicts": [*CLEAR, a_verdict("tc-skew", "unknown")]}, 0, "RESULT: nothing stops it."),  # none is loaded
    ({"about": {"unread_brokers": [broker(9)]}}, 2, "RESULT: not known."),
    ({"settings": {"sslFactoryPlugin": None}}, 2, "RESULT: not known."),
    ({"findings": [a_finding("info")]}, 0, "RESULT: nothing stops it."),
    ({"findings": [a_finding("warning")]}, 1, "RESULT: not yet."),
    ({"findings": [a_finding("critical", "backlog-growing")]}, 0, "RESULT: nothing stops it."),
    ({"namespaces": [{"namespace": "acme/east/orders", "bundles": 4, "boundaries": []}]}, 1, "RESULT: not yet."),
)
def test_the_exit_code_is_the_result(
    steward: Steward, tmp_path: Path, changed: dict[str, Any], code: int, result: str
) -> None:
    """0: nothing stops it, 1: something does, 2: that is not known."""
    ended = steward("upgrade", "--to", "5.0", "--snapshot", write_cluster(tmp_path / "s", **changed))
    assert (ended.code, result in ended.out, ended.err) == (code, True, "")


def test_a_running_cluster_is_read(steward: Steward) -> None:
    """Its settings and its Java are told, and what no simulated bookie tells is not."""
    with running(ClusterSpec()) as cluster:
        ended = steward("upgrade", "--to", "5.0", *urls_of(cluster))
    assert (ended.code, "RESULT: not yet." in ended.out) == (1, True)
    assert "NOT TOLD ledgers-under-replicated" in ended.out
    assert "defaultNumberOfNamespaceBundles 4 -> 32" in ended.out
    assert "NOT TOLD: the value of" not in ended.out
    assert "STOP Java 17.0.21+9-Debian-1: 5.0 needs 21 or newer" in ended.out


@row_by_row(
    "to, versions, words",
    ("4.2", ("4.0.7",), "only an upgrade to 5.0 is known"),
    ("5.01", ("4.0.7",), "only an upgrade to 5.0 is known"),
    ("5.0", ("2.10.4", "4.0.7"), "brokers run 2.10.4, 4.0.7: the report begins with 3.0"),
    ("5.0", ("5.0.1",), "brokers run 5.0.1: none is left to be upgraded to 5.0"),
    ("5.0", (None, "main"), "no broker tells a version of Pulsar"),
)
def test_clusters_that_are_not_reported_on(
    steward: Steward, tmp_path: Path, to: str, versions: tuple[str | None, ...], words: str
) -> None:
    ended = steward("upgrade", "--to", to, "--snapshot", write_cluster(tmp_path / "s", versions=versions))
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


def test_a_broker_without_a_version_is_not_known(steward: Steward, tmp_path: Path) -> None:
    ended = steward("upgrade", "--to", "5.0", "--snapshot", write_cluster(tmp_path / "s", versions=("4.0.7", None)))
    assert (ended.code, f"NOT TOLD version of {broker(1)}" in ended.out) == (2, True)


def test_a_kafka_cluster_is_not_reported_on(steward: Steward, tmp_path: Path) -> None:
    place = write_cluster(tmp_path / "s", about={"system": "kafka"})
    ended = steward("upgrade", "--to", "5.0", "--snapshot", place)
    assert (ended.code, ended.out) == (2, "")
    assert "is a snapshot of a Kafka cluster" in ended.err


def test_of_a_setting_that_one_broker_does_not_tell_the_others_are_told(steward: Steward, tmp_path: Path) -> None:
    rows = [{"broker": broker(0), "key": "maxUnloadPercentage", "value": "0.2"}]
    out = steward("upgrade", "--to", "5.0", "--snapshot", write_cluster(tmp_path / "s", configuration=rows)).out
    assert f"maxUnloadPercentage 0.2 -> 0.5: On {broker(0)}: AvgShedder" in " ".join(out.split())
    assert "not in the snapshot, of all or some brokers: " in " ".join(out.split())


def test_from_3_the_way_is_by_4(steward: Steward, tmp_path: Path) -> None:
    of_3_0 = {"topicCompactionRetainNullKey": "true", "streamingDispatch": "false"}
    of_3_0 |= {"preciseTopicPublishRateLimiterEnable": "false"}
    place = write_cluster(tmp_path / "s", versions=("3.0.7",), settings=of_3_0)
    ended = steward("upgrade", "--to", "5.0", "--snapshot", place)
    assert ended.code == 0
    assert "From 3.0 go to the newest 4.0.x first" in ended.out
    assert "topicCompactionRetainNullKey true -> false" in ended.out


def test_an_absence_that_its_check_could_not_judge_is_not_told(steward: Steward, tmp_path: Path) -> None:
    away = {"broker": broker(0), "ended_seconds": 1, "lost_seconds": 1, "others": 0, "bundles": 0, "topics": 0}
    away |= dict.fromkeys(("assigning_seconds", "loading_seconds", "reading_seconds", "session_seconds"), 0.0)
    verdicts = [*(it for it in CLEAR if it["check_id"] != "failover-time"), a_verdict("failover-time", "unknown")]
    place = write_cluster(
        tmp_path / "s", versions=("4.0.7",), failovers=[away | {"delayed_messages": 0}], verdicts=verdicts
    )
    out = " ".join(steward("upgrade", "--to", "5.0", "--snapshot", place).out.split())
    assert f"{broker(0)} (leads, so last; its topics are away for a time that is not told)" in out


def test_what_is_off_already_is_not_switched(steward: Steward, tmp_path: Path) -> None:
    """Nor switched on afterwards."""
    off = {"loadBalancerSheddingEnabled": "false", "loadBalancerAutoBundleSplitEnabled": "false"}
    out = " ".join(
        steward("upgrade", "--to", "5.0", "--snapshot", write_cluster(tmp_path / "s", settings=off)).out.split()
    )
    assert "loadBalancerSheddingEnabled and loadBalancerAutoBundleSplitEnabled are off already: leave them so." in out
    assert "Set to false" not in out
    assert "Set back" not in out


def test_what_the_cluster_has_none_of_is_one_line(steward: Steward, tmp_path: Path) -> None:
    place = write_cluster(tmp_path / "s", about={"coordinators": 0})
    out = " ".join(steward("upgrade", "--to", "5.0", "--snapshot", place).out.split())
    assert "- does not touch this cluster: managedLedgerMaxUnackedRangesToPersist, " in out
    assert "- does not touch this cluster: transactionCoordinatorScalableTopicsEnabled. " in out
    assert not [words for words in ("None of", " 0 cursors", " 0 Key_Shared", "No transactions here") if words in out]


def test_many_brokers_are_in_order(steward: Steward, tmp_path: Path) -> None:
    """The leader is last, and those between are counted."""
    place = write_cluster(tmp_path / "s", versions=("4.0.7",) * 9, metrics=[])
    words = " ".join(steward("upgrade", "--to", "5.0", "--snapshot", place).out.split())
    assert (
        f"{broker(4)} (its topics are away for a time that is not told); 4 more; {broker(0)} (leads, so last;" in words
    )


@pytest.mark.parametrize(("version", "code"), [("21.0.5", 0), ("25", 0), ("1.8.0_402", 1), ("17.0.21+9", 1)])
def test_java_of_brokers(steward: Steward, tmp_path: Path, version: str, code: int) -> None:
    """One that is too old stops the upgrade, unless an image brings another."""
    row = {"source": broker(0), "source_kind": "broker", "series": "jvm_info", "value": 1.0}
    rows = [row | {"labels_json": json.dumps({"version": version})}]
    ended = steward("upgrade", "--to", "5.0", "--snapshot", write_cluster(tmp_path / "s", metrics=rows))
    out, said = " ".join(ended.out.split()), "5.0 needs 21 or newer, best 25 with ZGC: install it, or take the official"
    assert (ended.code, f"Java {version}: {said if code else 'new enough'}" in out) == (code, True)
    assert f"NOT TOLD Java: 5.0 needs 21 or newer, best 25 with ZGC ({broker(1)}" in out
