"""How long each broker's topics would be gone, on the page and for programs, before somebody restarts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.pages.html import make_app
from pulsar_steward.pages.placement import LISTED_FAILOVERS
from tests.builders import NOW, broker
from tests.ledgers import ledger_at
from tests.unit.pages.conftest import Client
from tests.unit.pages.scenes import failover, observed, sources_of
from tests.unit.pages.test_pages import words
from tests.unit.report_checkup.snapshots import a_verdict

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden


def part_of(client: Client) -> str:
    """The part about restarts of the cluster's page, in words."""
    read = words(client, "/clusters/east")
    begin = read.index("Restarts how long")
    return read[begin : read.index(" with topics; as wide as", begin)]


def shown(folder: Path, **tables: Any) -> Client:
    """The pages of one snapshot with these tables, and of an empty ledger."""
    ledger_at(f"sqlite:///{folder / 'ledger.db'}").dispose()
    observed(folder / "snapshots", "east", NOW, **tables)
    return Client(make_app(sources_of(folder), lambda: None))


def test_what_the_cluster_page_says(client: Client, golden: Golden) -> None:
    """The cluster page lists the failover time of each broker, the longest first, with each part and the sum."""
    golden(part_of(client))


def test_the_api_tells_all(client: Client) -> None:
    """The API lists all failover times in the page's order, with each part as a field of its own."""
    told = client.get("/api/clusters/east/failovers").json()
    assert [each["broker"] for each in told["brokers"]] == [broker(place) for place in range(6)]
    assert told["brokers"][0] == failover(broker(0), 4000, others=5, delayed=6_400_000)
    assert told["unknown"] == ""
    assert client.get("/api/clusters/nowhere/failovers").status_code == 404


def test_what_the_check_cannot_tell_is_said(tmp_path: Path, golden: Golden) -> None:
    """The page shows the known figures, a broker without others to take over, and what the check could not tell."""
    client = shown(
        tmp_path,
        failovers=[failover(broker(0), 120, others=0)],
        verdicts=[a_verdict("failover-time", "unknown", "Nobody told of delayed messages.")],
    )
    golden(part_of(client))
    assert client.get("/api/clusters/east/failovers").json()["unknown"] == "Nobody told of delayed messages."


def test_of_very_many_brokers_those_that_take_longest_are_listed(tmp_path: Path) -> None:
    """The page lists the brokers that take longest and counts the others, and the API has all of them."""
    client = shown(tmp_path, failovers=[failover(broker(n), n, others=1) for n in range(LISTED_FAILOVERS + 2)])
    assert part_of(client).count(":8080") == LISTED_FAILOVERS
    assert "2 brokers take less." in part_of(client)
    assert len(client.get("/api/clusters/east/failovers").json()["brokers"]) == LISTED_FAILOVERS + 2
