"""The command that says whether a broker may be restarted now: the verdict is the first line and the exit code."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lab.simulator import ClusterSpec
from lab.simulator import running_simulator as running
from pulsar_steward.report.restart import lines
from tests.builders import broker
from tests.cases import row_by_row
from tests.unit.cli.conftest import sample, urls_of
from tests.unit.planners.restarts.scenes import topic_on, verdict_on, write_calm
from tests.unit.planners.restarts.test_judge import found, judged

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.golden import Golden
    from tests.unit.cli.conftest import Steward

NOW = {"taken_at": datetime.now(UTC)}
HOLES = found("ack-holes", "critical", f"{topic_on(1)} subscription s")
UNTOLD = judged("ensemble-too-large", "unknown")


@row_by_row(
    "about, tables, code, verdict, first",
    (NOW, {}, 0, "may", f"RESULT: {broker(1)} may be restarted now."),
    (NOW, HOLES, 1, "better not", f"RESULT: better not restart {broker(1)} now, for 1 reason."),
    (NOW, UNTOLD, 2, "not known", f"RESULT: not known whether {broker(1)} may be restarted:"),
    ({}, {}, 2, "not known", f"RESULT: not known whether {broker(1)} may be restarted:"),
    ({}, HOLES, 1, "better not", f"RESULT: better not restart {broker(1)} now, for 1 reason; 1 thing is not told."),
)
def test_the_exit_code_is_the_verdict(
    steward: Steward, tmp_path: Path, about: dict[str, Any], tables: dict[str, Any], code: int, verdict: str, first: str
) -> None:
    """0: it may, 1: better not, 2: not known, also of an old snapshot."""
    place = write_calm(tmp_path / "s", about=about, **tables)
    ended = steward("may-restart", broker(1), "--snapshot", place)
    assert (ended.code, ended.err, " ".join(ended.out.split())[: len(first)]) == (code, "", first)
    told = json.loads(steward("may-restart", "broker-01", "--snapshot", place, "--json").out)
    assert (told["verdict"], told["broker"]) == (verdict, broker(1))


def test_a_broker_that_is_not_listed_is_an_error(steward: Steward, tmp_path: Path) -> None:
    ended = steward("may-restart", "other:8080", "--snapshot", write_calm(tmp_path / "s"))
    assert (ended.code, ended.out, "the cluster lists no such broker" in ended.err) == (2, "", True)


def test_a_running_cluster_is_asked(steward: Steward) -> None:
    with running(ClusterSpec()) as cluster:
        ended = steward("may-restart", cluster.active_brokers()[0], *urls_of(cluster))
    assert (ended.code, ended.out.splitlines()[0][:17]) == (2, "RESULT: not known")
    assert "others: There is no earlier look to compare with" in ended.out
    assert "ledgers-under-replicated: We could not check whether ledgers lack copies." in ended.out
    assert "This does not block the restart." in ended.out
    assert "room: " in ended.out


def test_a_name_that_fits_no_broker_ends_before_the_look(steward: Steward) -> None:
    with running(ClusterSpec()) as cluster:
        ended = steward("may-restart", "127.0.0.1", *urls_of(cluster))
    assert (ended.code, ended.out) == (2, "")
    assert "brokers run on 127.0.0.1: name one with its port" in ended.err
    assert "collecting" not in ended.err


def test_what_is_read(tmp_path: Path, golden: Golden) -> None:
    """One that better waits, and one that may."""
    held = "has 12,345 ack holes, 123 % of the 10,000 that broker-01:8080 persists"
    evidence = f"Subscription s of {topic_on(1)} {held}: a restart or move now delivers acknowledged messages again."
    finding = HOLES["findings"][0] | {"evidence": evidence}
    place = write_calm(tmp_path / "s", **HOLES | {"findings": [finding]})
    said = ["\n".join(line.plain for line in lines(verdict_on(place, number), 80)) for number in (1, 0)]
    for each in said:
        golden(each)
    assert sample("restart.md") == [f"{said[0]}\n"]
