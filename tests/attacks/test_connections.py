"""Two connections: what only looks never holds what may change, and what changes leads to the cluster that was seen."""

from __future__ import annotations

import json
import logging
import os
import secrets
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import Connection
from pydantic import SecretStr

from benchmarks.observing import collected_here
from lab.simulator import Answer, Fault, running_simulator
from pulsar_steward.checks.registry import BY_ID, CHECKS
from pulsar_steward.collect.collecting import CollectParameters
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.errors import ConfigurationError, Refused
from pulsar_steward.orchestration import batches, connections, observing, remediating, rolling_back, spark
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.orchestration.context import open_context
from pulsar_steward.orchestration.housekeeping import compare_ledger
from pulsar_steward.orchestration.remediating import RemediateParams
from pulsar_steward.orchestration.rolling_back import RollbackParams
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import OnThreads
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from tests.apply.worksite import RUN, SKEWED, Worksite, said
from tests.builders import CLUSTER
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lab.simulator import ClusterSpec, Simulator
    from pulsar_steward.checks.check import Check

LOOKING, CHANGING = secrets.token_hex(24), secrets.token_hex(24)
"""Hexadecimal, so that parts of them are masked as well: other tokens look random by chance only."""

ADMIN, CHANGE = f"pulsar_admin_{CLUSTER}", f"pulsar_change_{CLUSTER}"
REMEDY = RemediateParams(cluster=CLUSTER, plan_id=None)
LAST = RollbackParams(cluster=CLUSTER, plan_id=None, batch_id=None)


@contextmanager
def guarded(spec: ClusterSpec = SKEWED) -> Iterator[Simulator]:
    """A cluster that changes nothing for the token that looks."""
    with running_simulator(spec, token=CHANGING, looking_token=LOOKING, session_s=3600) as simulator:
        yield simulator


@pytest.fixture
def site(home: Path) -> Iterator[Worksite]:
    """Such a cluster, with the ledger that tasks find; its policy is the default."""
    with guarded() as simulator:
        engine = ledger_at(f"sqlite:///{home / 'ledger.db'}")
        yield Worksite(simulator, engine, policy=Policy(), token=SecretStr(CHANGING))
        engine.dispose()


@pytest.fixture
def defined(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def define(name: str, **fields: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps({"conn_type": "http", **fields}))

    return define


@pytest.fixture
def looked_at(site: Worksite, defined: Callable[..., None]) -> Worksite:
    """The site behind a connection to look at it."""
    defined(ADMIN, password=LOOKING, extra={"urls": site.simulator.admin_urls, "no_policy_file": True})
    return site


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The connections that were asked for, in order."""
    names: list[str] = []
    get = Connection.get

    def noted(name: str) -> Any:
        names.append(name)
        return get(name)

    monkeypatch.setattr(Connection, "get", noted)
    return names


def ref_of(site: Worksite) -> BatchRef:
    """An approved move of the first bundle, as tasks hand it on."""
    plan = site.approved(site.move(0))
    site.simulator.requests.clear()
    return BatchRef.of(plan, plan.batch("b1"))


def observed(site: Worksite, checks: Sequence[Check] = CHECKS, *, ago: timedelta = timedelta()) -> str:
    """A snapshot of some time ago, diagnosed, by the connection that looks."""
    taken_at = datetime.now(UTC).replace(microsecond=0) - ago
    folder = SnapshotFolder(LocalFiles(), snapshot_uri(observing.prepare(CLUSTER)[0]["root"], CLUSTER, taken_at))
    order = CollectParameters(cluster=CLUSTER, taken_at=taken_at, policy=site.policy.collect)
    collected_here(connections.admin_settings(CLUSTER, site.policy), order, folder)
    diagnose(folder, site.policy, OnThreads(2), checks)
    return folder.uri


def test_a_plan_task_that_comes_late_plans_no_old_snapshot(looked_at: Worksite, defined: Callable[..., None]) -> None:
    """Runs may overlap: the newest snapshot is planned, unless its time is in the future."""
    defined(CHANGE, password=CHANGING)
    site, run = looked_at, "pulsar_observe/scheduled"
    old, new, _ = (observed(site, [BY_ID["tc-skew"]], ago=timedelta(hours=hours)) for hours in (2, 1, -1))
    late = observing.plan_snapshot(CLUSTER, old, run)
    assert (late.plan_ids, late.reason.partition(": ")[2]) == ((), new.rpartition("/")[2])
    assert observing.plan_snapshot(CLUSTER, new, run).plan_ids


def test_only_the_task_that_carries_out_asks_for_the_connection_that_changes(
    looked_at: Worksite, defined: Callable[..., None], asked_for: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Only the task that carries a batch out asks for the connection that changes; all others ask to look.

    The log of the planning task names the plan.
    """
    caplog.set_level(logging.INFO)
    defined(CHANGE, password=CHANGING)
    site, run = looked_at, "pulsar_remediate/manual"
    planned = observing.plan_snapshot(CLUSTER, observed(site, [BY_ID["tc-skew"]]), run)
    assert planned.plan_ids
    assert f"plan {planned.plan_ids[0]} is recorded" in caplog.messages
    remediating.choose([REMEDY], run)
    remediating.dry_run([REMEDY], run)
    ref = ref_of(site)
    assert (CHANGE in asked_for, ADMIN in asked_for) == (False, True)

    asked_for.clear()
    (outcome,) = batches.apply_batch(ref, RUN)
    assert (outcome.outcome, CHANGE in asked_for) == ("done", True)
    assert not any(record.only_looks for record in site.simulator.requests.all())

    asked_for.clear()
    site.simulator.requests.clear()
    assert batches.was_approved(ref, RUN)
    assert batches.verify_batch(ref, RUN).proved
    batches.tell([ref], run)
    rolling_back.dry_run(LAST, "pulsar_rollback/manual")
    rolling_back.choose(LAST, "pulsar_rollback/manual")
    compare_ledger()
    with open_context(CLUSTER, run) as task, task.reading_here() as context:
        assert context.reader.identity() == site.identity
    assert (CHANGE in asked_for, ADMIN in asked_for) == (False, True)


def test_a_spark_job_gets_no_connection_that_changes(
    looked_at: Worksite, defined: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Spark job's environment has the token that looks, and an environment variable with the other is removed."""
    defined(CHANGE, password=CHANGING)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    spark.pass_settings(connections.admin_settings(CLUSTER, looked_at.policy))
    assert LOOKING in os.environ["STEWARD_ADMIN_TOKEN"]
    assert CHANGING not in str(os.environ)


def test_one_connection_is_enough(site: Worksite, defined: Callable[..., None]) -> None:
    """A single connection is enough to carry out an approved batch and to prove it."""
    defined(ADMIN, password=CHANGING, extra={"urls": site.simulator.admin_urls, "no_policy_file": True})
    ref = ref_of(site)
    assert said(batches.apply_batch(ref, RUN)) == ["done"]
    assert batches.verify_batch(ref, RUN).proved


def test_a_token_that_only_looks_changes_nothing(looked_at: Worksite) -> None:
    """A step fails with the cluster's 403 if the only connection has a token that may only look."""
    (outcome,) = batches.apply_batch(ref_of(looked_at), RUN)
    assert (outcome.outcome, "403" in outcome.reason) == ("failed", True)
    assert looked_at.owner(looked_at.tc_bundles[0]) == looked_at.brokers[0]


def test_a_connection_that_is_for_looking_alone_is_used_for_nothing_else(
    site: Worksite, defined: Callable[..., None]
) -> None:
    """A batch with a `read_only` connection alone is refused, even if its token would permit changes."""
    extra = {"urls": site.simulator.admin_urls, "no_policy_file": True, "read_only": True}
    defined(ADMIN, password=CHANGING, extra=extra)
    with pytest.raises(ConfigurationError, match=rf"{ADMIN}.*`read_only`.*no '{CHANGE}'.*add one"):
        batches.apply_batch(ref_of(site), RUN)
    assert site.untouched()


@pytest.mark.parametrize("cluster", ["prod", "local"])
@pytest.mark.parametrize("elsewhere", [ADMIN, CHANGE])
def test_two_connections_that_lead_to_two_clusters_change_neither(
    cluster: str, elsewhere: str, looked_at: Worksite, defined: Callable[..., None]
) -> None:
    """A batch is refused if its two connections lead to different clusters, even if these have the same name."""
    ref = ref_of(looked_at)
    with guarded(replace(SKEWED, cluster=cluster)) as other:
        urls = {ADMIN: looked_at.simulator.admin_urls, CHANGE: looked_at.simulator.admin_urls}
        urls[elsewhere] = other.admin_urls
        defined(ADMIN, password=LOOKING, extra={"urls": urls[ADMIN], "no_policy_file": True})
        defined(CHANGE, password=CHANGING, extra={"urls": urls[CHANGE]})
        with pytest.raises(
            Refused, match=rf"{CHANGE}' leads to .*{ADMIN}' to .*give both the addresses of one cluster"
        ):
            batches.apply_batch(ref, RUN)
        assert (other.requests.writes(), looked_at.untouched()) == ((), True)
    (outcome,) = looked_at.ledger.outcomes(ref.plan_id, "b1")
    assert (outcome.outcome, CHANGE in outcome.reason) == ("refused", True)


def test_where_one_cluster_cannot_be_proved_nothing_is_changed(
    looked_at: Worksite, defined: Callable[..., None]
) -> None:
    """A batch is refused if it cannot be read whether both connections lead to one cluster."""
    defined(ADMIN, password=LOOKING, extra={"urls": ["http://127.0.0.1:1"], "no_policy_file": True})
    defined(CHANGE, password=CHANGING, extra={"urls": looked_at.simulator.admin_urls})
    with pytest.raises(Refused, match="lead to one cluster cannot be read"):
        batches.apply_batch(ref_of(looked_at), RUN)
    assert looked_at.untouched()


def test_other_addresses_of_the_same_cluster_will_do(looked_at: Worksite, defined: Callable[..., None]) -> None:
    """The connection that changes may use another address of the same cluster."""
    defined(CHANGE, host=looked_at.simulator.admin_urls[1], password=CHANGING)
    assert said(batches.apply_batch(ref_of(looked_at), RUN)) == ["done"]


def repeat(cluster: Simulator, token: str, path: str, status: int) -> None:
    """Has a broker refuse one call with the token in its words, whole and in part."""
    cluster.faults.add(Fault(Answer(status, f"who said Bearer {token} and {token[8:]}?"), path=path))


@pytest.mark.parametrize("way", ["passwords", "token files"])
def test_neither_secret_is_in_anything_that_was_written(
    way: str,
    looked_at: Worksite,
    home: Path,
    variables: dict[str, str],
    defined: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither token is in a file, log or report of a whole run, even if brokers repeat it whole and in part."""
    caplog.set_level(logging.DEBUG)
    site, run, planted = looked_at, "pulsar_remediate/manual", home / "secrets"
    planted.mkdir()
    for name, token in ((ADMIN, LOOKING), (CHANGE, CHANGING)):
        (planted / name).write_text(token, encoding="utf-8")
        extra = {"urls": site.simulator.admin_urls, "no_policy_file": True} if name == ADMIN else {}
        if way == "passwords":
            defined(name, password=token, extra=extra)
        else:
            defined(name, extra={**extra, "token_file": str(planted / name)})
    repeat(site.simulator, LOOKING, "configuration/runtime", 500)
    written = [repr(observing.plan_snapshot(CLUSTER, observed(site), run))]
    written += [repr(remediating.choose([REMEDY], run)), remediating.dry_run([REMEDY], run)]
    ref = ref_of(site)
    repeat(site.simulator, CHANGING, "configuration/runtime", 500)
    repeat(site.simulator, CHANGING, "unload", 403)
    written += [repr(batches.apply_batch(ref, RUN)), repr(batches.verify_batch(ref, RUN))]
    written += [repr(batches.tell([ref], run)), repr(variables), caplog.text]
    with open_context(CLUSTER, run) as task, task.applying_here() as context:
        written.append(repr(context))
    written += [repr(connections.change_access(CLUSTER, site.policy)), repr(site.simulator.requests.all())]
    files = [file for file in home.rglob("*") if file.is_file() and file.parent != planted]
    assert {".parquet", ".db"} <= {file.suffix for file in files}
    assert "who said Bearer ***" in caplog.text
    for place in (*written, *(file.read_bytes().decode(errors="replace") for file in files)):
        for token in (LOOKING, CHANGING):
            assert token[8:] not in place  # nor the whole token, which ends so
