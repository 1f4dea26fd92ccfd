"""Pages and API on restarts and upgrades: what the observation kept, with its age."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pulsar_steward.planners.foretold import foretell
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder
from tests.builders import NOW, a_policy, broker
from tests.ledgers import ledger_at
from tests.unit.pages.conftest import Client, pages_of
from tests.unit.pages.scenes import stamp
from tests.unit.pages.test_pages import words
from tests.unit.planners.restarts.scenes import topic_on, write_calm
from tests.unit.planners.restarts.test_judge import found

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

HOLES = found("ack-holes", "critical", f"{topic_on(1)} subscription s")


def shown(folder: Path, at: datetime = NOW, *, foretold: bool = True, **tables: Any) -> Client:
    """The pages of a cluster that was observed then."""
    ledger_at(f"sqlite:///{folder / 'ledger.db'}").dispose()
    about = {"snapshot_id": f"east-{stamp(at)}", "taken_at": at}
    place = write_calm(folder / "snapshots" / "cluster=east" / f"taken_at={stamp(at)}", about=about, **tables)
    if foretold:
        foretell(SnapshotFolder(LocalFiles(), place), a_policy())
    return pages_of(folder)


def test_each_brokers_verdict_is_beside_it(tmp_path: Path) -> None:
    client = shown(tmp_path, **HOLES)
    told = client.get("/api/clusters/east/restarts").json()
    assert {each["broker"]: each["verdict"] for each in told} == {
        broker(0): "may", broker(1): "better not", broker(2): "may"
    }  # fmt: skip
    assert [each["subject"] for each in told[1]["against"]] == ["ack-holes"]
    page = client.get("/clusters/east").text
    assert re.findall(r'href="#may-restart-[^"]*"><span class="pill (\w+)">', page) == ["clear", "critical", "clear"]
    read = words(client, "/clusters/east")
    assert f"{broker(1)} better not ack-holes Acknowledged messages come again" in read
    assert f"{broker(2)} may Nothing speaks against it. What comes with it" in read


def test_an_old_snapshot_tells_nothing_of_now(tmp_path: Path) -> None:
    """What stopped it then is told all the same."""
    client = shown(tmp_path, NOW - timedelta(hours=2), **HOLES)
    told = {each["broker"]: each for each in client.get("/api/clusters/east/restarts").json()}
    assert (told[broker(0)]["verdict"], told[broker(1)]["verdict"]) == ("not known", "better not")
    assert [each["subject"] for each in told[broker(0)]["against"]] == ["age"]


def test_the_upgrade_is_a_page_of_its_own(tmp_path: Path) -> None:
    """The same lines as those of the command, with links to their sources."""
    client = shown(tmp_path, settings={"sslFactoryPlugin": "org.acme.Factory"})
    told = client.get("/api/clusters/east/upgrade").json()
    subjects = {each["subject"] for each in told["report"]["lines"]}
    assert (told["state"], told["report"]["versions"], "sslFactoryPlugin" in subjects) == ("stop", ["4.0.7"], True)
    read = words(client, "/clusters/east/upgrade")
    assert "RESULT: not yet. 1 thing has to be done first" in read
    assert "STOP sslFactoryPlugin org.acme.Factory: 5.0 rejects it" in read
    assert 'href="https://pulsar.apache.org/docs/5.0.x/' in client.get("/clusters/east/upgrade").text
    assert '/steward/clusters/east/upgrade"' in client.get("/clusters/east").text


def test_a_cluster_without_an_upgrade_before_it_says_why(tmp_path: Path) -> None:
    rows = [{"broker": broker(0), "read": True, "leader": True, "pulsar_version": "5.0.1", "read_milliseconds": 3}]
    ended = shown(tmp_path, brokers=rows).get("/api/clusters/east/upgrade")
    assert (ended.status_code, "none is left to be upgraded to 5.0" in ended.text) == (404, True)


def test_a_snapshot_of_before_keeps_neither(tmp_path: Path) -> None:
    client = shown(tmp_path, foretold=False)
    assert client.get("/api/clusters/east/restarts").json() == []
    assert "This snapshot keeps no verdict on restarts" in words(client, "/clusters/east")
    assert client.get("/clusters/east/upgrade").status_code == 404
