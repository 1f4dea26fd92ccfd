"""What several snapshots, partitions and plans add to a cluster's page: one row a topic, plots, and frames of moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.model.health import ClusterHealth
from pulsar_steward.pages.clusters import cluster_cards
from tests.builders import NOW, broker
from tests.unit.pages.conftest import pages_of
from tests.unit.pages.scenes import QUARTER, Telling, a_bundle, observed, sources_of, system_bundles, tc_batch
from tests.unit.report_checkup.snapshots import a_finding, a_verdict

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.ledger.write import LedgerWriter
    from tests.unit.pages.conftest import Client

TOPIC = "persistent://acme/orders/created"
NEAR = "backlog-near-quota"


def full(topic: str, partitions: int) -> list[dict[str, object]]:
    """Findings of a topic's partitions."""
    names = [f"{topic}-partition-{number}" for number in range(partitions)]
    return [a_finding("critical", NEAR, subject=each, evidence=f"{each} is full.") for each in names]


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """Pages of a cluster with more full partitions in each of three snapshots."""
    open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}").dispose()
    for number in (3, 2, 1):
        findings = [*full(TOPIC, 30 // number), *full("persistent://acme/orders/paid", 2)]
        verdicts = [a_verdict(NEAR, "found", "Some.")]
        observed(tmp_path / "snapshots", "east", NOW - number * QUARTER, findings=findings, verdicts=verdicts)
    return pages_of(tmp_path)


def test_partitions_of_one_topic_are_one_row(client: Client) -> None:
    """With their number, which leads to each of them; programs get every finding."""
    page = client.get("/clusters/east").text
    rows = page[page.index('aria-label="Findings"') :].split("</table>")[0]
    assert rows.count('<tr class="row">') == 2
    assert "and 29 more partitions" in rows
    assert "and 1 more partition<" in rows
    each = client.get(f"/clusters/east?check={NEAR}&text={TOPIC}&each=1").text
    assert each.count(f"<code>{TOPIC}-partition-") == 25
    assert len(client.get("/api/clusters/east/findings?size=100").json()["findings"]) == 32
    trouble = client.get(f"/clusters/east/troubles/{NEAR}.soon").text
    assert trouble.count(f"<code>{TOPIC}-partition-") == 1
    assert "and 29 more partitions" in trouble


def test_a_trouble_of_many_topics_has_a_plot(client: Client) -> None:
    """Of no topic the snapshots have a trend: the plot is of the findings, and says so."""
    page = client.get(f"/clusters/east/troubles/{NEAR}.soon").text
    assert f"{NEAR}, critical" in page
    assert "12 then, 32 now" in page
    assert "12 → 32" in client.get("/clusters/east").text


def test_moved_coordinators_have_a_frame(tmp_path: Path, writer: LedgerWriter) -> None:
    """Their bundles are among the smallest of a broker, and some have no loaded topic."""
    small = [{**each, "topics": 0} if place else each for place, each in enumerate(system_bundles())]
    bundles = [*(a_bundle("acme/orders", place, 0, 100) for place in range(70)), *small]
    observed(tmp_path / "snapshots", "east", NOW, bundles=bundles)
    telling = Telling(writer)
    plan = telling.planned("east", [tc_batch("east")], NOW)
    telling.asked(plan, "b1", "pulsar_remediate/r/0", NOW)
    page = pages_of(tmp_path).get("/clusters/east").text
    assert page.count(' moves"') == 1 + len(small)
    assert "pulsar/system/0x00000000_0x00000001: 4 topics" in page
    assert "10 smaller bundles: 1,000 topics" in page
    assert f"to move to {broker(1)}" in page


def test_what_was_found_and_cannot_be_judged_now_is_not_healthy(tmp_path: Path) -> None:
    """The page says what the check-up says: the finding stands until a look judges it again."""
    open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}").dispose()
    shelf, clear = tmp_path / "snapshots", a_verdict("hot-bundle", "clear")
    blind = [clear, a_verdict("tc-skew", "unknown", "No broker owns pulsar/system.")]
    observed(shelf, "east", NOW - QUARTER, findings=[a_finding()], verdicts=[clear, a_verdict("tc-skew", "found")])
    observed(shelf, "east", NOW, verdicts=blind)
    observed(shelf, "west", NOW, verdicts=blind)
    east, west = cluster_cards(sources_of(tmp_path))
    assert (east.health, west.health) == (ClusterHealth.UNKNOWN, ClusterHealth.HEALTHY)
    assert east.found is not None
    assert east.found.verdict.startswith("tc-skew was critical at ")
    assert east.found.verdict.endswith(" and cannot be judged now: No broker owns pulsar/system")
