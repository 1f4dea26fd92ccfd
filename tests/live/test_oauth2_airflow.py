"""OAuth2 from Airflow's connections: observed by Spark, approved by a person, carried out and published.

All that Airflow, Spark and Steward wrote is searched for the secrets, XComs and the rows of both databases too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import MetaData, create_engine, select

from lab.tokens import AUDIENCE
from tests.live.care import Care
from tests.live.reached import assert_told_by_nothing, by_access_tokens
from tests.live.test_oauth2 import SECRET, credentials, published
from tests.oauth2_issuer import Issuer
from tests.unit.pulsar.scripted import scripted_brokers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.airflow.server import Airflow
    from lab.cluster import Lab
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.extended("tests/live/test_healing.py", "tests/unit/orchestration/test_access.py"),
]

CLUSTER = "byissuer"


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Lab:
    """Two brokers."""
    return by_access_tokens(labs)


@pytest.fixture
def issuer(lab: Lab) -> Iterator[Issuer]:
    """Gives tokens that are good for an hour, and says that they are for two seconds."""
    with scripted_brokers() as start:
        issuer = Issuer(start(), lambda: lab.access_token(3600), SECRET)
        issuer.expires_in = 2
        yield issuer


@pytest.fixture
def care(airflow: Airflow, lab: Lab, issuer: Issuer) -> Iterator[Care]:
    """The lab by its ports for TLS, with client credentials in both connections."""
    mine = {"login": "steward", "password": SECRET}
    extra = {"issuer_url": issuer.url, "audience": AUDIENCE, "ca_file": str(lab.ca_file)}
    admin = {"conn_type": "http", **mine, "extra": {**extra, "urls": lab.admin_urls_tls, "no_policy_file": True}}
    events = {"conn_type": "generic", **mine, "extra": {**extra, "service_url": lab.service_url_tls}}
    documents = {
        f"AIRFLOW_CONN_PULSAR_ADMIN_{CLUSTER.upper()}": json.dumps(admin),
        f"AIRFLOW_CONN_PULSAR_EVENTS_{CLUSTER.upper()}": json.dumps(events),
    }
    with Care.taken(airflow, lab, CLUSTER, documents) as care:
        yield care


def rows_in(url: str) -> str:
    """Every row of a database."""
    engine, tables = create_engine(url), MetaData()
    try:
        tables.reflect(engine)
        with engine.connect() as connection:
            return "\n".join(str(row) for table in tables.sorted_tables for row in connection.execute(select(table)))
    finally:
        engine.dispose()


def test_from_an_observation_to_its_proof(care: Care, issuer: Issuer, tmp_path: Path) -> None:
    """Coordinators are spread by way of Airflow with many access tokens, and no secret is written anywhere."""
    care.lab.pile_up_tcs()
    care.observe()
    (question,) = care.approvals(1)
    care.approve(question)
    assert care.ended(question) == "success"
    assert care.placement() == [8, 8]
    issuer.expires_in = 60
    events = published(care.lab, issuer, credentials(tmp_path, issuer), CLUSTER)
    assert [event["result"] for event in events if event["event"] != "outcome"] == ["approved", "proved"]
    assert {event["result"] for event in events if event["event"] == "outcome"} == {"done"}
    assert len(issuer.given) > 5
    written = [json.dumps(events), *(rows_in(url) for url in (care.airflow.spec.database, care.airflow.spec.ledger))]
    assert all(CLUSTER in text for text in written)
    assert_told_by_nothing([SECRET, *issuer.given], care.lab, care.airflow.spec.home, *written)
