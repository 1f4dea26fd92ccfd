"""Time that pages take on a large snapshot, route by route: ``python -m benchmarks.bench.pages SNAPSHOTS``.

The application is asked in this process, without a server, as Airflow's API server asks it once who asks may look.
SNAPSHOTS is a folder of snapshots with one diagnosed snapshot of one cluster.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import msgspec
from fastapi import FastAPI
from sqlalchemy import make_url

from benchmarks.bench.figures import Figures, Meter
from pulsar_steward.ledger.store import open_ledger, open_to_read
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.plan import Batch, Plan
from pulsar_steward.model.step import Step, Touched, UnloadBundle
from pulsar_steward.model.tables import BUNDLES
from pulsar_steward.pages.html import make_app
from pulsar_steward.pages.sources import Sources
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.compose import troubles_shown
from pulsar_steward.snapshots.latest import SnapshotShelf

if TYPE_CHECKING:
    from pulsar_steward.snapshots.read import Snapshot

LATER = 15
"""Requests of each route after the first; the one in the middle counts."""

STEPS = 200
RUN = "pulsar_remediate/bench/0"
FILE = "steward.css"


class PageFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of all routes.

    Attributes:
        figures: Of the whole measurement.
        first: Seconds of the first request, by route, each in a fresh application.
        later: Seconds of those after it.
        sizes: Bytes of an answer.
    """

    figures: Figures
    first: dict[str, float]
    later: dict[str, float]
    sizes: dict[str, int]

    @property
    def slowest(self) -> str:
        """The route that takes longest after its first request."""
        return max(self.later, key=self.later.__getitem__)


def main(snapshots: str) -> None:
    """Measures every route, and prints `PageFigures` as JSON."""
    shelf = SnapshotShelf(snapshots)
    (cluster,) = shelf.clusters()
    (snapshot,) = shelf.diagnosed(cluster)
    with tempfile.TemporaryDirectory(prefix="bench-pages-") as home:
        url = f"sqlite:///{Path(home, 'ledger.db')}"
        plan = a_plan(snapshot, cluster)
        ask_about(url, plan)
        now = plan.taken_at + timedelta(minutes=5)

        def application() -> FastAPI:
            return make_app(Sources(lambda: open_to_read(make_url(url)), snapshots, lambda: now), lambda: None)

        trouble = troubles_shown(snapshot)[0].trouble_id
        parts = {"cluster": cluster, "plan_id": plan.plan_id, "step_id": "b1.s001", "name": FILE, "trouble_id": trouble}
        dag_id, run_id, map_index = RUN.split("/")
        asked = {"/question": f"?dag_id={dag_id}&run_id={run_id}&map_index={map_index}"}
        routes = {str(each.path): str(each.path).format(**parts) for each in application().routes}  # type: ignore[attr-defined]  # every kind has one
        del routes["/api/moves"]  # it takes two clusters
        paths = {route: path + asked.get(route, "") for route, path in routes.items()}
        paths["/clusters/{cluster}?text=&order="] = f"{routes['/clusters/{cluster}']}?text=events&order=subject&page=2"
        meter = Meter()
        first, later, sizes = {}, {}, {}
        for route, path in paths.items():
            seconds, sizes[route] = asyncio.run(seconds_of(application(), path))
            first[route], later[route] = seconds[0], statistics.median(seconds[1:])
        figures = meter.figures("requests", len(paths) * (LATER + 1))
    told = PageFigures(figures=figures, first=first, later=later, sizes=sizes)
    sys.stdout.write(f"{msgspec.json.encode(told).decode()}\n")


async def seconds_of(app: FastAPI, path: str) -> tuple[list[float], int]:
    """Seconds of each request for a path, and bytes of the last answer."""
    outer = FastAPI(openapi_url=None)
    outer.mount("/steward", app)
    seconds = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(outer), base_url="http://airflow") as client:
        for _ in range(LATER + 1):
            began = time.perf_counter()
            answer = await client.get(f"/steward{path}")
            seconds.append(time.perf_counter() - began)
            if answer.is_error:
                raise SystemExit(f"{path}: {answer.status_code} {answer.text[:500]}")
    return seconds, len(answer.content)


def a_plan(snapshot: Snapshot, cluster: str) -> Plan:
    """Moves of the first bundles, each to the next broker."""
    columns = ["namespace", "bundle", "owner", "topics", "producers", "consumers"]
    brokers = [row.broker for row in snapshot.brokers()]
    steps = []
    for place, row in enumerate(snapshot.table(BUNDLES, columns).slice(0, STEPS).to_pylist(), start=1):
        target = brokers[(brokers.index(row["owner"]) + 1) % len(brokers)]
        move = UnloadBundle(namespace=row["namespace"], bundle=row["bundle"], source=row["owner"], target=target)
        step = Step(
            step_id=f"b1.s{place:03d}",
            change=move,
            why="made up",
            effect="made up",
            touched=Touched(
                producers=row["producers"] or 0, consumers=row["consumers"] or 0, topics=row["topics"], coordinators=0
            ),
            undo=msgspec.structs.replace(move, source=move.target, target=move.source),
            undo_note="Move it back.",
        )
        steps.append(step)
    batch = Batch(
        batch_id="b1", kind="bundle_balance", title=f"{STEPS} moves", findings=(), steps=tuple(steps), unit="topics"
    )
    meta = snapshot.meta()
    return Plan(
        cluster=cluster,
        snapshot_id=meta.snapshot_id,
        taken_at=meta.taken_at,
        pulsar_cluster=meta.identity,
        policy_digest=Policy().digest,
        batches=(batch,),
    )


def ask_about(url: str, plan: Plan) -> None:
    """A ledger in which somebody is asked about the plan."""
    engine = open_ledger(url)
    writer = LedgerWriter(engine)
    writer.record_plan(plan, plan.taken_at, policy=Policy(), supersede=[])
    writer.record_request(plan, "b1", RUN, plan.taken_at, policy=Policy(), asked_digest=plan.digest)
    engine.dispose()


if __name__ == "__main__":
    main(*sys.argv[1:])
